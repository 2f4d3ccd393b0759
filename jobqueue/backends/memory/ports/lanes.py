"""Lanes in memory, and the choice of their jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jobqueue.backends.memory.tables import MemoryTables
from jobqueue.backends.ports.lanes import Lanes
from jobqueue.policy.lanes import Lane, LaneJob, in_places, lane_of, record_of
from jobqueue.policy.limits.limits import Candidate, LimitBook
from jobqueue.records import Hold, JobRecord, LaneHold, LaneRecord
from jobqueue.states import JobStatus


class MemoryLanes(Lanes):
    """Derives lanes from the jobs."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def all(self, book: LimitBook, queues: Sequence[str], most: int = 100) -> list[LaneRecord]:
        with self._tables.lock:
            found: list[LaneRecord] = []
            for queue in sorted(queues):
                lanes = {name: lane for name, lane in self._lanes(book).items() if name[0] == queue}
                held = [(name, lane) for name, lane in sorted(lanes.items()) if self._depth(name) or lane.held]
                found += [
                    record_of(name, lane, self._depth(name), [one.id for one in lane.running])
                    for name, lane in held[:most]
                ]
            return found

    def hold_of(self, book: LimitBook, job: JobRecord) -> LaneHold | None:
        if not book.is_ordered(job.queue) or not job.lane or job.lane_position is None:
            return None
        with self._tables.lock:
            lane = self._lanes(book).get((job.queue, job.lane), Lane())
        return lane.hold_of((job.lane_position, job.id), job.parallel)

    def choose(self, rows: Sequence[JobRecord], book: LimitBook) -> tuple[list[tuple[Candidate, Candidate]], int]:
        """Return the jobs of lanes that may start, each with the one whose place it takes, and how many lanes hold any.

        ``rows`` are the due jobs that a worker may run.
        """
        self._place([row for row in rows if book.is_ordered(row.queue)], book)
        found: list[tuple[Candidate, Candidate]] = []
        ids, withheld = {row.id for row in rows}, 0
        for lane in self._lanes(book).values():
            jobs = [one for one in lane.may_start() if one.id in ids]
            found += in_places(jobs)
            withheld += len(jobs) < len(lane.due)
        return found, withheld

    def _place(self, rows: Iterable[JobRecord], book: LimitBook) -> None:
        """Give jobs of ordered queues that have no place one at the end of their lanes."""
        for row in rows:
            options = book.options_of(row.queue)
            if options is not None and (not row.lane or row.lane_position is None):
                lane = lane_of(options.ordered, row.payload, row.tenant)
                self._tables.change(row.id, lane=lane, lane_position=self._tables.next_position())

    def _depth(self, name: tuple[str, str]) -> int:
        rows = self._tables.jobs.values()
        return sum((row.queue, row.lane) == name and row.status is JobStatus.QUEUED for row in rows)

    def _lanes(self, book: LimitBook) -> dict[tuple[str, str], Lane]:
        lanes: dict[tuple[str, str], Lane] = {}
        now = self._tables.now()
        for row in sorted(self._tables.jobs.values(), key=lambda row: (row.lane_position or 0, row.id)):
            options = book.options_of(row.queue)
            if options is None or not options.ordered or not row.lane or row.lane_position is None:
                continue
            match row.status:
                case JobStatus.IN_PROGRESS if row.lease_until is not None:
                    hold = Hold.RUNS
                case JobStatus.QUEUED:
                    hold = Hold.IS_DUE if row.scheduled_at <= now else Hold.WAITS
                case JobStatus.DEAD_LETTER:
                    hold = Hold.IS_DEAD
                case _:
                    continue
            lane = lanes.setdefault((row.queue, row.lane), Lane())
            if options.strict or hold in (Hold.IS_DUE, Hold.RUNS):
                lane.add(hold, _job_of(row, row.lane, row.lane_position))
        return lanes


def _job_of(row: JobRecord, lane: str, position: int) -> LaneJob:
    rest = (row.type, row.concurrency_key, row.priority, row.scheduled_at, row.parallel)
    return LaneJob(position, row.id, row.queue, lane, *rest)
