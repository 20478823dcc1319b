"""The notebooks of the book, executed."""

from __future__ import annotations

from pathlib import Path

import nbformat
import polars as pl
import pytest
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[2] / "docs" / "notebooks"


def test_figure_8_is_redrawn_from_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Short runs: what is looked at is that every cell does what it says.
    for name, value in [("FOLDER", str(tmp_path)), ("DURATION", "10s"), ("RUNS", "1")]:
        monkeypatch.setenv(f"FIGURE8_{name}", value)
    notebook = nbformat.read(NOTEBOOKS / "figure8.ipynb", as_version=4)
    assert len(notebook.cells) == 10
    assert all(not cell.get("outputs") for cell in notebook.cells), "kept without outputs"
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    printed = "".join(
        output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", [])
    )
    assert "most utilisation first: " in printed
    assert "ABC's throughput is 1." in printed, printed
    runs = pl.read_parquet(tmp_path / "sweep" / "runs.parquet")
    assert {"scheme", "trace", "rtt", "buffer", "seed", "run_id"} <= set(runs.columns)
    assert (tmp_path / "figure8.pdf").read_bytes().startswith(b"%PDF")
    assert "<svg" in (tmp_path / "figure8.svg").read_text()
