"""Retention on Postgres, along the primary key."""

from __future__ import annotations

from collections.abc import Iterable

from jobqueue.backends.ports.retention import Place
from jobqueue.backends.sql.ports.retention import SqlRetention


class PostgresRetention(SqlRetention):
    """Ids are in the order in which jobs were made. Those that other programs chose are before or after all others."""

    key = "id"
    among = "id = ANY(%(keys)s)"
    locked = "FOR UPDATE SKIP LOCKED"

    def _keys(self, keys: Iterable[int | str]) -> list[int | str]:
        return list(keys)

    def before(self, job_id: str) -> Place:
        return job_id
