"""What the tests share."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def dumbbell() -> dict[str, Any]:
    """One flow of Cubic on a link of 12 Mbit/s, for three seconds."""
    return {
        "duration": "3s",
        "link": [{"name": "bottleneck", "rate": "12Mbps", "buffer": "100pkt"}],
        "flow": [{"name": "main", "controller": "cubic", "rtt": "40ms", "path": ["bottleneck"]}],
    }
