"""What a step depends on, as a hash; and what the changes since a commit can have broken."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import threading
from collections.abc import Iterable
from pathlib import Path

# What the heavy tests passed with, which they write down themselves.
HEAVY_PASSED = "scripts/heavy.sha256"


def tracked(root: Path, paths: Iterable[str]) -> list[str]:
    """The files that Git tracks or would track under `paths`, in order, without the one that is a result."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *paths]
    found = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    return sorted({name for name in found.split("\0") if name} - {HEAVY_PASSED})


def content(path: Path) -> bytes:
    """What stands for a file in a hash: where a link leads, or a hash of what the file holds."""
    if path.is_symlink():
        return os.readlink(path).encode()
    return hashlib.sha256(path.read_bytes()).digest() if path.is_file() else b""


def digest(root: Path, paths: Iterable[str], besides: str = "") -> str:
    """A hash of the files under `paths` and of what else a step depends on, such as the compiler."""
    total = hashlib.sha256(besides.encode())
    for name in tracked(root, paths):
        total.update(name.encode() + b"\0" + content(root / name))
    return total.hexdigest()


class Tree:
    """All files of the repository, each read once, for the hashes of many jobs."""

    def __init__(self, root: Path, besides: str) -> None:
        self.root = root
        self.besides = besides
        self.files = {name: content(root / name) for name in tracked(root, ["."])}

    def digest(self, without: Iterable[Path]) -> str:
        """A hash of all files but those under the folders `without`, and of what else the jobs depend on."""
        hidden = tuple(f"{folder.relative_to(self.root)}/" for folder in without)
        total = hashlib.sha256(self.besides.encode())
        for name, kept in self.files.items():
            if not name.startswith(hidden):
                total.update(name.encode() + b"\0" + kept)
        return total.hexdigest()


class Passed:
    """Remembers, in a file under the build folder, with which inputs each step passed last."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Steps of two threads write it.
        self.lock = threading.Lock()

    def read(self) -> dict[str, str]:
        try:
            kept: dict[str, str] = json.loads(self.path.read_text(encoding="utf-8"))
            return kept
        except (OSError, ValueError):
            return {}

    def is_current(self, step: str, inputs: str) -> bool:
        """Whether `step` passed with these inputs before."""
        return "BRAKELIGHT_CHECK_ALL" not in os.environ and self.read().get(step) == inputs

    def record(self, step: str, inputs: str) -> None:
        with self.lock:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            kept = self.read()
            kept[step] = inputs
            self.path.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def changed(root: Path, revision: str) -> list[str]:
    """The files that differ from the commit `revision`, committed or not, new ones among them."""
    command = ["git", "diff", "--name-only", "-z", revision, "--"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"check: --since {revision}: {done.stderr.strip().splitlines()[0]}")
    new = ["git", "ls-files", "-z", "--others", "--exclude-standard"]
    others = subprocess.run(new, cwd=root, capture_output=True, text=True, check=True).stdout
    return sorted({name for name in (done.stdout + others).split("\0") if name})
