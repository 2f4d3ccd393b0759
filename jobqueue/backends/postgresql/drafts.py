"""The storing of drafts on Postgres, with one statement for many drafts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from jobqueue.backends.postgresql import insert_statements, values
from jobqueue.backends.postgresql.session import PostgresSession
from jobqueue.backends.sql import repeat_statements
from jobqueue.backends.sql.drafts import Drafts, Holder
from jobqueue.records import Draft

#: The time of a moved job: never earlier than before, and not past the longest wait since it was enqueued.
_DUE_AT = (
    "greatest(job_queue.scheduled_at, "
    "least(excluded.scheduled_at, job_queue.created_at + %s::double precision * interval '1 second'))"
)
_MOVE, _MOVE_NEWEST = (repeat_statements.move_instead(_DUE_AT, replace_payload=replaces) for replaces in (False, True))
_LET_THROUGH = repeat_statements.let_through("@now", "@now + %s::double precision * interval '1 second'")


class PostgresDrafts(Drafts):
    """Inserts drafts in one round trip."""

    _session: PostgresSession

    def insert(self, draft: Draft) -> bool:
        return bool(self.insert_all([draft]))

    def insert_all(self, drafts: Sequence[Draft]) -> set[str]:
        return {row[0] for row in self._insert(drafts, "ON CONFLICT DO NOTHING RETURNING id")}

    def insert_or_move(self, draft: Draft) -> Holder | None:
        wait = draft.max_wait or draft.wait
        statement = _MOVE_NEWEST if draft.replace_payload else _MOVE
        rows = self._insert([draft], statement, wait.total_seconds())
        return next(iter(rows), None)

    def let_through(self, draft: Draft) -> bool:
        length = (draft.throttle or draft.wait).total_seconds()
        return bool(self._session.run(_LET_THROUGH, [draft.unique_key, draft.type, draft.id, length]))

    def lock_lanes(self, drafts: Sequence[Draft]) -> None:
        self._session.run(insert_statements.LOCKED_LANES, [values.named_lanes(drafts)])

    def in_free_lanes(self, drafts: Sequence[Draft]) -> Sequence[Draft]:
        return in_free_lanes(self._session, drafts)

    def _insert(self, drafts: Sequence[Draft], end: str, *parameters_of_end: Any) -> list[tuple[Any, ...]]:
        common, each = values.common_and_each(drafts)
        parameters = list(common.values())
        if each:
            rows = zip(*each.values(), strict=True)
            parameters.append(json.dumps([dict(zip(each, row, strict=True)) for row in rows]))
        statement = insert_statements.insert_statement(tuple(common), tuple(each), end)
        if drafts[0].lane is not None:
            parameters.insert(0, values.named_lanes(drafts))
        return self._session.run(statement, [*parameters, *parameters_of_end])


def in_free_lanes(session: PostgresSession, drafts: Sequence[Draft]) -> Sequence[Draft]:
    """Lock the lanes of drafts without waiting. Return the drafts, without the lanes that others have locked."""
    if all(one.lane is None for one in drafts):
        return drafts
    free = set(session.run(insert_statements.FREE_LANES, [values.named_lanes(drafts)]))
    return [one if (one.queue, one.lane) in free else replace(one, lane=None) for one in drafts]
