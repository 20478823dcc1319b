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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from brakelight import _brakelight
from brakelight._arguments import each, refused, text, whole
from brakelight._progress import Progress, watching
from brakelight.controller import is_algorithm
from brakelight.lab import SchemeLike, _schemes
from brakelight.scenario import Scenario

__all__ = ["Contest", "Dataset", "Scored", "dataset", "episodes", "evaluate", "scenarios"]

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


@dataclass(frozen=True)
class Dataset:
    """What :func:`dataset` wrote."""

    path: Path
    """The Parquet file."""
    card: Path
    """What it is, for people: Markdown."""
    rows: int
    """Monitor intervals, a row each."""
    episodes: int
    """Flows of runs."""
    set_id: str
    """The identity of the set's rounds, as ``brakelight arena`` has it."""
    digest: str
    """SHA-256 of the Parquet file."""


def dataset(
    path: str | os.PathLike[str],
    controllers: SchemeLike | Sequence[SchemeLike] = ("cubic", "bbr3", "copa", "vegas"),
    *,
    set: SetName = "train",
    level: Level = "quick",
    rounds: int | None = None,
    progress: bool | Progress | None = None,
) -> Dataset:
    """Write what senders saw and did in the arena's public rounds, to learn from offline: Parquet, with a card beside.

    Each controller runs in each round. An episode is one flow of a run. A row is a monitor interval, as those of
    :mod:`brakelight.envs` with the preset ``default``: the observation, the action that the sender's window stands
    for, its reward, and what was measured. The same arguments give the same bytes. The senders are watched, and send
    the packets that they send without anybody watching.

    >>> import brakelight as bl, tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = bl.arena.dataset(os.path.join(folder, "steps.parquet"), ["cubic", "copa"], rounds=2)
    >>> made.episodes, made.card.name
    (6, 'steps.md')

    Args:
        path: where to write, ending in ``.parquet``. The card has the same name and ends in ``.md``.
        controllers: one or several: names with options, or classes of :class:`brakelight.Controller`.
        set: ``"train"`` or ``"validation"``.
        level: ``"quick"`` has 48 rounds, ``"full"`` 240.
        rounds: only so many of them, the first; None stands for all.
        progress: as of :func:`brakelight.compare`.

    Raises:
        InputError: if an argument is wrong, or a controller needs a router.
        RunError: if a run fails, or the file cannot be written.
    """
    where = _parquet("path", path)
    given = _candidates(controllers, "controllers")
    if not given:
        raise refused("controllers", controllers, "one or more senders")
    most = _brakelight.arena_rounds(_level(level))
    count = most if rounds is None else whole("rounds", rounds, 1, most)
    with watching(progress) as told:
        rows, number, set_id = _brakelight.arena_dataset(
            str(where), given, _set(set), _level(level), count, told
        )
    digest = hashlib.sha256(where.read_bytes()).hexdigest()
    card = where.with_suffix(".md")
    made = Dataset(where, card, rows, number, set_id, digest)
    schemes = [scheme if own is None else f"{scheme} (class with SHA-256 {own})" for scheme, own in given]
    call = f"set={set!r}, level={level!r}, rounds={rounds!r}"
    card.write_text(_card(made, schemes, call), encoding="utf-8", newline="\n")
    return made


def episodes(path: str | os.PathLike[str], *, history: int = 4) -> Iterator[dict[str, Any]]:
    """Return the episodes of a file of :func:`dataset`, one after the other, as dicts of arrays.

    The keys are those of Minari's ``EpisodeBuffer``: ``id``, ``seed``, ``options``, ``observations``, ``actions``,
    ``rewards``, ``terminations``, ``truncations`` and ``infos``. There is one observation more than actions.
    Observations are those of ``brakelight/CongestionControl-v1``, float32, and so are actions. ``options`` has the
    controller, round, link and flow.

    Needs NumPy and pyarrow.

    ::

        buffers = [minari.data_collector.EpisodeBuffer(**episode) for episode in bl.arena.episodes("steps.parquet")]
        minari.create_dataset_from_buffers("brakelight/arena-v0", buffers, env="brakelight/CongestionControl-v1")

    Args:
        path: the Parquet file.
        history: intervals in an observation, the newest last; before the first there are zeros.

    Raises:
        InputError: if an argument is wrong, or the file is not one of these.
    """
    where = _parquet("path", path)
    many = whole("history", history, 1, 1000)
    return _episodes(where, many)


def _episodes(path: Path, history: int) -> Iterator[dict[str, Any]]:
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise refused("path", path, f"a Parquet file that can be read ({error})") from None
    if (file.schema_arrow.metadata or {}).get(b"brakelight.table") != b"arena-steps":
        raise refused("path", path, "a file that `brakelight.arena.dataset` wrote")
    # A controller's episodes are one row group.
    for group in range(file.num_row_groups):
        table = file.read_row_group(group)
        columns = {name: table.column(name).to_numpy() for name in table.column_names}
        observed = [name for name in columns if name.startswith("observation_")]
        numbers = columns["episode"]
        starts = np.flatnonzero(np.r_[True, numbers[1:] != numbers[:-1]])
        for start, stop in zip(starts, [*starts[1:], len(numbers)], strict=True):
            rows = slice(int(start), int(stop))
            acted = slice(rows.start, rows.stop - 1)
            newest = np.stack([columns[name][rows] for name in observed], axis=1).astype(np.float32)
            padded = np.concatenate([np.zeros((history - 1, len(observed)), np.float32), newest])
            stacked = np.concatenate([padded[place : place + len(newest)] for place in range(history)], axis=1)
            yield {
                "id": int(numbers[start]),
                "seed": int(columns["seed"][start]),
                "options": {
                    "controller": str(columns["controller"][start]),
                    "round": int(columns["round"][start]),
                    "link": str(columns["link"][start]),
                    "flow": str(columns["flow"][start]),
                },
                "observations": stacked,
                "actions": columns["action"][acted].astype(np.float32)[:, None],
                "rewards": columns["reward"][acted].astype(np.float64),
                "terminations": columns["terminated"][acted].astype(np.bool_),
                "truncations": columns["truncated"][acted].astype(np.bool_),
                "infos": {name: columns[name][rows] for name in _MEASURED},
            }


_MEASURED = (
    "time_s",
    "interval_ms",
    "throughput_mbps",
    "capacity_mbps",
    "rtt_ms",
    "loss",
    "sent_packets",
    "delivered_packets",
    "lost_packets",
    "cwnd_bytes",
    "pacing_mbps",
)
"""What was measured of an interval."""

_COLUMNS = (
    ("episode", "", "the number of the episode, from 0"),
    ("step", "", "the number of the interval in its episode, from 0"),
    ("round", "", "the number of the arena's round, from 1"),
    ("link", "", "the trace or the rates that serve the link"),
    ("beside", "", "the controller of another flow on the link, if there is one"),
    ("flow", "", "the name of the flow in its run"),
    ("controller", "", "the controller, with its options"),
    ("seed", "", "of the run"),
    ("propagation_rtt_ms", "ms", "the round trip without queues"),
    ("time_s", "s", "the end of the interval, since the beginning of the run"),
    ("observation_rtt_ratio", "", "mean RTT over the smallest, minus 1; 0 to 10"),
    ("observation_rtt_gradient", "", "mean RTT of the second half minus that of the first, over the length"),
    ("observation_send_ratio", "", "packets sent over packets delivered, minus 1"),
    ("observation_throughput_share", "", "throughput over the highest of the episode"),
    ("observation_loss", "", "share of packets lost"),
    ("observation_window_share", "", "the window over the highest throughput times the smallest RTT"),
    ("observation_inflight_share", "", "bytes in flight over the window"),
    ("observation_interval_rtts", "", "the length over the smallest RTT"),
    ("action", "", "log2 of the window at the end of the next interval over that of this one, within -1 and 1"),
    ("reward", "", "throughput / capacity - q / (q + rtt) - 2 loss, of the next interval"),
    ("terminated", "", "never"),
    ("truncated", "", "whether the action is the last of its episode"),
    ("interval_ms", "ms", "the length of the interval: a round trip, at least 10 ms"),
    ("throughput_mbps", "Mbit/s", "payload that was acknowledged"),
    ("capacity_mbps", "Mbit/s", "what the link could have carried, used or not"),
    ("rtt_ms", "ms", "mean of the RTT samples"),
    ("loss", "", "share of packets lost"),
    ("sent_packets", "packets", "sent, retransmissions included"),
    ("delivered_packets", "packets", "acknowledged"),
    ("lost_packets", "packets", "declared lost"),
    ("cwnd_bytes", "bytes", "the window at the end, in payload"),
    ("pacing_mbps", "Mbit/s", "the pacing rate at the end; null where the host decides it"),
)
"""Every column: its name, its unit, what it has."""


def _card(made: Dataset, controllers: list[str], call: str) -> str:
    listed = "\n".join(f"- `{controller}`" for controller in controllers)
    table = "\n".join(f"| `{name}` | {unit} | {what} |" for name, unit, what in _COLUMNS)
    return f"""# {made.path.name}

What senders saw and did on the links of Brakelight's arena, one monitor interval a row.

| | |
|---|---|
| rows | {made.rows} |
| episodes | {made.episodes} |
| made by | brakelight {_brakelight.__version__}, `brakelight.arena.dataset` with `{call}` |
| rounds | `{made.set_id}` |
| SHA-256 of the file | `{made.digest}` |
| license | Apache-2.0 OR MIT, as the program's |

## How it was made

Each controller ran in each round, in simulation. The program draws the links from recipes; nothing in the file was
recorded from anybody. The same version and arguments give the same bytes. An episode is one flow of one run, which is
30 s long; some rounds have 2 to 8 flows of the controller, some another flow beside it.

Controllers:

{listed}

A row has what was observed in an interval, the action that followed, and the reward of the next interval. The last row
of an episode has neither action nor reward. A controller sets its window at any time; the action is what an agent that
decides once an interval would have done. It says little of controllers that decide by their pacing rate.

## Columns

| column | unit | meaning |
|---|---|---|
{table}

## What it is not for

The arena judges by other links than those of `set="train"`: choose a policy on `validation`, and judge it on hidden
rounds. The reward knows the capacity of the link, which a sender does not.
"""


def _parquet(name: str, path: Any) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise refused(name, path, "a path that ends in `.parquet`")
    where = Path(os.fsdecode(path))
    if where.suffix != ".parquet":
        raise refused(name, str(where), "a path that ends in `.parquet`")
    return where


def _candidates(given: SchemeLike | Sequence[SchemeLike], name: str = "candidates") -> list[tuple[str, str | None]]:
    several = [given] if isinstance(given, (str, type)) else each(given)
    if several is None:
        raise refused(name, given, "a sender such as `copa`, a class of Controller, or a list of them")
    made = []
    for one in several:
        digest = _digest(one) if is_algorithm(one) else None
        made += [(scheme, digest) for scheme in _schemes(one, name)]
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
