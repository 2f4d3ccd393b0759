"""Jobs of schedules on SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from jobqueue.backends.sql.ports.schedules import Slot, SqlSchedules
from jobqueue.backends.sql.statements import INSERT_COLUMNS
from jobqueue.backends.sqlite.statements import INSERT_IN_LANE, MARKS, values_in_lane, values_to_insert
from jobqueue.clock import to_text

_INSERT = (
    f"INSERT INTO job_queue ({INSERT_COLUMNS}, schedule_id, slot_at) VALUES ({MARKS}, %s, %s) ON CONFLICT DO NOTHING"
)
_INSERT_IN_LANE = INSERT_IN_LANE.replace(INSERT_COLUMNS, f"schedule_id, slot_at, {INSERT_COLUMNS}").replace(
    "VALUES (", "VALUES (%s, %s, ", 1
)


class SqliteSchedules(SqlSchedules):
    """Inserts jobs one by one, because there are no round trips to a server."""

    def insert(self, slots: Sequence[Slot]) -> set[str]:
        now, stored = self._session.now(), set[str]()
        with self._session.connection.cursor() as cursor:
            for schedule_id, slot, draft in slots:
                of_slot = (schedule_id, None if slot is None else to_text(slot))
                if draft.lane is None:
                    cursor.execute(_INSERT, (*values_to_insert(draft, now), *of_slot))
                else:
                    cursor.execute(_INSERT_IN_LANE, (*of_slot, *values_in_lane(draft, now)))
                if cursor.rowcount == 1:
                    stored.add(draft.id)
        return stored
