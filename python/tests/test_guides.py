"""The Python of the book, executed: the blocks of a page one after another, in a folder of their own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[str]:
    """Return the Python of a page."""
    return BLOCK.findall((DOCS / f"{page}.md").read_text())


PAGES = {"arena": 1, "clusters": 1, "guides/learn": 3, "guides/million": 1, "guides/own": 1, "learning": 2, "python": 3}
"""The pages with Python, and how many blocks each has."""


def test_every_page_with_python_is_executed() -> None:
    pages = {str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md") if BLOCK.search(path.read_text())}
    assert pages == set(PAGES)


@pytest.mark.parametrize(("page", "number"), PAGES.items())
def test_the_python_of_a_page_runs(
    page: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if page == "clusters":
        request.addfinalizer(pytest.importorskip("ray").shutdown)
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
