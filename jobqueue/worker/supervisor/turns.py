"""The turns of a supervisor: how long they take."""

from __future__ import annotations


class Turns:
    """How many turns the supervisor took, and how long they took in seconds. Nothing else is done meanwhile."""

    def __init__(self) -> None:
        self.number, self.seconds, self.longest = 0, 0.0, 0.0

    def add(self, seconds: float) -> None:
        """Add a turn."""
        self.number += 1
        self.seconds += seconds
        self.longest = max(self.longest, seconds)
