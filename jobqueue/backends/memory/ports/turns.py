"""Turns in memory, and the choice of jobs of fair queues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta

from jobqueue.backends.memory.tables import MemoryTables
from jobqueue.backends.ports.turns import MOST_COUNTED, Turns
from jobqueue.policy.limits.limits import Allowances, Candidate, Chosen, LimitBook
from jobqueue.policy.turns import NO_VALUE, VirtualTimes, before, in_turns
from jobqueue.records import JobRecord, TurnPlace, TurnShare
from jobqueue.records.queue_options import QueueOptions
from jobqueue.states import JobStatus

_KEPT = timedelta(seconds=60)


class MemoryTurns(Turns):
    """Turns by the lines of claims."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def place_of(self, job: JobRecord, options: QueueOptions) -> TurnPlace:
        with self._tables.lock:
            own = job.fair_key or NO_VALUE
            lines: dict[str, list[Candidate]] = {}
            for row in sorted(self._due(job.queue), key=_order):
                if row.priority == job.priority:
                    lines.setdefault(row.fair_key or NO_VALUE, []).append(_candidate(row))
            times = self._times(job.queue, job.priority, options)
            jobs = sum(one < _candidate(job) for one in lines.get(own, ()))
            first = {key: (line[0].scheduled_at, line[0].id) for key, line in lines.items()}
            return TurnPlace(options.fair or "", own, before(times, own, first), jobs)

    def shares(self, queue: str, options: QueueOptions, most: int = 20) -> list[TurnShare]:
        with self._tables.lock:
            waiting = Counter(row.fair_key or NO_VALUE for row in self._due(queue))
            in_progress = (row for row in self._tables.jobs.values() if row.status is JobStatus.IN_PROGRESS)
            running = Counter(row.fair_key or NO_VALUE for row in in_progress if row.queue == queue)
            served: Counter[str] = Counter()
            for line, at in self._tables.turns:
                if line.queue == queue and at > self._tables.now() - _KEPT:
                    served[line.key] += line.jobs
            found = [
                TurnShare(
                    key,
                    options.weights.get(key, 1.0),
                    min(waiting[key], MOST_COUNTED),
                    running[key],
                    served[key],
                    waiting[key] > MOST_COUNTED,
                )
                for key in {*waiting, *running, *served}
            ]
            return sorted(found, key=lambda one: (-one.served, -one.running, -one.waiting, one.key))[:most]

    def _due(self, queue: str) -> Iterator[JobRecord]:
        now = self._tables.now()
        rows = self._tables.jobs.values()
        return (row for row in rows if (row.queue, row.status) == (queue, JobStatus.QUEUED) and row.scheduled_at <= now)

    # Claims

    def in_order(
        self, rows: Sequence[JobRecord], book: LimitBook, allowances: Allowances, chosen: Chosen
    ) -> dict[tuple[str, int], Iterator[tuple[str, Candidate]]]:
        """Return the admitted jobs of fair queues in the order of their turns, by queue and priority."""
        lines: dict[tuple[str, int], dict[str, list[Candidate]]] = {}
        for row in rows:
            if book.is_fair(row.queue):
                of_level = lines.setdefault((row.queue, row.priority), {})
                of_level.setdefault(row.fair_key or NO_VALUE, []).append(_candidate(row))

        def admits(one: Candidate) -> bool:
            is_admitted = allowances.left(one.queue, one.type, one.keys, 1) > 0
            if not is_admitted:
                chosen.withhold(allowances.wait(one.queue, one.type, one.keys))
            return is_admitted

        return {
            place: in_turns(self._times(*place, book.options_of(place[0])), of_level, admits)
            for place, of_level in lines.items()
        }

    def record(self, rows: Sequence[JobRecord], book: LimitBook) -> None:
        """Record what a claim took from turns, and forget old lines."""
        now = self._tables.now()
        self._tables.turns = [one for one in self._tables.turns if one[1] > now - _KEPT]
        counts: dict[tuple[str, int], Counter[str]] = {}
        for row in rows:
            if book.is_fair(row.queue):
                counts.setdefault((row.queue, row.priority), Counter())[row.fair_key or NO_VALUE] += 1
        for place, count in counts.items():
            times = self._times(*place, book.options_of(place[0]))
            self._tables.turns += [(line, now) for line in times.lines(*place, count)]

    def _times(self, queue: str, priority: int, options: QueueOptions | None) -> VirtualTimes:
        times = VirtualTimes(options.weights if options else None)
        times.recall(line for line, _at in self._tables.turns if (line.queue, line.priority) == (queue, priority))
        return times


def _order(row: JobRecord) -> tuple[object, ...]:
    return (row.priority, row.scheduled_at, row.id)


def _candidate(row: JobRecord) -> Candidate:
    return Candidate(row.priority, row.scheduled_at, row.id, row.queue, row.type, row.concurrency_key)
