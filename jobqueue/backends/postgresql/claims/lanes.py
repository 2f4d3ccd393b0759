"""The choice of jobs of ordered queues on Postgres, where a lock for each lane lets one worker at a time decide."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from jobqueue.backends.postgresql.claims import lane_statements as statements
from jobqueue.backends.postgresql.session import PostgresSession
from jobqueue.backends.sql.claims.crowd import Group
from jobqueue.backends.sql.claims.lanes import LaneClaims, Name, Unplaced
from jobqueue.clock import to_text
from jobqueue.models.fields import as_utc
from jobqueue.policy.lanes import Lane, LaneJob
from jobqueue.records import Hold

_FIRST = ("-infinity", "")


class PostgresLaneClaims(LaneClaims):
    """Reads with prepared statements."""

    _session: PostgresSession

    def unplaced(
        self, group: Group, after: tuple[object, str] | None, most: int
    ) -> tuple[list[Unplaced], tuple[object, str] | None]:
        due_at, job_id = after or _FIRST
        given = {**group._asdict(), "due_at": due_at, "id": job_id, "most": most}
        rows = self._run(statements.UNPLACED, given)
        found = [Unplaced(job_id, queue, payload, tenant) for _, job_id, lacks, queue, payload, tenant in rows if lacks]
        if len(rows) < most:
            return found, None
        return found, (to_text(as_utc(rows[-1][0], self._session.connection)), rows[-1][1])

    def place(self, lanes: Mapping[Name, Sequence[str]]) -> int:
        named = [{"queue": queue, "lane": lane, "ids": list(ids)} for (queue, lane), ids in lanes.items()]
        return len(self._run(statements.PLACE, {"lanes": json.dumps(named)}))

    def move_due(self, queues: Sequence[str], most: int) -> None:
        self._run(statements.MOVE_DUE, {"queues": list(queues), "most": most})

    def next_lanes(self, after: Mapping[str, str], most: int, hold: Hold = Hold.IS_DUE) -> list[Name]:
        given = json.dumps([{"queue": queue, "lane": lane} for queue, lane in after.items()])
        return [(row[0], row[1]) for row in self._run(statements.NEXT_LANES[hold], {"after": given, "most": most})]

    def lock_next(self, after: Mapping[str, str], most: int) -> dict[Name, bool]:
        given = json.dumps([{"queue": queue, "lane": lane} for queue, lane in after.items()])
        return {(row[0], row[1]): row[2] for row in self._run(statements.LOCK_NEXT, {"after": given, "most": most})}

    def states(self, lanes: Sequence[Name], strict: Collection[Name], most: int) -> dict[Name, Lane]:
        named = [{"queue": one[0], "lane": one[1], "is_strict": one in strict} for one in lanes]
        given = {"lanes": json.dumps(named), "queues": sorted({one[0] for one in lanes}), "most": most}
        given["ended"] = [f"{one.id} {one.fence} {one.owner}" for one in self.completions]
        states = {one: Lane() for one in lanes}
        for what, *row in self._run(statements.STATES, given):
            job = LaneJob(*row)
            state = states.get((job.queue, job.lane))
            if state is not None:
                state.add(Hold(what), job)
        return states

    def running(self, lanes: Sequence[Name]) -> dict[Name, list[str]]:
        found: dict[Name, list[str]] = {name: [] for name in lanes}
        for queue, lane, job_id in self._run(statements.RUNNING_IDS, {"queues": sorted({one[0] for one in lanes})}):
            found.setdefault((queue, lane), []).append(job_id)
        return found

    def depths(self, lanes: Sequence[Name], most: int) -> dict[Name, int]:
        given = json.dumps([{"queue": queue, "lane": lane} for queue, lane in lanes])
        rows = self._run(statements.DEPTHS, {"lanes": given, "most": most})
        return {(queue, lane): count for queue, lane, count in rows}

    def _run(self, statement: str, given: dict[str, Any]) -> list[tuple[Any, ...]]:
        return self._session.run_planned(statement, given)
