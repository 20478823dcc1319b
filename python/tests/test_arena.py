"""The arena: the same scores as the command's, candidates in Python, hidden rounds."""

from __future__ import annotations

import hashlib
import inspect
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


def test_a_data_set_has_the_same_bytes_twice_and_a_card(tmp_path: Path) -> None:
    made = [bl.arena.dataset(tmp_path / name / "steps.parquet", ["cubic", Still], rounds=3) for name in folders(tmp_path)]
    one, other = made
    assert one.path.read_bytes() == other.path.read_bytes() and one.card.read_text() == other.card.read_text()
    assert one.digest == hashlib.sha256(one.path.read_bytes()).hexdigest()
    # Alone, so many flows, beside another: of both controllers.
    card = one.card.read_text()
    digest = hashlib.sha256(inspect.getsource(Still).encode()).hexdigest()
    for said in (one.digest, one.set_id, f"- `still (class with SHA-256 {digest})`", "Apache-2.0 OR MIT", "rounds=3"):
        assert said in card
    polars = pytest.importorskip("polars")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = polars.read_parquet(one.path)
    assert (len(table), table["episode"].n_unique()) == (one.rows, one.episodes)
    for column in table.columns:
        assert f"| `{column}` |" in card
    assert len(table.columns) == card.count("\n| `") and table["controller"].unique().sort().to_list() == ["cubic", "still"]
    metadata = parquet.read_schema(one.path).metadata
    assert metadata[b"brakelight.set_id"].decode() == one.set_id
    assert json.loads(metadata[b"brakelight.units"])["rtt_ms"] == "ms"
    assert json.loads(metadata[b"brakelight.specification"])["preset"] == "default"
    ends = table.filter(polars.col("action").is_null())
    assert len(ends) == one.episodes == table["truncated"].sum() and not table["terminated"].any()
    assert table["action"].drop_nulls().abs().max() <= 1 and ends["reward"].is_null().all()


def folders(tmp_path: Path) -> list[str]:
    names = ["one", "other"]
    for name in names:
        (tmp_path / name).mkdir()
    return names


def test_the_senders_of_a_data_set_send_what_they_send_unwatched(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    made = bl.arena.dataset(tmp_path / "steps.parquet", ["bbr3", "copa"], rounds=3, set="validation")
    table = polars.read_parquet(made.path)
    assert table["delivered_packets"].sum() > 100_000
    for controller in ("bbr3", "copa"):
        scenarios = bl.arena.scenarios(controller, set="validation")[:3]
        for number, scenario in enumerate(scenarios, start=1):
            own = table.filter((polars.col("controller") == controller) & (polars.col("round") == number))
            for (flow,), rows in own.group_by("flow", maintain_order=True):
                plain = bl.Simulation(scenario)
                plain.advance(rows["time_s"][-1])
                view = plain.flow(flow)
                assert view.cwnd == rows["cwnd_bytes"][-1]
                assert view.delivered_packets == rows["delivered_packets"].sum()
                assert view.sent_packets == rows["sent_packets"].sum()
                assert view.min_rtt_s is None or view.min_rtt_s * 1e3 >= rows["propagation_rtt_ms"][0]
                rate = plain.capacity_between(0, rows["time_s"][-2], rows["time_s"][-1]) * 8e-3 / rows["interval_ms"][-1]
                assert rows["capacity_mbps"][-1] == pytest.approx(rate, rel=1e-4)


def test_episodes_are_those_of_minari_s_buffers(tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    polars = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    made = bl.arena.dataset(tmp_path / "steps.parquet", ["cubic", "vegas"], rounds=2)
    table = polars.read_parquet(made.path)
    episodes = list(bl.arena.episodes(made.path, history=3))
    keys = ["id", "seed", "options", "observations", "actions", "rewards", "terminations", "truncations", "infos"]
    assert len(episodes) == made.episodes and all(list(episode) == keys for episode in episodes)
    observed = [name for name in table.columns if name.startswith("observation_")]
    for episode in episodes:
        rows = table.filter(polars.col("episode") == episode["id"])
        steps = len(rows) - 1
        assert episode["observations"].shape == (steps + 1, 24) and episode["actions"].shape == (steps, 1)
        assert episode["observations"].dtype == episode["actions"].dtype == np.float32
        assert episode["observations"][0, :16].tolist() == [0.0] * 16
        newest = rows.select(observed).to_numpy().astype(np.float32)
        assert (episode["observations"][:, 16:] == newest).all()
        assert (episode["observations"][2:, :8] == newest[:-2]).all()
        assert episode["rewards"].tolist() == rows["reward"][:-1].to_list()
        assert episode["truncations"].tolist() == [False] * (steps - 1) + [True] and not episode["terminations"].any()
        assert len(episode["infos"]["rtt_ms"]) == steps + 1
        assert episode["options"]["controller"] == rows["controller"][0]


def test_wrong_arguments_of_a_data_set_are_refused_by_name(tmp_path: Path) -> None:
    good = tmp_path / "steps.parquet"
    for arguments, words in (
        ({"path": 3}, "path = `3`: valid is a path that ends in `.parquet`"),
        ({"path": tmp_path / "steps.csv"}, "path = .*: valid is a path that ends in `.parquet`"),
        ({"controllers": 3}, "controllers = `3`: valid is a sender"),
        ({"controllers": []}, "controllers = .*: valid is one or more senders"),
        ({"controllers": "nothing"}, "nothing"),
        ({"controllers": "abc"}, "`abc.*queue"),
        ({"set": "hidden"}, "set = `hidden`: valid is `train` or `validation`"),
        ({"level": "slow"}, "level = `slow`: valid is `quick` or `full`"),
        ({"rounds": 0}, "rounds = `0` is out of range: valid is 1 to 48"),
        ({"rounds": 49}, "rounds = `49` is out of range: valid is 1 to 48"),
    ):
        with pytest.raises(bl.InputError, match=words):
            bl.arena.dataset(**{"path": good, "rounds": 1, **arguments})  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(bl.RunError, match="cannot be written"):
        bl.arena.dataset(tmp_path / "nowhere" / "steps.parquet", "cubic", rounds=1)
    pytest.importorskip("pyarrow")
    good.write_bytes(b"no table")
    with pytest.raises(bl.InputError, match="path = .*: valid is a Parquet file that can be read"):
        list(bl.arena.episodes(good))
    with pytest.raises(bl.InputError, match="history = `0`"):
        bl.arena.episodes(good, history=0)
