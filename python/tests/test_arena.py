"""The arena: the same scores as the command's, candidates in Python, hidden rounds."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import brakelight as bl
import pytest


class Still(bl.Controller):
    """A window that never changes."""

    def __init__(self, connection: bl.controller.ConnectionInfo, packets: int = 20) -> None:
        super().__init__(connection)
        self.packets = packets

    def on_ack(self, event: Any) -> None:
        self.cwnd = self.packets * self.mss


def test_the_command_gives_the_same_scores() -> None:
    contest = bl.arena.evaluate(["vegas", "copa"], set="train")
    words = [sys.executable, "-m", "brakelight", "--quiet", "arena", "vegas", "copa", "--set", "train"]
    done = subprocess.run([*words, "--format", "json"], capture_output=True, check=True, text=True)
    document = json.loads(done.stdout)
    del document["origin"]
    assert document == json.loads(contest.json)
    assert contest.set_id == document["set_id"]


def test_a_class_competes_and_its_source_is_in_the_seal() -> None:
    contest = bl.arena.evaluate([Still, "cubic"], key="0123456789abcdef")
    scored = {one.scheme: one for one in contest.candidates}
    assert scored["cubic"].score == 0
    still = scored["still"]
    assert still.digest is not None and len(still.digest) == 64
    assert len(still.rounds) == 48 and abs(sum(still.parts.values()) - still.score) < 1e-9
    assert all(round["round"].split(": ")[1][:5] in ("alone", "besid") or "flows" in round["round"] for round in still.rounds)


def test_hidden_rounds_come_from_a_key_or_a_folder(tmp_path: Path) -> None:
    of = {key: bl.arena.evaluate("copa", key=key).set_id for key in (b"0123456789abcdef", b"fedcba9876543210")}
    assert len(set(of.values())) == 2
    (tmp_path / "link.down").write_text("".join(f"{ms}\n" for ms in range(1, 1001, 2)))
    contest = bl.arena.evaluate("copa", folder=tmp_path)
    # 500 packets a second, each with 1448 bytes of payload.
    assert contest.candidates[0].rounds[0]["possible_mbps"] == pytest.approx(5.79, abs=0.03)


def test_rounds_to_train_on_are_scenarios() -> None:
    scenarios = bl.arena.scenarios(Still)
    assert len(scenarios) == 48
    assert scenarios[0].to_dict()["flow"][0]["controller"] == "still"
    row = bl.run(scenarios[0]).rows[0]
    assert row["throughput_mbps"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"candidates": "abc"}, "has the queue `abc`"),
        ({"candidates": []}, "candidates"),
        ({"candidates": "copa", "set": "test"}, "`train` or `validation`"),
        ({"candidates": "copa", "level": "long"}, "`quick` or `full`"),
        ({"candidates": "copa", "key": "short"}, "5 bytes"),
        ({"candidates": "copa", "key": "0123456789abcdef", "folder": "."}, "give one of them"),
    ],
)
def test_wrong_arguments_get_one_line(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(bl.InputError, match=message):
        bl.arena.evaluate(**arguments)


def test_a_module_in_webassembly_competes_as_in_the_command(tmp_path: Path) -> None:
    module = Path(__file__).parents[2] / "crates" / "sandbox" / "modules" / "newreno.wasm"
    copy = tmp_path / "mine.wasm"
    copy.write_bytes(module.read_bytes())
    contest = bl.arena.evaluate([str(copy), "newreno"], set="train")
    mine, newreno = sorted(contest.candidates, key=lambda one: one.scheme, reverse=True)
    assert mine.scheme == f"wasm:module={copy}" and mine.rounds == newreno.rounds
    assert mine.digest == hashlib.sha256(copy.read_bytes()).hexdigest()
    words = [sys.executable, "-m", "brakelight", "--quiet", "arena", str(copy), "newreno", "--set", "train"]
    done = subprocess.run([*words, "--format", "json"], capture_output=True, check=True, text=True)
    document = json.loads(done.stdout)
    del document["origin"]
    assert document == json.loads(contest.json)


def test_a_module_that_traps_has_the_least_of_its_rounds(tmp_path: Path) -> None:
    exports = [("memory", 2, 0), ("brakelight_abi", 0, 0), ("brakelight_buffer", 0, 1)]
    exports += [("init", 0, 2), ("on_loss", 0, 2), ("on_timeout", 0, 2), ("on_ack", 0, 3)]
    listed = b"".join(bytes([len(name)]) + name.encode() + bytes([kind, index]) for name, kind, index in exports)
    sections = [(1, b"\2\x60\0\1\x7f\x60\0\0"), (3, b"\4\0\0\1\1"), (5, b"\1\0\1"), (7, bytes([len(exports)]) + listed)]
    sections += [(10, b"\4\4\0\x41\1\x0b\4\0\x41\0\x0b\2\0\x0b\3\0\0\x0b")]
    module = tmp_path / "traps.wasm"
    module.write_bytes(b"\0asm\1\0\0\0" + b"".join(bytes([number, len(body)]) + body for number, body in sections))
    contest = bl.arena.evaluate(str(module), set="train")
    assert all("traps.wasm: `on_ack`: " in round["failed"] for round in contest.candidates[0].rounds)
    with pytest.raises(bl.RunError, match="traps.wasm: `on_ack`: "):
        bl.run(bl.arena.scenarios(str(module))[0])
