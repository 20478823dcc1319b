"""What cargo builds for the gate: one set of packages and features for clippy, the documentation and the tests."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .ledger import Failure, say

# They take minutes to build, and only their own tests need them: `scripts/check heavy` builds these. `stacks` defines a function
# of the C library besides, which is no other test's business.
HEAVY_FEATURES = ("onnx", "s2n", "stacks", "stacks-c")
# Test programs that share the kernel's devices and namespaces, or look for what others leave there.
KERNEL = {
    "brakelight-cli": ("emulate", "emulated", "guides", "inputs", "kernel_tcp", "kills", "sch_abc", "shaper"),
    "brakelight-emulator": ("brakelight_emulator", "devices", "emulation", "measure"),
    "brakelight-tcp": ("brakelight_tcp",),
}


@dataclass
class Program:
    """A test program that cargo built."""

    package: str
    # The name of its target, and whether that is the library, a program or a file of tests.
    target: str
    kind: str
    path: str
    folder: Path

    def uses_kernel(self) -> bool:
        """Whether it must not run beside others that use the kernel."""
        return self.target in KERNEL.get(self.package, ())

    def place(self) -> str:
        """How `crates/testkit/src/real_time.rs` calls it: `lib` for unit tests, else its name."""
        return "lib" if self.kind in ("lib", "rlib", "cdylib") else self.target


class Workspace:
    """The packages, their features, and who depends on whom."""

    def __init__(self, root: Path) -> None:
        self.root = root
        # Cargo exits with an error if the lock file would have to change.
        command = ["cargo", "metadata", "--format-version", "1", "--locked"]
        done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, check=False)
        if done.returncode != 0:
            raise Failure("Cargo.lock does not fit the manifests: run `cargo metadata` and commit what changed")
        metadata: dict[str, Any] = json.loads(done.stdout)
        members = set(metadata["workspace_members"])
        self.packages = {row["name"]: row for row in metadata["packages"] if row["id"] in members}
        self.target = Path(metadata["target_directory"])

    def folder(self, package: str) -> Path:
        return Path(self.packages[package]["manifest_path"]).parent

    def owner(self, file: str) -> str | None:
        """The package in whose folder a file lies."""
        path = self.root / file
        inside = [name for name in self.packages if self.folder(name) in path.parents]
        return max(inside, key=lambda name: len(str(self.folder(name))), default=None)

    def needing(self, packages: set[str]) -> set[str]:
        """These packages and all that depend on them, in their tests too."""
        found = set(packages)
        while True:
            more = {
                name for name, row in self.packages.items()
                if any(dependency["name"] in found for dependency in row["dependencies"])
            }  # fmt: skip
            if more <= found:
                return found
            found |= more

    def needed_by(self, package: str) -> set[str]:
        """This package and all that it depends on, in its tests too."""
        found = {package}
        while True:
            more = {row["name"] for name in found for row in self.packages[name]["dependencies"]} & set(self.packages)
            if more <= found:
                return found
            found |= more

    def strangers(self, package: str) -> list[Path]:
        """The folders of the packages that this one does not depend on."""
        return [self.folder(name) for name in sorted(set(self.packages) - self.needed_by(package))]

    def selection(self) -> list[str]:
        """The arguments that select what the gate builds. The same for each call, so that all share their builds."""
        features = [
            f"{name}/{feature}" for name, row in sorted(self.packages.items()) for feature in row["features"]
            if feature not in HEAVY_FEATURES and feature != "default"
        ]  # fmt: skip
        return ["--workspace", "--locked", "--features", ",".join(features)]

    def build(self, targets: list[str]) -> list[Program]:
        """Builds `targets` (arguments of cargo) and returns the test programs among them."""
        command = ["cargo", "build", *self.selection(), *targets, "--message-format=json-render-diagnostics"]
        done = subprocess.run(command, cwd=self.root, stdout=subprocess.PIPE, check=False)
        if done.returncode != 0:
            raise Failure("the tests do not build")
        names = {row["id"]: name for name, row in self.packages.items()}
        programs = []
        for line in done.stdout.splitlines():
            message = json.loads(line)
            if message["reason"] != "compiler-artifact" or not message["executable"] or not message["profile"]["test"]:
                continue
            package = names[message["package_id"]]
            target = message["target"]
            program = Program(package, target["name"], target["kind"][0], message["executable"], self.folder(package))
            programs.append(program)
        return programs

    def environment(self, program: Program) -> dict[str, str]:
        """What cargo sets for a test program that it runs."""
        row = self.packages[program.package]
        libraries = [str(self.target / "debug" / "deps"), str(self.target / "debug")]
        if "LD_LIBRARY_PATH" in os.environ:
            libraries.append(os.environ["LD_LIBRARY_PATH"])
        return {
            "CARGO": "cargo",
            "CARGO_MANIFEST_DIR": str(program.folder),
            "CARGO_PKG_NAME": program.package,
            "CARGO_PKG_VERSION": row["version"],
            "LD_LIBRARY_PATH": os.pathsep.join(libraries),
        }


def waiting_tests(target: Path) -> list[list[str]]:
    """The tests that wait for a clock or the kernel: package, place and name of each. Empty before they are built."""
    program = target / "debug" / "examples" / "real_time"
    if not program.is_file():
        return []
    text = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [line.split() for line in text.splitlines()]


def size(folder: Path) -> int:
    """The bytes that the files under a folder take on the disk; one of several names counts once."""
    seen: set[int] = set()
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            try:
                status = os.lstat(os.path.join(place, name))
            except OSError:
                continue
            if status.st_ino not in seen:
                seen.add(status.st_ino)
                total += status.st_blocks * 512
    return total


def warn_of_disk(folder: Path, needed: int) -> None:
    """Raises `Failure` where a build of `needed` bytes will not fit on the disk, counting what is built already."""
    folder.mkdir(parents=True, exist_ok=True)
    status = os.statvfs(folder)
    free = status.f_bavail * status.f_frsize
    missing = needed - size(folder) - free
    if missing > 0:
        raise Failure(
            f"{folder} needs about {needed / 1e9:.0f} GB for everything, and {free / 1e9:.1f} GB are free: "
            f"free {missing / 1e9:.1f} GB, or name a larger disk in CARGO_TARGET_DIR"
        )
    say(f"{free / 1e9:.1f} GB free; a full build takes about {needed / 1e9:.0f} GB")
