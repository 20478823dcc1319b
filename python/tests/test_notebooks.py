"""The notebooks of the book, executed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import polars as pl
import pytest
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[2] / "docs" / "notebooks"


def executed(name: str) -> tuple[str, Any]:
    """Execute a notebook; return what it printed and its outputs."""
    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "kept without outputs"
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return "".join(output.get("text", "") for output in outputs), outputs


def figures(outputs: Any) -> int:
    return sum("image/png" in output.get("data", {}) for output in outputs)


def test_every_notebook_is_executed() -> None:
    assert {path.name for path in NOTEBOOKS.glob("*.ipynb")} == {
        "figure8.ipynb",
        "first-figure.ipynb",
        "learn.ipynb",
        "million-runs.ipynb",
        "own-controller.ipynb",
    }


def test_figure_8_is_redrawn_from_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Short runs: what is looked at is that every cell does what it says.
    for name, value in [("FOLDER", str(tmp_path)), ("DURATION", "10s"), ("RUNS", "1")]:
        monkeypatch.setenv(f"FIGURE8_{name}", value)
    printed, _ = executed("figure8.ipynb")
    assert "most utilization first: " in printed
    assert "ABC's throughput is 1." in printed, printed
    runs = pl.read_parquet(tmp_path / "sweep" / "runs.parquet")
    assert {"scheme", "trace", "rtt", "buffer", "seed", "run_id"} <= set(runs.columns)
    assert (tmp_path / "figure8.pdf").read_bytes().startswith(b"%PDF")
    assert "<svg" in (tmp_path / "figure8.svg").read_text()


@pytest.mark.parametrize(
    ("name", "drawn", "words"),
    [("first-figure", 3, ""), ("own-controller", 2, "few-waiting"), ("learn", 2, "reward ")],
)
def test_a_notebook_s_cells_do_what_they_say(name: str, drawn: int, words: str) -> None:
    printed, outputs = executed(f"{name}.ipynb")
    assert words in printed and figures(outputs) == drawn


def test_a_thousand_runs_of_the_million_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLDER", str(tmp_path))
    monkeypatch.setenv("RUNS", "1000")
    printed, outputs = executed("million-runs.ipynb")
    assert "made 1000 runs" in printed and figures(outputs) == 1
    assert len(pl.read_parquet(tmp_path / "runs.parquet")) == 1000
