"""Groups of dead letters by error: how many of each, since when, and in which of the last hours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import itemgetter
from typing import Any

from django.db.models import OuterRef, Subquery
from django.db.models.functions import Left

from jobqueue.backends.ports import ErrorReader
from jobqueue.backends.sql.ports import error_statements as statements
from jobqueue.backends.sql.ports.jobs import ending_of
from jobqueue.backends.sql.session import Session
from jobqueue.clock import to_text
from jobqueue.models import Attempt, Job
from jobqueue.models.fields import as_utc
from jobqueue.records import HOUR, HOURS, Caps, ErrorGroup, ErrorGroups

ERROR_SHOWN = 300
_NEVER = datetime.min.replace(tzinfo=UTC)
_FOREVER = datetime.max.replace(tzinfo=UTC) - timedelta(days=1)


class SqlErrorReader(ErrorReader):
    """Reads groups of dead letters. Each step is bounded, whatever the table holds."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def groups(self, limit: int, caps: Caps) -> ErrorGroups:
        with self._session.reading():
            kinds = [(name or "", self._moment(last_at) or _NEVER) for name, last_at in self._rows(statements.KINDS)]
            kinds.sort(key=itemgetter(0))
            kinds.sort(key=itemgetter(1), reverse=True)
            groups = self._summed([name for name, _last_at in kinds[:limit]], caps)
        return ErrorGroups(tuple(groups), more=len(kinds) > min(limit, statements.LOOKED_AT))

    def group(self, fingerprint: str, caps: Caps) -> ErrorGroup | None:
        with self._session.reading():
            return next(iter(self._summed([fingerprint], caps)), None)

    def _summed(self, names: Sequence[str], caps: Caps) -> list[ErrorGroup]:
        most, most_an_hour = caps.shared(len(names))
        sums = {row[0] or "": row[1:] for row in self._of(names, statements.sums, [most + 1]) if row[1]}
        jobs = self._newest([row[3] for row in sums.values()])
        since = self._session.now() - HOURS * HOUR
        lately = [name for name, row in sums.items() if (self._moment(row[2]) or _NEVER) >= since]
        hourly = self._hourly(lately, since, most_an_hour)
        return [
            ErrorGroup(
                fingerprint=name,
                **jobs[newest_id],
                count=min(count, most),
                capped=count > most,
                first_at=self._moment(first_at),
                last_at=self._moment(last_at),
                hourly=tuple(hourly.get((name, hour), 0) for hour in range(HOURS)),
                hourly_cap=most_an_hour,
            )
            for name in names
            if name in sums
            for count, first_at, last_at, newest_id in [sums[name]]
            if newest_id in jobs  # else it was purged meanwhile
        ]

    def _newest(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Read what describes jobs, with the last entry of each one's history, and nothing that is large."""
        past = Attempt.objects.filter(job_id=OuterRef("pk")).order_by("-fence")
        rows = self._session.rows(Job).filter(pk__in=ids)
        found = rows.annotate(
            beginning=Left("error", ERROR_SHOWN),
            last_class=Subquery(past.values("error_class")[:1]),
            last_ending=Subquery(past.values("ending")[:1]),
        ).values_list("pk", "type", "beginning", "last_class", "last_ending")
        return {
            job_id: {
                "newest_id": job_id,
                "type": job_type,
                "error": beginning or "",
                "error_class": last_class or "",
                "ending": ending_of(last_ending) if last_ending else None,
            }
            for job_id, job_type, beginning, last_class, last_ending in found
        }

    def _hourly(self, names: Sequence[str], since: datetime, most: int) -> dict[tuple[str, int], int]:
        if not names:
            return {}
        # The last hour has no end: a clock that is ahead of ours loses nothing.
        begins = [since + hour * HOUR for hour in range(HOURS)]
        moments = [one for pair in zip(begins, [*begins[1:], _FOREVER], strict=True) for one in pair]
        kind = str(Job._meta.get_field("completed_at").db_type(self._session.connection))
        statement = partial(statements.hourly, hours=HOURS, moment=kind)
        rows = self._of(names, statement, [*map(self._stored, moments), most])
        return {(name or "", hour): count for name, hour, count in rows}

    def _of(
        self, names: Sequence[str], statement: Callable[[str], str], params: Sequence[Any]
    ) -> Iterator[tuple[Any, ...]]:
        """Ask one thing of each fingerprint. A NULL equals nothing, so jobs without one are asked for separately."""
        given = [name for name in names if name]
        if given:
            asked = ", ".join(["(%s)"] * len(given))
            text = f"WITH asked(fingerprint) AS (VALUES {asked}){statement(statements.EQUAL)}"
            yield from self._rows(text, [*given, *params])
        if "" in names:
            text = f"WITH asked(fingerprint) AS (VALUES (CAST(NULL AS text))){statement(statements.NONE)}"
            yield from self._rows(text, params)

    def _rows(self, statement: str, params: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        with self._session.connection.cursor() as cursor:
            cursor.execute(statement, params)
            found: list[tuple[Any, ...]] = cursor.fetchall()
            return found

    def _moment(self, value: Any) -> datetime | None:
        return None if value is None else as_utc(value, self._session.connection)

    def _stored(self, moment: datetime) -> str | datetime:
        return to_text(moment) if self._session.connection.vendor == "sqlite" else moment
