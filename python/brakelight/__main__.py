"""The command: ``python -m brakelight``, and the script ``brakelight``."""

from __future__ import annotations

import sys

from brakelight import _brakelight


def main() -> int:
    """Do what the command line says, and return the exit code: 0 done, 1 a run failed, 2 the input was wrong."""
    sys.stdout.flush()
    return _brakelight.command([sys.executable, "-m", "brakelight"], sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
