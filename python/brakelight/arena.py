"""The arena: one score of a sender, on links that whoever made it need not have seen.

>>> import brakelight as bl
>>> contest = bl.arena.evaluate(["copa", "vegas", "cubic"], set="train")
>>> {scored.scheme: scored.score for scored in contest.candidates}["cubic"]
0.0
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from brakelight import _brakelight
from brakelight._arguments import refused, text
from brakelight._progress import Progress, watching
from brakelight.controller import is_algorithm
from brakelight.lab import SchemeLike, _schemes
from brakelight.scenario import Scenario

__all__ = ["Contest", "Scored", "evaluate", "scenarios"]

SetName = Literal["train", "validation"]
Level = Literal["quick", "full"]


@dataclass(frozen=True)
class Scored:
    """The score of one candidate."""

    scheme: str
    """The candidate."""
    score: float
    """0 for Cubic, 1 for a sender that knows the future."""
    interval95: tuple[float, float] | None
    """95 % confidence interval of the score, over rounds."""
    parts: dict[str, float]
    """What throughput, delay, loss, fairness and harm contribute; they sum up to the score."""
    rounds: list[dict[str, Any]]
    """One dict a round, with the keys of ``brakelight arena --format json``."""
    digest: str | None
    """SHA-256 of the source of a class in Python, or of the files that options name."""
    seal: str
    """SHA-256 over the program's version, the rounds, the candidate and its scores."""


@dataclass(frozen=True)
class Contest:
    """What :func:`evaluate` found."""

    candidates: list[Scored]
    """The highest score first."""
    set_id: str
    """The identity of the rounds: the same for everybody who runs the same."""
    json: str
    """The document of ``brakelight arena --format json``, without its origin."""


def evaluate(
    candidates: SchemeLike | Sequence[SchemeLike],
    *,
    set: SetName = "validation",
    key: bytes | str | None = None,
    folder: str | os.PathLike[str] | None = None,
    level: Level = "quick",
    progress: bool | Progress | None = None,
) -> Contest:
    """Score senders over drop-tail: 0 is Cubic, 1 a sender that knows the future.

    Args:
        candidates: one or several: names with options, or classes of :class:`brakelight.Controller`.
        set: the rounds that everybody knows: ``"train"`` for making a sender, ``"validation"`` for choosing one.
        key: rounds that only their organizer knows: they are drawn from these at least 16 bytes.
        folder: the same, over the recordings in this folder.
        level: ``"quick"`` has 48 rounds, ``"full"`` 240.
        progress: as of :func:`brakelight.compare`.

    Raises:
        InputError: if an argument is wrong, or a candidate needs a router.
        RunError: if a run of a sender fails that the others are measured by. A candidate whose run fails has
            the least of that round.
    """
    given = _candidates(candidates)
    secret = _key(key)
    place = None if folder is None else os.fsdecode(folder)
    with watching(progress) as told:
        document = _brakelight.arena(given, _set(set), secret, place, _level(level), told)
    found = json.loads(document)
    return Contest(
        candidates=[_scored(scored) for scored in found["candidates"]], set_id=found["set_id"], json=document
    )


def scenarios(
    candidate: SchemeLike = "cubic", *, set: SetName = "train", level: Level = "quick"
) -> list[Scenario]:
    """Return the scenario of every round of a known set, with ``candidate`` in it, for training.

    >>> import brakelight as bl
    >>> len(bl.arena.scenarios("copa"))
    48
    """
    given = _candidates(candidate)
    if len(given) != 1:
        raise refused("candidate", candidate, "one sender")
    return [Scenario._of(one) for one in _brakelight.arena_scenarios(given[0], _set(set), _level(level))]


def _candidates(given: SchemeLike | Sequence[SchemeLike]) -> list[tuple[str, str | None]]:
    several = [given] if isinstance(given, (str, type)) else list(given)
    made = []
    for one in several:
        digest = _digest(one) if is_algorithm(one) else None
        made += [(scheme, digest) for scheme in _schemes(one, "candidates")]
    return made


def _digest(algorithm: Any) -> str | None:
    try:
        source = inspect.getsource(algorithm)
    except (OSError, TypeError):  # a class typed into an interpreter
        return None
    return hashlib.sha256(source.encode()).hexdigest()


def _key(key: bytes | str | None) -> bytes | None:
    if key is None or isinstance(key, bytes):
        return key
    return text("key", key, "at least 16 bytes").encode()


def _set(given: str) -> str:
    if given not in ("train", "validation"):
        raise refused("set", given, "`train` or `validation`; give hidden rounds by `key` or `folder`")
    return given


def _level(given: str) -> str:
    if given not in ("quick", "full"):
        raise refused("level", given, "`quick` or `full`")
    return given


def _scored(found: dict[str, Any]) -> Scored:
    interval = found["interval95"]
    return Scored(
        scheme=found["scheme"],
        score=found["score"],
        interval95=None if interval is None else (interval[0], interval[1]),
        parts=found["parts"],
        rounds=found["rounds"],
        digest=found.get("digest"),
        seal=found["seal"],
    )
