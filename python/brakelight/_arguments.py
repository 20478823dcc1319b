"""What people pass: times, rates, sizes, whole numbers and lists, of NumPy and of the standard library, too.

What is wrong is refused in one line that names the argument, its value and what is valid.
"""

from __future__ import annotations

import datetime
import operator
import os
from collections.abc import Iterable, Mapping
from typing import Any, Union

from brakelight._brakelight import InputError

Time = Union[str, datetime.timedelta]
"""A time: text with its unit (``"40ms"``), or a ``timedelta`` (also NumPy's and pandas')."""

_TIME = "text with its unit such as `40ms`, or a timedelta"
_NS = {"D": 86_400 * 10**9, "h": 3_600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def refused(name: str, value: object, valid: str) -> InputError:
    """Return the exception of a wrong argument."""
    shown = value if isinstance(value, str) else repr(value)
    shown = " ".join(str(shown).split())
    return InputError(f"{name} = `{shown if len(shown) <= 60 else shown[:57] + '...'}`: valid is {valid}")


def plain(value: Any) -> Any:
    """Return a scalar of NumPy as Python has it; anything else as it is."""
    module = type(value).__module__
    if module == "numpy" and getattr(value, "shape", None) == () and nanoseconds(value) is None:
        return value.item()
    return value


def nanoseconds(value: Any) -> int | None:
    """Return a timedelta of the standard library, NumPy or pandas in ns; None for anything else."""
    if isinstance(value, datetime.timedelta):
        # Of pandas, which has nanoseconds besides.
        rest = getattr(value, "nanoseconds", 0)
        return ((value.days * 86_400 + value.seconds) * 10**6 + value.microseconds) * 1000 + int(rest)
    if type(value).__name__ == "timedelta64":
        import numpy as np

        unit, step = np.datetime_data(value.dtype)
        if unit in _NS and not np.isnat(value):
            return int(value.astype("int64")) * step * _NS[unit]
    return None


def time_text(name: str, value: Any) -> str:
    """Return a time as text with its unit. A number has none, and is refused."""
    if isinstance(value, str):
        return value
    length = nanoseconds(value)
    if length is None or length < 0:
        raise refused(name, plain(value), _TIME)
    return f"{length}ns"


def text(name: str, value: Any, valid: str) -> str:
    """Return text. Numbers, which have no unit, are refused; ``valid`` says what is not."""
    if isinstance(value, str):
        return value
    raise refused(name, plain(value), valid)


def whole(name: str, value: Any, least: int = 0, most: int = 2**32 - 1) -> int:
    """Return a whole number, of NumPy too."""
    valid = f"a whole number from {least} to {most}" if most < 2**32 - 1 else f"a whole number from {least} on"
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        raise refused(name, value, valid)
    try:
        number = operator.index(value)
    except TypeError:
        raise refused(name, plain(value), valid) from None
    if not least <= number <= most:
        raise InputError(f"{name} = `{number}` is out of range: valid is {least} to {most}")
    return number


def number(name: str, value: Any, valid: str) -> float:
    """Return a number, of NumPy too. Text is refused."""
    if not isinstance(value, (str, bytes, bool)):
        try:
            return float(value)
        except (TypeError, ValueError):
            pass
    raise refused(name, value, valid)


def seconds(name: str, value: Any) -> float:
    """Return a time since the beginning of a run in seconds: a number of them, a timedelta, or text with its unit."""
    length = nanoseconds(value)
    if length is not None:
        return length / 1e9
    if isinstance(value, str):
        from brakelight import _brakelight

        try:
            return _brakelight.quantity("time", value)
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
    return number(name, value, "a number of seconds, text such as `1.5s`, or a timedelta")


def each(value: Any) -> list[Any] | None:
    """Return what a sequence holds: a list, a tuple, a range, a set in order, an array, a column; None for anything else."""
    if isinstance(value, (str, bytes, Mapping, os.PathLike, type)):
        return None
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    for method in ("tolist", "to_list", "to_pylist"):
        if callable(getattr(value, method, None)):
            listed = getattr(value, method)()
            # Arrays of times become numbers as lists.
            if isinstance(listed, list) and str(getattr(value, "dtype", "")).startswith("timedelta64"):
                return list(value)
            return listed if isinstance(listed, list) else None
    return list(value) if isinstance(value, Iterable) else None
