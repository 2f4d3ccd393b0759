"""The metrics, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from jobqueue.backends.memory.tables import MemoryTables
from jobqueue.backends.ports import Metrics
from jobqueue.policy.stretches import ALL, KEPT, Met, Name, begin_of, by_name, met, met_in, shared, spread, together
from jobqueue.records import COUNTED_TO, MOST_GROUPS, Depth, JobRecord, MetricSum, Scope, Stretch, Tally
from jobqueue.states import JobStatus

Key = tuple[int, datetime, str, str]


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One row of metrics; ``met`` is ``None`` until a sample is taken."""

    tally: Tally
    met: Met | None = None


class MemoryMetrics(Metrics):
    """Keeps metrics under the lock that keeps the jobs."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables
        self._metrics: dict[Key, MetricRow] = {}

    def add(self, moment: datetime, tallies: Sequence[Tally]) -> bool:
        with self._tables.lock:
            for span in KEPT if tallies else ():
                for name, tally in by_name(tallies).items():
                    if self._has_room(span, moment, name):
                        key, row = self._metric(span, moment, name)
                        self._metrics[key] = replace(row, tally=together((row.tally, tally), name))
        return True

    def sample(self, moment: datetime) -> bool:
        with self._tables.lock:
            if self._metric(min(KEPT), moment, ALL)[1].met is None:
                found = met(self.depths(), self._tables.now())
                for span in KEPT:
                    begins_at = begin_of(moment, span)
                    known = {key[2:] for key, row in self._metrics.items() if key[:2] == (span, begins_at) and row.met}
                    for name in {*found, *known}:
                        if not self._has_room(span, moment, name):
                            continue
                        key, row = self._metric(span, moment, name)
                        self._metrics[key] = replace(row, met=found.get(name, Met()))
                now = self._tables.now()
                self._metrics = {key: row for key, row in self._metrics.items() if key[1] >= now - KEPT[key[0]]}
        return True

    def _has_room(self, span: int, moment: datetime, name: Name) -> bool:
        """Return whether a row exists, or may be made: only so many kinds and queues are told apart."""
        stretch = (span, begin_of(moment, span))
        known = {key[2:] for key in self._metrics if key[:2] == stretch}
        alike = [one for one in known - {ALL} if bool(one[1]) is bool(name[1])]
        return name in known | {ALL} or len(alike) < MOST_GROUPS

    def _metric(self, span: int, moment: datetime, name: Name) -> tuple[Key, MetricRow]:
        key = (span, begin_of(moment, span), *name)
        return key, self._metrics.get(key, MetricRow(Tally(*name)))

    def depths(self, cap: int = COUNTED_TO, most: int = MOST_GROUPS) -> list[Depth]:
        groups: dict[Name, list[JobRecord]] = {}
        with self._tables.lock:
            for row in self._tables.jobs.values():
                if row.status in (JobStatus.QUEUED, JobStatus.IN_PROGRESS):
                    groups.setdefault((row.queue, row.type), []).append(row)
            paused = {
                name for name in groups if {(Scope.QUEUE, name[0]), (Scope.TYPE, name[1])} & self._tables.pauses.keys()
            }
            now = self._tables.now()
        names = sorted(groups.keys() - {ALL})[:most]
        queued = [sum(row.status is JobStatus.QUEUED for row in groups[name]) for name in names]
        each = spread(cap, shared(cap, len(names)), queued)
        return [_depth(name, groups[name], now, each, paused=name in paused) for name in names]

    def stretches(self, span: int, since: datetime, queue: str = "", job_type: str = "") -> list[Stretch]:
        found: dict[datetime, list[MetricRow]] = {}
        for (_span, begins_at, place, kind), row in self._since(span, since):
            if job_type == kind and (queue == place or (job_type and not queue)):
                found.setdefault(begins_at, []).append(row)
        return [_stretch(begins_at, (queue, job_type), rows) for begins_at, rows in found.items()]

    def totals(self, by: Scope, span: int, since: datetime, queue: str = "", job_type: str = "") -> list[MetricSum]:
        found: dict[str, list[Tally]] = {}
        for key, row in self._since(span, since):
            fits = key[2:] != ALL and queue in ("", key[2])
            if fits and (key[3] == job_type if job_type or by is Scope.QUEUE else key[3]):
                found.setdefault(getattr(row.tally, by.value), []).append(row.tally)
        return [_part(name, together(several)) for name, several in sorted(found.items())]

    def _since(self, span: int, since: datetime) -> list[tuple[Key, MetricRow]]:
        with self._tables.lock:
            return [(key, row) for key, row in sorted(self._metrics.items()) if key[0] == span and key[1] >= since]


def _depth(name: Name, rows: Sequence[JobRecord], now: datetime, cap: int, *, paused: bool) -> Depth:
    queued = [row.scheduled_at for row in rows if row.status is JobStatus.QUEUED]
    due = [moment for moment in queued if moment <= now]
    running = min(len(rows) - len(queued), cap)
    oldest = min(due, default=None)
    return Depth(*name, min(len(queued), cap), len(queued) > cap, min(len(due), cap), oldest, running, paused)


def _stretch(begins_at: datetime, name: Name, rows: Sequence[MetricRow]) -> Stretch:
    looks = [row.met for row in rows if row.met]
    return Stretch(begins_at, together((row.tally for row in rows), name), *(met_in(looks) if looks else ()))


def _part(name: str, tally: Tally) -> MetricSum:
    return MetricSum(name, *tally[2:-2], ran=tally.ran.number, ran_for=tally.ran.total)
