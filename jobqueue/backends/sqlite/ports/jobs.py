"""The reading of jobs on SQLite."""

from __future__ import annotations

from jobqueue.backends.sql.ports.jobs import SqlJobReader
from jobqueue.records import Filter, JobRecord


class SqliteJobReader(SqlJobReader):
    """Reads jobs page by page.

    An id that isn't valid UTF-8 is read as a different text. The next page starts after that text, so it may contain
    the same job again. Such jobs are left out, because otherwise the pages would never end.
    """

    def find(
        self, wanted: Filter, limit: int, after_id: str | None = None, newest_first: bool = False
    ) -> list[JobRecord]:
        found = super().find(wanted, limit, after_id, newest_first)
        return [one for one in found if after_id is None or (one.id < after_id if newest_first else one.id > after_id)]

    def find_ids(self, wanted: Filter, limit: int, after_id: str | None = None) -> list[str]:
        return [one for one in super().find_ids(wanted, limit, after_id) if after_id is None or one > after_id]
