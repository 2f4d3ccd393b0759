"""The snapshot: what the dashboard shows, read at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlencode

from django.http import QueryDict

from jobqueue.admin.search.results import CAP
from jobqueue.backends import current
from jobqueue.handlers.options import NAME_LENGTH
from jobqueue.observe import health
from jobqueue.observe.health import Reading
from jobqueue.observe.metrics import WINDOWS, Figures, Window, figures, in_progress
from jobqueue.records import Depth, Filter, WorkerRecord
from jobqueue.relay.outbox import waiting_in
from jobqueue.states import JobStatus


class Asked(NamedTuple):
    """The window, queue and type in a URL. An empty name stands for all."""

    window: Window
    queue: str = ""
    type: str = ""

    @classmethod
    def of(cls, query: QueryDict) -> Asked:
        """Read the query of a URL. An unknown window becomes the first one."""
        window = WINDOWS.get(query.get("window", ""), next(iter(WINDOWS.values())))
        return cls(window, _name(query.get("queue", "")), _name(query.get("type", "")))

    @property
    def names(self) -> dict[str, str]:
        """Return the names that narrow the page."""
        return {name: value for name, value in (("type", self.type), ("queue", self.queue)) if value}

    @property
    def query(self) -> str:
        """Return the query of a URL."""
        return urlencode({"window": self.window.name, **self.names})


def _name(given: str) -> str:
    # Postgres rejects text with a NUL, and no name has one.
    return given.strip()[:NAME_LENGTH].replace("\0", "\N{REPLACEMENT CHARACTER}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The values that were read, narrowed to the queue and type in the URL."""

    asked: Asked
    health: Reading
    in_progress: int
    dead_letters: int
    is_dead_capped: bool
    workers: Sequence[WorkerRecord]
    figures: Figures

    @property
    def now(self) -> datetime:
        """Return when the values were read."""
        return self.health.now

    @property
    def depths(self) -> Sequence[Depth]:
        """Return what waits and runs, by queue and type."""
        return self.health.depths

    @property
    def alive(self) -> list[WorkerRecord]:
        """Return the workers that are alive."""
        return [one for one in self.workers if self.health.is_alive(one)]

    @property
    def capped(self) -> bool:
        """Return whether more is queued than was counted."""
        return self.health.in_part or any(one.capped for one in self.depths)

    @property
    def oldest(self) -> timedelta | None:
        """Return how long the oldest due job has waited."""
        moments = [one.oldest_due_at for one in self.depths if one.oldest_due_at]
        return max(self.now - min(moments), timedelta(0)) if moments else None


def look(asked: Asked) -> Snapshot:
    """Read everything. The number of queries doesn't depend on the number of rows."""
    backend = current()
    seen = health.look(backend, waiting_in(backend)).narrowed(asked.queue, asked.type)
    dead_letters, is_dead_capped = _dead_letters(seen, asked)
    return Snapshot(
        asked=asked,
        health=seen,
        in_progress=in_progress(seen.depths, seen.in_part, asked.queue, asked.type),
        dead_letters=dead_letters,
        is_dead_capped=is_dead_capped,
        workers=[one for one in seen.workers if one.serves(asked.queue or None, asked.type or None)],
        figures=figures(asked.window, asked.queue, asked.type),
    )


def _dead_letters(seen: Reading, asked: Asked) -> tuple[int, bool]:
    """Return how many dead letters were counted, and whether there are more."""
    if not seen.dead_in_part:
        return sum(one.count for one in seen.dead_letters), any(one.capped for one in seen.dead_letters)
    # The queue or type in the URL may be among those that weren't counted.
    queues, types = frozenset({asked.queue} - {""}), frozenset({asked.type} - {""})
    wanted = Filter(statuses=frozenset({JobStatus.DEAD_LETTER}), queues=queues, types=types)
    found = current().jobs.count(wanted, CAP + 1)
    return min(found, CAP), found > CAP
