"""Limits that were set at run time, in a table, and what is in use."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Min, Sum

from jobqueue.backends.ports.limits import Limits
from jobqueue.backends.sql.filters import in_status
from jobqueue.backends.sql.ports.statements import limits as statements
from jobqueue.backends.sql.session import Session
from jobqueue.models import Job, Start
from jobqueue.models import StoredLimit as Row
from jobqueue.models.fields import as_utc
from jobqueue.policy.limits.declared_limits import LONGEST_WINDOW, SHORTEST_WINDOW
from jobqueue.policy.limits.limits import Account, LimitBook
from jobqueue.policy.limits.uses import Kind, Running, Starts, accounts_of, uses, uses_of
from jobqueue.records import Limit, LimitKind, LimitUse, Scope, StoredLimit
from jobqueue.states import JobStatus

#: Of how many rates the starts are read by name. Those of more are read together.
_MOST_PLACES = 200


class SqlLimits(Limits):
    """Reads and writes limits, through Django's ORM except for what each worker reads twice a second."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def set(self, limit: Limit, reason: str = "", author: str = "") -> None:
        def work() -> None:
            self._session.rows(Row).update_or_create(
                **_place(limit),
                defaults={
                    "number": limit.number,
                    "reason": reason,
                    "author": author,
                    "stored_at": self._session.now(),
                },
            )

        self._session.transact(work)

    def unset(self, limit: Limit) -> bool:
        return self._session.transact(lambda: bool(self._session.rows(Row).filter(**_place(limit)).delete()[0]))

    def stored(self) -> list[StoredLimit]:
        # Workers ask twice a second, and a query of the ORM costs ten times as much.
        connection = self._session.connection
        with self._session.reading(), connection.cursor() as cursor:
            cursor.execute(statements.STORED)
            rows = [row for row in cursor.fetchall() if _is_known(*row[:6])]
        return [_stored(row, connection) for row in rows]

    def uses(self, book: LimitBook, pairs: Sequence[tuple[str, str]], most: int = 20) -> list[LimitUse]:
        limits = {limit.place: limit.kind for pair in pairs for limit in book.of(*pair)}
        rates = [place for place, kind in limits.items() if kind is LimitKind.RATE]
        return uses(book, pairs, self._running(), self._starts(rates) if rates else (), most)

    def uses_of(self, book: LimitBook, kinds: Collection[Kind]) -> list[LimitUse]:
        accounts = accounts_of(book, kinds)
        rates = {account: limit.per for account, limit in accounts.items() if limit.kind is LimitKind.RATE}
        running = self._running() if len(rates) < len(accounts) else ()
        return uses_of(book, accounts, running, self._starts_of(rates))

    def first_due(self, queue: str, job_type: str, sample: int = 25) -> list[tuple[str | None, datetime]]:
        connection = self._session.connection
        now = Job._meta.get_field("scheduled_at").get_db_prep_value(self._session.now(), connection)
        given = {"queue": queue, "type": job_type, "now": now, "limit": sample}
        with self._session.reading(), connection.cursor() as cursor:
            cursor.execute(statements.FIRST_DUE, given)
            return [(keys, as_utc(moment, connection)) for keys, moment in cursor.fetchall()]

    def _running(self) -> Iterable[Running]:
        """Read what runs, with leases: at most as many rows as there are slots."""
        with self._session.reading():
            rows = in_status(self._session.alias, JobStatus.IN_PROGRESS).filter(lease_until__isnull=False)
            return [Running(*row) for row in rows.values_list("id", "queue", "type", "concurrency_key", "started_at")]

    def _starts_of(self, windows: Mapping[Account, float]) -> Iterator[Starts]:
        """Read the starts of some accounts, each a range of the index of windows."""
        now = self._session.now()
        with self._session.reading():
            for (place, key), per in windows.items():
                window = {"ends_at__gt": now, "ends_at__lte": now + timedelta(seconds=per)}
                rows = self._session.rows(Start).filter(place=place, key=key, **window)
                found: Any = rows.aggregate(starts=Sum("count"), first=Min("ends_at"))
                if found["starts"]:
                    yield place, key, found["starts"], found["first"] - now

    def _starts(self, places: Sequence[str]) -> Iterable[Starts]:
        now = self._session.now()
        with self._session.reading():
            until = now + timedelta(seconds=LONGEST_WINDOW)
            rows = self._session.rows(Start).filter(ends_at__range=(now, until), ends_at__gt=now).values("place", "key")
            rows = rows.filter(place__in=places) if len(places) <= _MOST_PLACES else rows
            summed: Any = rows.annotate(starts=Sum("count"), first=Min("ends_at"))
            return [(row["place"], row["key"], row["starts"], row["first"] - now) for row in summed]


def _place(limit: Limit) -> dict[str, Any]:
    return {
        "scope": limit.scope.value,
        "name": limit.name,
        "kind": limit.kind.value,
        "per": limit.per,
        "key": limit.key,
    }


def _is_known(scope: object, _name: object, kind: object, _number: object, per: Any, _key: object) -> bool:
    """Return whether a row is a limit. A newer release may have other kinds, and other programs windows of any length.

    On SQLite, a table from before the typed columns may hold anything.
    """
    if scope not in set(Scope) or not isinstance(per, (int, float)):
        return False
    return per == 0 if kind == LimitKind.CONCURRENCY else kind == LimitKind.RATE and _is_window(per)


def _is_window(per: float) -> bool:
    return SHORTEST_WINDOW <= per <= LONGEST_WINDOW


def _stored(row: Sequence[Any], connection: BaseDatabaseWrapper) -> StoredLimit:
    scope, name, kind, number, per, key, reason, author, stored_at = row
    limit = Limit(Scope(scope), name, LimitKind(kind), number, per, key)
    return StoredLimit(limit, reason, author, as_utc(stored_at, connection))
