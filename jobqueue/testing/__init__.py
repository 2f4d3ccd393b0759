"""For tests: a clock that moves when told to, and the suite that every backend has to pass."""

from __future__ import annotations

from jobqueue.testing.clock import VirtualClock

__all__ = ["VirtualClock"]
