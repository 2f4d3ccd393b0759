"""Periodic measurements of a long run, and the detection of growth."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from math import sqrt
from pathlib import Path

from django.db import connection

from benchmarks.faults.crew import Worker
from benchmarks.faults.laboratory import Laboratory
from jobqueue.clock import SYSTEM

_HOUR = 3600.0
_KB = 1024
_PAGE = os.sysconf("SC_PAGE_SIZE") // _KB
#: The least number of points for a line.
_LEAST = 4

Point = tuple[float, float]


class Samples:
    """Measurements of some workers' supervisors and of the database over time."""

    def __init__(self, lab: Laboratory, workers: Sequence[Worker]) -> None:
        self._lab = lab
        self._workers = workers
        self._points: dict[str, list[Point]] = defaultdict(list)

    def take(self) -> None:
        """Measure everything once."""
        now = SYSTEM.monotonic()
        for name, value in self._measured():
            self._points[name].append((now, value))

    def _measured(self) -> Iterator[tuple[str, float]]:
        pids = [one.pid for one in self._workers]
        yield "memory of supervisors, KB", sum(map(_resident, pids))
        yield "descriptors of supervisors", sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in pids)
        yield "threads of supervisors", sum(len(list(Path(f"/proc/{pid}/task").iterdir())) for pid in pids)
        yield "processes", sum(len(one.family()) for one in self._workers)
        yield "database, KB", self._stored() / _KB
        if self._lab.database == "postgres":
            with connection.cursor() as cursor:
                cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
                yield "connections", float(cursor.fetchone()[0])

    def _stored(self) -> float:
        """Return the size of the database in bytes."""
        if self._lab.database == "sqlite":
            return float(
                sum(path.stat().st_size for path in Path(self._lab.place.address).parent.glob("queue.sqlite3*"))
            )
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_database_size(current_database())")
            return float(cursor.fetchone()[0])

    def last(self, name: str) -> float:
        """Return the last measurements."""
        return self._points[name][-1][1]

    def first(self, name: str) -> float:
        """Return the first measurements."""
        return self._points[name][0][1]

    def slopes(self) -> Iterator[tuple[str, str]]:
        """Return the growth of each value per hour, with its spread at 95 %."""
        for name, measured in self._points.items():
            points = measured[len(measured) // 4 :]  # first uses aren't leaks
            if len(points) >= _LEAST:
                growth, spread = slope(points)
                yield f"{name} an hour", f"{growth * _HOUR:+.0f} ± {spread * _HOUR:.0f}"


def slope(points: Sequence[Point]) -> tuple[float, float]:
    """Fit a line. Return its slope, and twice the standard error of that."""
    count = len(points)
    x_mean, y_mean = (sum(one[axis] for one in points) / count for axis in (0, 1))
    width = sum((x - x_mean) ** 2 for x, _ in points)
    growth = sum((x - x_mean) * (y - y_mean) for x, y in points) / width
    missed = sum((y - y_mean - growth * (x - x_mean)) ** 2 for x, y in points)
    return growth, 2 * sqrt(missed / (count - 2) / width)


def _resident(pid: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    return 0
