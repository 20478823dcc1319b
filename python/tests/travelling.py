"""Classes that other processes import."""

from __future__ import annotations

from typing import Any

import brakelight as bl


class Steady(bl.Controller):
    """A window of so many packets."""

    def __init__(self, connection: Any, packets: int = 30) -> None:
        super().__init__(connection)
        self.packets = packets
        self.connection = connection
        self.last: Any = None

    def on_ack(self, event: Any) -> None:
        self.cwnd = self.packets * self.mss
        self.last = event
