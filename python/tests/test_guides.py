"""The Python of the book's guides, executed: the blocks of a page one after another, in a folder of their own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "guides"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[str]:
    """Return the Python of a page."""
    return BLOCK.findall((GUIDES / f"{page}.md").read_text())


def test_every_guide_with_python_is_executed() -> None:
    assert {path.stem for path in GUIDES.glob("*.md") if BLOCK.search(path.read_text())} == {"learn", "million", "own"}


@pytest.mark.parametrize(("page", "number"), [("learn", 3), ("million", 1), ("own", 1)])
def test_the_python_of_a_guide_runs(page: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = blocks(page)
    assert len(found) == number
    names: dict[str, Any] = {"__name__": page}
    for block in found:
        exec(compile(block, f"{page}.md", "exec"), names)  # noqa: S102


WITHOUT = """
import sys
for name in ("numpy", "pandas", "polars", "pyarrow", "duckdb", "matplotlib", "plotly", "tqdm", "gymnasium"):
    sys.modules[name] = None
"""


@pytest.mark.parametrize("page", ["README.md", "python/README.md"])
def test_the_python_of_a_readme_needs_no_other_package(page: str) -> None:
    found = BLOCK.findall((ROOT / page).read_text())
    assert len(found) == 1
    done = subprocess.run([sys.executable, "-c", WITHOUT + found[0]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "cubic+codel" in done.stdout
