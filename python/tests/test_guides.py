"""The Python of the book's guides, executed: the blocks of a page one after another, in a folder of their own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
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
