"""Test support: a virtual clock, and the contract suite for backends."""

from __future__ import annotations

from jobqueue.testing.clock import VirtualClock

__all__ = ["VirtualClock"]
