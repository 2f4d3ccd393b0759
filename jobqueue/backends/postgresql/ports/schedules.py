"""Jobs of schedules on Postgres."""

from __future__ import annotations

import json
from collections.abc import Sequence

from jobqueue.backends.postgresql.drafts import in_free_lanes
from jobqueue.backends.postgresql.insert_statements import DRAFTED, NEXT_POSITION
from jobqueue.backends.postgresql.session import PostgresSession
from jobqueue.backends.postgresql.values import columns_of
from jobqueue.backends.sql.ports.schedules import Slot, SqlSchedules
from jobqueue.clock import to_text

_TYPES = {name: kind for name, kind in DRAFTED.items() if name not in ("scheduled_at", "delay")}
_TYPES |= {"schedule_id": "text", "slot_at": "timestamptz"}
# JSON within JSON travels as text.
_FIELDS = ", ".join(f"{name} {kind.replace('jsonb', 'text')}" for name, kind in _TYPES.items())
_VALUES = {name: f"{name}::{kind}" for name, kind in _TYPES.items()} | {"parallel": "coalesce(parallel, TRUE)"}
_INSERT = f"""
INSERT INTO job_queue ({", ".join(_VALUES)}, lane_position, scheduled_at, created_at, updated_at)
SELECT {", ".join(_VALUES.values())}, CASE WHEN lane IS NOT NULL THEN {NEXT_POSITION} END,
       coalesce(scheduled_at, @now), @now, @now
  FROM json_to_recordset(%s::json) AS d(
       {_FIELDS}, scheduled_at timestamptz)
ON CONFLICT DO NOTHING RETURNING id
"""


class PostgresSchedules(SqlSchedules):
    """Inserts jobs in one round trip."""

    _session: PostgresSession

    def insert(self, slots: Sequence[Slot]) -> set[str]:
        drafts = in_free_lanes(self._session, [draft for _, _, draft in slots])  # other schedules don't wait
        rows = [
            columns_of(draft) | {"schedule_id": schedule_id, "slot_at": slot and to_text(slot)}
            for (schedule_id, slot, _), draft in zip(slots, drafts, strict=True)
        ]
        return {row[0] for row in self._session.run(_INSERT, [json.dumps(rows)])}
