"""The choice of jobs of ordered queues on SQLite, where the claim's transaction holds the only write lock."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from jobqueue.backends.sql.claims.crowd import Group
from jobqueue.backends.sql.claims.lanes import LaneClaims, Name, Unplaced
from jobqueue.backends.sqlite.session import SqliteSession
from jobqueue.backends.sqlite.statements import NEXT_POSITION, next_position_values
from jobqueue.clock import to_text
from jobqueue.policy.lanes import Lane, LaneJob
from jobqueue.records import Hold

# `likelihood` keeps SQLite from searching by this condition of the indexes instead of `lane = …`.
_IN_LANE = "likelihood(lane > '', 1.0) AND lane_position IS NOT NULL"
# The conditions of the indexes job_queue_lane_due, job_queue_lane_later and job_queue_lane_waiting, and
# job_queue_lane_dead.
_DUE = f"status = 'queued' AND {_IN_LANE} AND scheduled_at <= updated_at"
_LATER = f"status = 'queued' AND {_IN_LANE} AND scheduled_at > updated_at"
_DEAD = f"status = 'dead_letter' AND {_IN_LANE}"

# Over job_queue_ready_type: some due jobs of a group, and of those without a place what says their lane.
UNPLACED = f"""
SELECT scheduled_at, id, {_IN_LANE} IS NOT TRUE, queue, CASE WHEN {_IN_LANE} THEN '' ELSE payload END, tenant
  FROM job_queue
 WHERE status = 'queued' AND queue = :queue AND type = :type AND priority = :priority
   AND scheduled_at <= :now AND (scheduled_at, id) > (:due_at, :id)
 ORDER BY scheduled_at, id LIMIT :most
""".replace(f"{_IN_LANE} IS NOT TRUE", f"({_IN_LANE}) IS NOT TRUE")
PLACE = f"UPDATE job_queue SET lane = ?, lane_position = {NEXT_POSITION.replace('%s', '?')} WHERE id = ?"
# Over job_queue_lane_later. A job is due if its last change was at or after the moment for which it is scheduled.
MOVE_DUE = f"""
UPDATE job_queue SET updated_at = :now WHERE rowid IN (
    SELECT rowid FROM job_queue INDEXED BY job_queue_lane_later
     WHERE {_LATER} AND queue = :queue AND scheduled_at <= :now ORDER BY queue, scheduled_at, id LIMIT :most)
"""
# A step of a skip-scan over job_queue_lane_due (queue, lane, lane_position, id).
_INDEXES = {
    Hold.IS_DUE: f"job_queue INDEXED BY job_queue_lane_due WHERE {_DUE}",
    Hold.WAITS: f"job_queue INDEXED BY job_queue_lane_waiting WHERE {_LATER}",
    Hold.IS_DEAD: f"job_queue INDEXED BY job_queue_lane_dead WHERE {_DEAD}",
}
NEXT_LANE = {
    hold: f"SELECT lane FROM {index} AND queue = :queue AND lane > :lane ORDER BY lane, lane_position, id LIMIT 1"
    for hold, index in _INDEXES.items()
}
_JOB = "lane_position, id, queue, lane, type, concurrency_key, priority, scheduled_at, parallel"
_FIRST = "AND queue = :queue AND lane = :lane {more} ORDER BY lane_position, id LIMIT :most"
FIRST = {
    hold: f"SELECT {_JOB} FROM {index} " + _FIRST.format(more="AND scheduled_at <= :now" if hold is Hold.IS_DUE else "")
    for hold, index in _INDEXES.items()
}
DEPTH = "SELECT " + " + ".join(
    f"(SELECT count(*) FROM (SELECT 1 FROM {_INDEXES[hold]} {_FIRST.format(more='')}))"
    for hold in (Hold.IS_DUE, Hold.WAITS)
)
# Over job_queue_leased, which has the running jobs alone.
_RUNNING = f"FROM job_queue WHERE status = 'in_progress' AND lease_until > '' AND {_IN_LANE}"
# One job of each lane: a barrier, if one runs. With min(), SQLite takes the other columns from the row of the minimum.
RUNNING = f"SELECT {_JOB.removesuffix('parallel')}min(parallel) {_RUNNING} GROUP BY queue, lane"
RUNNING_IDS = f"SELECT queue, lane, id {_RUNNING}"


class SqliteLaneClaims(LaneClaims):
    """Reads and writes through the driver."""

    _session: SqliteSession

    def unplaced(
        self, group: Group, after: tuple[object, str] | None, most: int
    ) -> tuple[list[Unplaced], tuple[object, str] | None]:
        due_at, job_id = after or ("", "")
        rows = self._run(UNPLACED, {**group._asdict(), "due_at": due_at, "id": job_id, "most": most})
        found = [Unplaced(job_id, queue, payload, tenant) for _, job_id, lacks, queue, payload, tenant in rows if lacks]
        return found, None if len(rows) < most else (rows[-1][0], rows[-1][1])

    def place(self, lanes: Mapping[Name, Sequence[str]]) -> int:
        now = self._session.now()
        with self._session.driver() as driver:
            for (queue, lane), ids in lanes.items():
                for job_id in ids:
                    driver.execute(PLACE, (lane, *next_position_values(queue, lane, now), job_id))
        return sum(map(len, lanes.values()))

    def move_due(self, queues: Sequence[str], most: int) -> None:
        for queue in queues:
            self._run(MOVE_DUE, {"queue": queue, "most": most})

    def next_lanes(self, after: Mapping[str, str], most: int, hold: Hold = Hold.IS_DUE) -> list[Name]:
        found: list[Name] = []
        for queue, lane in after.items():
            last = lane
            for _ in range(most):
                rows = self._run(NEXT_LANE[hold], {"queue": queue, "lane": last})
                if not rows:
                    break
                last = rows[0][0]
                found.append((queue, last))
        return found

    def lock_next(self, after: Mapping[str, str], most: int) -> dict[Name, bool]:
        return dict.fromkeys(self.next_lanes(after, most), True)

    def states(self, lanes: Sequence[Name], strict: Collection[Name], most: int) -> dict[Name, Lane]:
        states = {one: Lane() for one in lanes}
        with self._session.any_text():
            running = self._run(RUNNING, {})
        for job in map(LaneJob._make, running):
            if (state := states.get((job.queue, job.lane))) is not None:
                state.add(Hold.RUNS, job)
        for name, state in states.items():
            asked = {Hold.IS_DUE: most} | ({Hold.WAITS: 1, Hold.IS_DEAD: 1} if name in strict else {})
            for hold, number in asked.items():
                given = {"queue": name[0], "lane": name[1], "most": number}
                # Text that is not UTF-8 must be noticed in a job that is to start. A dead letter may have any.
                with nullcontext() if hold is Hold.IS_DUE else self._session.any_text():
                    rows = self._run(FIRST[hold], given)
                for row in rows:
                    state.add(hold, LaneJob(*row))
        return states

    def running(self, lanes: Sequence[Name]) -> dict[Name, list[str]]:
        found: dict[Name, list[str]] = {name: [] for name in lanes}
        for queue, lane, job_id in self._run(RUNNING_IDS, {}):
            found.setdefault((queue, lane), []).append(job_id)
        return found

    def depths(self, lanes: Sequence[Name], most: int) -> dict[Name, int]:
        given = {name: {"queue": name[0], "lane": name[1], "most": most} for name in lanes}
        return {name: self._run(DEPTH, one)[0][0] for name, one in given.items()}

    def _run(self, statement: str, given: dict[str, Any]) -> list[tuple[Any, ...]]:
        with self._session.driver() as driver:
            return driver.execute(statement, given | {"now": to_text(self._session.now())}).fetchall()
