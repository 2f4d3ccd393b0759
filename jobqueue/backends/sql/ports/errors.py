"""Groups of dead letters by error: their counts, in total and by hour, and their first and last failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

from django.db.models import OuterRef, Subquery
from django.db.models.functions import Left

from jobqueue.backends.ports import ErrorReader
from jobqueue.backends.sql.ports.error_samples import ASKED_FOR, groupings_of, shares_of
from jobqueue.backends.sql.ports.jobs import ending_of
from jobqueue.backends.sql.ports.statements import errors as statements
from jobqueue.backends.sql.session import Session
from jobqueue.clock import to_text
from jobqueue.models import Attempt, Job, KnownError
from jobqueue.models.fields import as_utc
from jobqueue.policy.fingerprint import Grouping
from jobqueue.policy.redaction import redact_text
from jobqueue.records import (
    HOUR,
    HOURS,
    Caps,
    Ending,
    ErrorGroup,
    ErrorGroups,
    ErrorShares,
    GroupFilter,
    GroupOrder,
    SeenIn,
)

ERROR_SHOWN = 300
_NEVER = datetime.min.replace(tzinfo=UTC)
_FOREVER = datetime.max.replace(tzinfo=UTC) - timedelta(days=1)
_ALL = GroupFilter()


class _Extent(NamedTuple):
    """How many dead letters a group has, and from when to when."""

    jobs: int
    capped: bool
    first_at: datetime | None
    last_at: datetime | None


class _Look(NamedTuple):
    """What the newest dead letter of a group looks like."""

    newest_id: str
    type: str
    error: str
    error_class: str
    ending: Ending | None


@dataclass(slots=True)
class _Past:
    """What is remembered of an error."""

    first_at: datetime | None = None
    retried_at: datetime | None = None
    releases: tuple[SeenIn, ...] = ()


class SqlErrorReader(ErrorReader):
    """Reads groups of dead letters. Each statement is bounded, however many jobs there are."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def groups(self, limit: int, caps: Caps, wanted: GroupFilter = _ALL) -> ErrorGroups:
        with self._session.reading(), self._session.index_order(caps.groups) as readable:
            caps = caps._replace(groups=readable)
            counted = self._counted(caps, wanted.order)
            names = list(counted) or self._names(caps, wanted.order)
            more = len(names) > statements.LOOKED_AT
            names = names[: statements.LOOKED_AT]
            looks = self._looks(names if wanted.is_narrow else names[:limit])
            if wanted.is_narrow:
                names = [name for name in names if name in looks and _is_wanted(looks[name], wanted)]
            shown = [name for name in names[:limit] if name in looks]  # others were purged meanwhile
            groups = self._groups(shown, counted or self._extents(shown, caps), looks, caps)
        return ErrorGroups(tuple(groups), more=more or len(names) > limit)

    def group(self, fingerprint: str, caps: Caps) -> ErrorGroup | None:
        with self._session.reading(), self._session.index_order(caps.groups) as readable:
            caps = caps._replace(groups=readable)
            extents, looks = self._extents([fingerprint], caps), self._looks([fingerprint])
            return next(iter(self._groups(list(looks), extents, looks, caps)), None)

    def shares(self, fingerprint: str, most: int) -> ErrorShares:
        with self._session.reading():
            return shares_of(self._session, fingerprint, most)

    def groupings(self, ids: Sequence[str]) -> dict[str, Grouping]:
        with self._session.reading():
            return {job_id: by_now for job_id, (_fingerprint, by_now) in groupings_of(self._session, ids).items()}

    def outdated(self, ids: Sequence[str]) -> dict[str, str]:
        with self._session.reading():
            found = groupings_of(self._session, ids).items()
        return {job_id: by_now.fingerprint for job_id, (was, by_now) in found if was != by_now.fingerprint}

    def _counted(self, caps: Caps, order: GroupOrder) -> dict[str, _Extent]:
        """Count all groups exactly, in the order asked for. Return none if there are too many dead letters for that."""
        most = max(1, caps.groups)
        rows = self._rows(statements.everything(order), [most + 1])
        if not rows or int(rows[0][4]) > most:
            return {}
        # Another program may have stored an empty fingerprint, which no address stands for.
        return {
            name or "": _Extent(min(count, caps.group), count > caps.group, self._moment(first), self._moment(last))
            for name, count, first, last, _all in rows
            if name != ""
        }

    def _names(self, caps: Caps, order: GroupOrder) -> list[str]:
        """Find the fingerprints by probes, in the order asked for. Their counts stop at their share."""
        kinds = [(name or "", self._moment(last_at) or _NEVER) for name, last_at in self._rows(statements.KINDS)]
        kinds.sort(key=itemgetter(0))
        kinds.sort(key=itemgetter(1), reverse=True)
        names = [name for name, _last_at in kinds]
        if order is GroupOrder.LATEST:
            return names
        extents = self._extents(names, caps)
        by_first = {name: extent.first_at or _NEVER for name, extent in extents.items()}
        by_count = {name: extent.jobs for name, extent in extents.items()}
        key: Callable[[str], Any] = (by_first if order is GroupOrder.NEWEST else by_count).__getitem__
        return sorted(extents, key=key, reverse=True)

    def _extents(self, names: Sequence[str], caps: Caps) -> dict[str, _Extent]:
        """Measure groups in the order given, each up to its share. Those that are gone are left out."""
        most, _hourly = caps.shared(len(names))
        found = {row[0] or "": row[1:] for row in self._of(names, statements.sums, [most + 1]) if row[1]}
        return {
            name: _Extent(min(count, most), count > most, self._moment(first_at), self._moment(last_at))
            for name in names
            if name in found
            for count, first_at, last_at in [found[name]]
        }

    def _groups(
        self, names: Sequence[str], extents: Mapping[str, _Extent], looks: Mapping[str, _Look], caps: Caps
    ) -> list[ErrorGroup]:
        names = [name for name in names if name in extents]
        _most, most_an_hour = caps.shared(len(names))
        since = self._session.now() - HOURS * HOUR
        lately = [name for name in names if (extents[name].last_at or _NEVER) >= since]
        hourly, pasts = self._hourly(lately, since, most_an_hour), self._pasts(names)
        return [
            ErrorGroup(
                fingerprint=name,
                **looks[name]._asdict(),
                count=extents[name].jobs,
                capped=extents[name].capped,
                first_at=min(filter(None, (extents[name].first_at, pasts[name].first_at)), default=None),
                last_at=extents[name].last_at,
                hourly=tuple(hourly.get((name, hour), 0) for hour in range(HOURS)),
                hourly_cap=most_an_hour,
                retried_at=pasts[name].retried_at,
                releases=pasts[name].releases,
            )
            for name in names
        ]

    def _pasts(self, names: Sequence[str]) -> dict[str, _Past]:
        """Read what is remembered of errors."""
        pasts = {name: _Past() for name in names}
        rows = self._session.rows(KnownError).filter(fingerprint__in=[name for name in names if name])
        for name, release, first_at, retried_at in rows.order_by("first_at", "pk").values_list(
            "fingerprint", "release", "first_at", "retried_at"
        ):
            past = pasts[name]
            past.first_at = past.first_at or first_at
            past.retried_at = max(filter(None, (past.retried_at, retried_at)), default=None)
            past.releases += (SeenIn(release, first_at),) if release else ()
        return pasts

    def _looks(self, names: Sequence[str]) -> dict[str, _Look]:
        """Read what the newest dead letter of each group looks like."""
        newest = {name or "": newest_id for name, newest_id in self._of(names, statements.newest, []) if newest_id}
        looks = self._newest(list(newest.values()))
        return {name: looks[newest_id] for name, newest_id in newest.items() if newest_id in looks}

    def _newest(self, ids: Sequence[str]) -> dict[str, _Look]:
        """Read what describes jobs, with the last entry of each one's history, and nothing that is large."""
        past = Attempt.objects.filter(job_id=OuterRef("pk")).order_by("-fence")
        described = self._session.rows(Job).annotate(
            beginning=Left("error", ERROR_SHOWN),
            last_class=Subquery(past.values("error_class")[:1]),
            last_ending=Subquery(past.values("ending")[:1]),
        )
        columns = described.values_list("pk", "type", "beginning", "last_class", "last_ending")
        # With many more ids, a planner without statistics would read the whole table.
        parts = (ids[place : place + ASKED_FOR] for place in range(0, len(ids), ASKED_FOR))
        return {
            job_id: _Look(job_id, job_type, beginning or "", last_class or "", ending_of(ending) if ending else None)
            for part in parts
            for job_id, job_type, beginning, last_class, ending in columns.filter(pk__in=part)
        }

    def _hourly(self, names: Sequence[str], since: datetime, most: int) -> dict[tuple[str, int], int]:
        if not names:
            return {}
        # The last hour has no end, so that jobs are counted even if another machine's clock is ahead.
        begins = [since + hour * HOUR for hour in range(HOURS)]
        moments = [one for pair in zip(begins, [*begins[1:], _FOREVER], strict=True) for one in pair]
        kind = str(Job._meta.get_field("completed_at").db_type(self._session.connection))
        statement = partial(statements.hourly, hours=HOURS, moment=kind)
        rows = self._of(names, statement, [*map(self._stored, moments), most])
        return {(name or "", hour): count for name, hour, count in rows}

    def _of(
        self, names: Sequence[str], statement: Callable[[str], str], params: Sequence[Any]
    ) -> Iterator[tuple[Any, ...]]:
        """Run a statement for fingerprints. Jobs without one need a second statement, because NULL equals nothing."""
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


def _is_wanted(look: _Look, wanted: GroupFilter) -> bool:
    # What isn't shown can't be sought.
    return wanted.matches(look.type, look.error_class, redact_text(look.error) if wanted.text else "")
