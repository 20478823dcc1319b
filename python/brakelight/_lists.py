"""What there is: algorithms with their options, schemes, traces."""

from __future__ import annotations

import json
from typing import Any

from brakelight import _brakelight


def _list(kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(_brakelight.listing(kind))
    return found


def schemes() -> list[dict[str, Any]]:
    """Return the schemes: first those that :func:`compare` runs when none is named, then the others.

    Each is a dict with ``scheme``, ``short_name``, ``controller``, ``feedback``, ``queue``, ``host``,
    ``default``, ``change`` (what somebody who runs Cubic over drop-tail has to change) and ``link_rate``
    (whether its router is told the link's true rate).

    >>> import brakelight as bl
    >>> bl.schemes()[0]["scheme"]
    'abc'
    """
    return _list("schemes")


def controllers() -> list[dict[str, Any]]:
    """Return the congestion controllers: ``name``, ``aliases``, ``summary`` and ``parameters`` of each.

    >>> import brakelight as bl
    >>> "cubic" in [controller["name"] for controller in bl.controllers()]
    True
    """
    return _list("controllers")


def queues() -> list[dict[str, Any]]:
    """Return the queue disciplines, as :func:`controllers` does.

    >>> import brakelight as bl
    >>> codel = next(queue for queue in bl.queues() if queue["name"] == "codel")
    >>> codel["parameters"][0]["name"], codel["parameters"][0]["default"]
    ('target', '5ms')
    """
    return _list("queues")


def feedbacks() -> list[dict[str, Any]]:
    """Return what receivers can send back, as :func:`controllers` does."""
    return _list("feedbacks")


def elements() -> list[dict[str, Any]]:
    """Return what may stand on a path beside links, as :func:`controllers` does."""
    return _list("elements")


def radios() -> list[dict[str, Any]]:
    """Return the wireless links, as :func:`controllers` does."""
    return _list("radios")


def applications() -> list[dict[str, Any]]:
    """Return what flows can carry, as :func:`controllers` does."""
    return _list("applications")


def traces() -> list[dict[str, Any]]:
    """Return the traces that have names: the embedded ones and the files of the folder ``BRAKELIGHT_TRACES``.

    Each is a dict with ``name``, ``embedded``, ``default``, ``about``, ``mean_mbps``, ``cv_100ms`` and
    ``duration_s``.

    Raises:
        InputError: if the folder cannot be read.
    """
    return _list("traces")


def claims() -> list[dict[str, Any]]:
    """Return the papers' claims, for :func:`reproduce`: ``id``, ``paper`` and ``claim`` of each."""
    return _list("claims")
