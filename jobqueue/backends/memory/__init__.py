"""The backend in memory, for tests."""

from __future__ import annotations

from jobqueue.backends.memory.backend import MemoryBackend

__all__ = ["MemoryBackend"]
