"""The counter that all handlers share: a mapped file with a place for each thread that runs jobs."""

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
_LOOK = 0.001
#: How many worker processes are here, and how many places are taken.
_HEAD = struct.Struct("=qq")
_PLACE = struct.Struct("=qd")


def now() -> float:
    """Read the clock that all processes of this machine share."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def make(path: Path) -> None:
    """Begin to count at zero."""
    path.write_bytes(bytes(_HEAD.size + _PLACES * _PLACE.size))


class Tally:
    """The whole file: how many jobs have begun, and when the first did."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)

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
        _, taken = _HEAD.unpack_from(self._map)
        return [_PLACE.unpack_from(self._map, _HEAD.size + number * _PLACE.size) for number in range(taken)]


def _enter(*, here: int = 0, taken: int = 0) -> tuple[mmap.mmap, int]:
    """Add to the head of the file under a lock; return the map, and how many places were taken before."""
    with Path(os.environ[VARIABLE]).open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0)
        fcntl.flock(file, fcntl.LOCK_EX)
        before = _HEAD.unpack_from(mapped)
        _HEAD.pack_into(mapped, 0, before[0] + here, before[1] + taken)
        fcntl.flock(file, fcntl.LOCK_UN)  # by hand: the map keeps the file open, and with it the lock
    return mapped, before[1]


def assemble(count: int) -> None:
    """Wait until so many worker processes are here, so that none is ahead by what the others' imports take."""
    mapped, _ = _enter(here=1)
    while _HEAD.unpack_from(mapped)[0] < count:
        time.sleep(_LOOK)


class _Mine(threading.local):
    """The place of one thread. It takes it with its first job, and then counts without any lock."""

    def __init__(self) -> None:
        self.map, taken = _enter(taken=1)
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
