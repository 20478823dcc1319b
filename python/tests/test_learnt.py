"""Models in ONNX: the command decides as the environment does, and says what is wrong with a file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import brakelight as bl
import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("gymnasium")

from brakelight.envs import CongestionControlEnv, Links, Model  # noqa: E402


def field(number: int, payload: bytes | int) -> bytes:
    """A field of a protocol buffer: a number, or bytes with their length."""

    def variable(value: int) -> bytes:
        out = bytearray()
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        return bytes([*out, value])

    if isinstance(payload, int):
        return variable(number << 3) + variable(payload)
    return variable(number << 3 | 2) + variable(len(payload)) + payload


def linear(weights: Any, bias: float, specification: str | None, *, wide: int | None = None) -> bytes:
    """A linear policy in ONNX, ``observation @ weights + bias``, written by hand: the tests need no package for it."""

    def tensor(name: str, shape: list[int], values: Any) -> bytes:
        raw = np.asarray(values, "<f4").tobytes()
        return b"".join(field(1, size) for size in shape) + field(2, 1) + field(8, name.encode()) + field(9, raw)

    def value(name: str, shape: list[int]) -> bytes:
        sizes = b"".join(field(1, field(1, size)) for size in shape)
        return field(1, name.encode()) + field(2, field(1, field(1, 1) + field(2, sizes)))

    width = wide or len(weights)
    node = b"".join(field(1, name) for name in (b"observation", b"weights", b"bias")) + field(2, b"action")
    graph = (
        field(1, node + field(4, b"Gemm"))
        + field(2, b"policy")
        + field(5, tensor("weights", [len(weights), 1], weights))
        + field(5, tensor("bias", [1], [bias]))
        + field(11, value("observation", [1, width]))
        + field(12, value("action", [1, 1]))
    )
    metadata = b"" if specification is None else field(14, field(1, b"brakelight") + field(2, specification.encode()))
    return field(1, 8) + field(7, graph) + field(8, field(2, 17)) + metadata


@pytest.mark.parametrize(
    ("rate", "rtt", "interval"),
    # Times that divide each other, so that events coincide, and times that do not.
    [("12Mbps", "40ms", None), ("7.3Mbps", "31.7ms", None), ("12Mbps", "40ms", "20ms")],
)
def test_the_command_s_controller_sends_what_the_policy_in_the_environment_sends(
    tmp_path: Path, rate: str, rtt: str, interval: str | None
) -> None:
    links = Links(rate=(rate, rate), rtt=(rtt, rtt), buffer=("60pkt", "60pkt"))
    env = CongestionControlEnv(links=links, steps=10_000, interval=interval)
    observation, _ = env.reset(seed=1)
    # It widens the window until packets wait: the eighth number from the end says how long.
    weights = np.random.default_rng(3).normal(0, 0.01, len(observation)).astype(np.float32)
    weights[-8] = -0.5
    path = tmp_path / "linear.onnx"
    path.write_bytes(linear(weights, 0.12, env.specification))
    model = Model.read(path)
    stepped = []
    for _ in range(120):
        action = model(observation)
        assert action == pytest.approx(float(observation @ weights) + 0.12, abs=1e-4)
        observation, _, _, _, info = env.step([action])
        stepped.append((info["time_s"], info["cwnd_bytes"], info["delivered_packets"]))
    # The same at the same times in a run that the model drives.
    episode = tmp_path / "episode.toml"
    episode.write_text(env.scenario.replace("agent-0", f"onnx:model={path}"))
    run = bl.Simulation(episode)
    seen, delivered = [], 0
    for at, _, _ in stepped:
        run.advance(at)
        flow = run.flow("flow-0")
        seen.append((at, float(flow.cwnd), float(flow.delivered_packets - delivered)))
        delivered = flow.delivered_packets
    assert seen == stepped
    assert len({cwnd for _, cwnd, _ in stepped}) > 20


def test_the_shipped_model_runs_by_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "brakelight"]
    done = subprocess.run(
        [*command, "compare", "--trace", "step", "--schemes", "onnx,cubic", "--duration", "20s", "--runs", "1", "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = {row["scheme"]: row for row in json.loads(done.stdout)["runs"]}
    assert rows["onnx"]["utilization"] > 0.5
    assert rows["onnx"]["queueing_delay_ms"]["p95"] < rows["cubic"]["queueing_delay_ms"]["p95"]
    listed = subprocess.run([*command, "list", "controllers"], capture_output=True, text=True, check=True).stdout
    assert "onnx" in listed and "model" in listed


def test_a_file_that_is_no_model_is_refused_by_name(tmp_path: Path) -> None:
    specification = CongestionControlEnv().specification
    other = json.loads(specification) | {"preset": "other"}
    for name, content, words in (
        ("missing.onnx", None, "it cannot be read"),
        ("noise.onnx", b"\xff\xfe not a model", "it cannot be loaded as ONNX"),
        ("unnamed.onnx", linear(np.zeros(32), 0.0, None), "its metadata has no entry `brakelight`"),
        ("other.onnx", linear(np.zeros(32), 0.0, json.dumps(other)), "unknown variant `other`"),
        ("narrow.onnx", linear(np.zeros(8), 0.0, specification), "narrow.onnx"),
        ("long.onnx", linear(np.zeros(32), 0.0, specification.replace('"history":4', '"history":0')), "history"),
    ):
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(bl.InputError, match=words) as raised:
            bl.compare("step", f"onnx:model={path}", duration="1s", runs=1)
        assert name in str(raised.value) and "\n" not in str(raised.value)
        with pytest.raises(bl.InputError, match=name):
            Model.read(path)
    with pytest.raises(bl.InputError, match="valid is 32"):
        Model.shipped()(np.zeros(3))


def test_the_shipped_model_competes_in_an_environment_to_learn_in() -> None:
    fixed = {"rate": ("12Mbps", "12Mbps"), "rtt": ("40ms", "40ms"), "buffer": ("100pkt", "100pkt")}
    rates = []
    for against in ((), ("onnx",)):
        env = CongestionControlEnv(links=Links(**fixed, against=against), steps=100)
        env.reset(seed=1)
        rates.append(np.mean([env.step([0.0])[4]["rtt_ms"] for _ in range(60)]))
    assert rates[1] > rates[0]
