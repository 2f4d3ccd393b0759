"""The counter that all handlers share: a mapped file in which each thread that runs jobs has a place of its own."""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import threading
import time
from pathlib import Path

VARIABLE = "JOBQUEUE_BENCH_TALLY"

_PLACES = 4_096
_HEAD = struct.Struct("=q")
_PLACE = struct.Struct("=qd")


def now() -> float:
    """Read the clock that all processes of this machine share."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


class Tally:
    """The whole file: how many jobs have begun, and when the first did."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)

    @classmethod
    def make(cls, path: Path) -> Tally:
        """Begin to count at zero."""
        path.write_bytes(bytes(_HEAD.size + _PLACES * _PLACE.size))
        return cls(path)

    def close(self) -> None:
        """Let go of the file."""
        self._map.close()

    def count(self) -> int:
        """Say how many jobs have begun."""
        return sum(count for count, _ in self._taken())

    def first(self) -> float:
        """Say when the first job began."""
        return min(first for _, first in self._taken() if first)

    def _taken(self) -> list[tuple[int, float]]:
        (taken,) = _HEAD.unpack_from(self._map)
        return [_PLACE.unpack_from(self._map, _HEAD.size + number * _PLACE.size) for number in range(taken)]


class _Mine(threading.local):
    """The place of one thread. It takes it with its first job, and then counts without any lock."""

    def __init__(self) -> None:
        with Path(os.environ[VARIABLE]).open("r+b") as file:
            self.map = mmap.mmap(file.fileno(), 0)
            fcntl.flock(file, fcntl.LOCK_EX)
            (taken,) = _HEAD.unpack_from(self.map)
            _HEAD.pack_into(self.map, 0, taken + 1)
            fcntl.flock(file, fcntl.LOCK_UN)  # by hand: the map keeps the file open, and with it the lock
        self.offset = _HEAD.size + taken * _PLACE.size
        self.count = 0
        self.first = now()


class _Counter:
    """What begin() counts with, made by the first job: a process that runs none has no file."""

    mine: _Mine | None = None


def begin() -> None:
    """Count a job that begins."""
    mine = _Counter.mine
    if mine is None:
        mine = _Counter.mine = _Mine()
    mine.count += 1
    _PLACE.pack_into(mine.map, mine.offset, mine.count, mine.first)
