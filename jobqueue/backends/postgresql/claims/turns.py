"""The jobs of fair queues on Postgres, where a lock for each queue lets one worker at a time decide."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

from jobqueue.backends.postgresql.claims import turn_statements as statements
from jobqueue.backends.postgresql.session import PostgresSession
from jobqueue.backends.sql.claims.crowd import Group
from jobqueue.backends.sql.claims.turns import FURTHER, KEPT, MOST_LINES, SLICE, FairClaims, Level, Look
from jobqueue.policy.limits.limits import Candidate
from jobqueue.policy.turns import Head
from jobqueue.records.turn import ServedTurn

#: Before any other place in a queue.
_FRONT = ("-infinity", "")


class PostgresFairClaims(FairClaims):
    """Reads with prepared statements."""

    def __init__(self, session: PostgresSession) -> None:
        super().__init__()
        self._session = session

    def look(self, groups: Sequence[Group], level: Level, most: int) -> Look:
        queue, priority = groups[0].queue, groups[0].priority
        by_type = {group.type: group for group in groups}
        asked = []
        for group in groups:
            due_at, job_id = level.further.get(group.type, _FRONT)
            after = level.after.get(group.type, "")
            asked.append({**group._asdict(), "after": after, "due_at": due_at, "id": job_id})
        given = {
            "groups": json.dumps(asked),
            "queue": queue,
            "priority": priority,
            "newest": level.newest,
            "lines": MOST_LINES,
            "slice": SLICE,
            "further": FURTHER if level.goes_further else 0,
            "most": most,
        }
        numbered: dict[Group, list[tuple[float, str, Head | None]]] = {group: [] for group in groups}
        look = Look(further={group: [] for group in groups if level.goes_further})
        for what, name, key, number, finish, clock, row in self._session.run_planned(statements.LOOK, given):
            if what == "line":
                look.lines.append((int(name), ServedTurn(queue, priority, key, int(number), finish, clock)))
                continue
            group = by_type[name]
            if what == "turn":
                numbered[group].append((number, key, (finish, row) if clock else None))
                continue
            job_id, keys, *due_at = json.loads(row)
            job = Candidate(priority, number, job_id, queue, name, keys)
            if what == "place":
                look.places.append((key, job))
            else:
                look.further[group].append(((due_at[0], job_id), key, job))
        look.keys = {group: [turn[1:] for turn in sorted(keys)] for group, keys in numbered.items()}
        return look

    def first(self, groups: Sequence[Group], most: Mapping[str, int]) -> list[tuple[str | None, Candidate]]:
        asked = [{**group._asdict(), "key": key, "most": count} for group in groups for key, count in most.items()]
        rows = self._session.run_planned(statements.FIRST_OF_TURNS, {"turns": json.dumps(asked)})
        queue, priority = groups[0].queue, groups[0].priority
        return [(key, Candidate(priority, due_at, one, queue, kind, keys)) for kind, key, due_at, one, keys in rows]

    def keys_of(self, ids: Collection[str]) -> dict[str, str | None]:
        rows = self._session.run_planned(statements.KEYS_OF, {"ids": list(ids)})
        return {row[0]: row[1] for row in rows}

    def add(self, lines: Sequence[ServedTurn]) -> None:
        self._session.run_planned(statements.ADD, {"lines": json.dumps([line._asdict() for line in lines])})

    def prune(self) -> None:
        self._session.run_planned(statements.PRUNE, {"kept": KEPT})
