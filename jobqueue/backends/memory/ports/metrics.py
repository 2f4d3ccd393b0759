"""The metrics, in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from jobqueue.backends.memory.tables import MemoryTables
from jobqueue.backends.ports import Metrics
from jobqueue.backends.ports.gauges import Gauges
from jobqueue.policy.counters import FORGOTTEN_AFTER, placed
from jobqueue.policy.stretches import ALL, KEPT, Met, Name, begin_of, by_name, met, met_in, shared, spread, together
from jobqueue.records import COUNTED_TO, MOST_GROUPS, Depth, JobRecord, MetricSum, Scope, Stretch, Tally
from jobqueue.states import JobStatus

#: The length and the beginning of a stretch.
Place = tuple[int, datetime]


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One row of metrics; ``met`` is ``None`` until a sample is taken."""

    tally: Tally
    met: Met | None = None


class MemoryMetrics(Metrics):
    """Keeps metrics, under the lock of the tables."""

    def __init__(self, tables: MemoryTables, gauges: Gauges) -> None:
        self._tables, self._gauges = tables, gauges
        self._metrics: dict[Place, dict[Name, MetricRow]] = {}
        #: The counters, each with the moment at which it last grew.
        self._counters: dict[Name, tuple[Tally, datetime]] = {}

    def add(self, moment: datetime, tallies: Sequence[Tally]) -> bool:
        with self._tables.lock:
            for span in KEPT if tallies else ():
                rows = self._rows(span, moment)
                for name, tally in by_name(tallies).items():
                    if _has_room(rows, name):
                        row = rows.get(name, MetricRow(Tally(*name)))
                        rows[name] = replace(row, tally=together((row.tally, tally), name))
            for name, tally in placed(tallies, self._counters.keys()).items():
                so_far, grew_at = self._counters.get(name, (Tally(*name), moment))
                self._counters[name] = together((so_far, tally), name), max(grew_at, moment)
        return True

    def sample(self, moment: datetime) -> bool:
        with self._tables.lock:
            now, first = self._tables.now(), self._rows(min(KEPT), moment).get(ALL)
            if first is not None and first.met is not None:
                return True
            found = met(self.depths(), now, self._gauges.all())
            for span in KEPT:
                rows = self._rows(span, moment)
                for name in {*found, *(name for name, row in rows.items() if row.met)}:
                    if _has_room(rows, name):
                        rows[name] = replace(rows.get(name, MetricRow(Tally(*name))), met=found.get(name, Met()))
            alive = {name: one for name, one in self._counters.items() if one[1] >= now - FORGOTTEN_AFTER}
            self._counters = alive
            self._metrics = {place: rows for place, rows in self._metrics.items() if place[1] >= now - KEPT[place[0]]}
        return True

    def counters(self) -> list[Tally]:
        with self._tables.lock:
            return [tally for _name, (tally, _grew_at) in sorted(self._counters.items())]

    def _rows(self, span: int, moment: datetime) -> dict[Name, MetricRow]:
        return self._metrics.setdefault((span, begin_of(moment, span)), {})

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
        for begins_at, (place, kind), row in self._since(span, since):
            if job_type == kind and (queue == place or (job_type and not queue)):
                found.setdefault(begins_at, []).append(row)
        return [_stretch(begins_at, (queue, job_type), rows) for begins_at, rows in found.items()]

    def totals(self, by: Scope, span: int, since: datetime, queue: str = "", job_type: str = "") -> list[MetricSum]:
        found: dict[str, list[Tally]] = {}
        for _begins_at, name, row in self._since(span, since):
            fits = name != ALL and queue in ("", name[0])
            if fits and (name[1] == job_type if job_type or by is Scope.QUEUE else name[1]):
                found.setdefault(getattr(row.tally, by.value), []).append(row.tally)
        return [_part(name, together(several)) for name, several in sorted(found.items())]

    def _since(self, span: int, since: datetime) -> list[tuple[datetime, Name, MetricRow]]:
        with self._tables.lock:
            places = sorted(place for place in self._metrics if place[0] == span and place[1] >= since)
            return [(place[1], *one) for place in places for one in sorted(self._metrics[place].items())]


def _has_room(rows: Mapping[Name, MetricRow], name: Name) -> bool:
    """Return whether a row exists, or may be made: only so many kinds and queues are told apart."""
    alike = [one for one in rows if one != ALL and bool(one[1]) is bool(name[1])]
    return name == ALL or name in rows or len(alike) < MOST_GROUPS


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
    return MetricSum(name, *tally[2:7], ran=tally.ran.number, ran_for=tally.ran.total)
