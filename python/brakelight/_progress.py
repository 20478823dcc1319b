"""How far long work is: a bar by tqdm where there is a terminal or a notebook, and tqdm is installed."""

from __future__ import annotations

import sys
from typing import Any, Protocol


class Progress(Protocol):
    """What is told how far the work is."""

    def begin(self, what: str, steps: int) -> None:
        """``steps`` steps of work begin, called ``what``."""

    def step(self, label: str) -> None:
        """One of them is done."""


class Bar:
    """A bar by tqdm."""

    def __init__(self, tqdm: Any) -> None:
        self._tqdm = tqdm
        self._bar: Any = None

    def begin(self, what: str, steps: int) -> None:
        self._bar = self._tqdm(total=steps, desc=what, unit="run", leave=False)

    def step(self, label: str) -> None:
        if self._bar is not None:
            self._bar.set_postfix_str(label, refresh=False)
            self._bar.update()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


class watching:
    """A context with the progress to tell: none, the caller's own, or a bar."""

    def __init__(self, progress: bool | Progress | None) -> None:
        self._bar: Bar | None = None
        self._given: Progress | None = None
        if progress is None:
            progress = sys.stderr is not None and sys.stderr.isatty() or _in_notebook()
        if progress is True:
            try:
                from tqdm.auto import tqdm
            except ImportError:
                return
            self._bar = Bar(tqdm)
        elif progress is not False:
            self._given = progress

    def __enter__(self) -> Progress | None:
        return self._bar or self._given

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
