"""The metrics: counts of attempts, and samples of the depth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Aggregate, Max, Q, QuerySet, Sum

from jobqueue.backends.ports import Metrics
from jobqueue.backends.sql.filters import paused
from jobqueue.backends.sql.ports.counters import SqlCounters
from jobqueue.backends.sql.ports.gauges import SqlGauges
from jobqueue.backends.sql.ports.metric_lengths import amount, lengths_in, lengths_of
from jobqueue.backends.sql.ports.statements import depth as statements
from jobqueue.backends.sql.session import Session
from jobqueue.models import Metric
from jobqueue.models.fields import DataField, as_utc
from jobqueue.policy.histogram import merged, read, written
from jobqueue.policy.stretches import ALL, KEPT, Met, Name, begin_of, by_name, met, shared, spread
from jobqueue.records import COUNTED_TO, MOST_GROUPS, Depth, Lengths, MetricSum, Scope, Stretch, Tally
from jobqueue.records.metric import COUNTED_TOGETHER, ENDS

#: The length and beginning of a row's stretch, and its queue and type.
Key = tuple[int, datetime, str, str]

_TIMES = ("waited", "ran")
_COUNTED = (*ENDS, *_TIMES, *(f"{name}_{what}" for name in _TIMES for what in ("count", "sum")))
#: The columns that ``MetricSum`` sums up, in the order of its fields.
_SUMMED = (*ENDS, "ran_count", "ran_sum")
_UNIQUE = ("span", "begins_at", "queue", "type")
#: The conditions of total rows: of all types of a queue, and of all queues and types.
_WHOLE_QUEUES, _TOGETHER = Q(type=""), Q(queue="", type="")
#: The largest number that a column of counts holds.
_MOST = 2**31 - 1
#: How many old rows are deleted at once.
_FORGET_AT_ONCE = 1_000


class _Gathered(Aggregate):
    """An aggregate of all values of a JSON column, in one array."""

    function = "jsonb_agg"
    output_field = DataField()

    def as_sqlite(self, compiler: Any, connection: Any, **others: Any) -> tuple[str, Any]:
        return self.as_sql(
            compiler, connection, function="json_group_array", template="%(function)s(json(%(expressions)s))", **others
        )


#: The sums of a type over all its queues, by column.
_OVER_QUEUES = {
    **{name: Sum(name) for name in (*ENDS, "waited_sum", "ran_sum", "queued", "in_progress")},
    **{name: _Gathered(name) for name in _TIMES},
    "oldest": Max("oldest"),
    "shed": Max("shed"),
}


class SqlMetrics(Metrics):
    """Keeps a row for each stretch of time, queue and type, with totals for each queue and for all queues.

    No process waits for a lock because of metrics. Rows are added outside a transaction, so a process that hangs keeps
    no lock on them. Rows that another session has locked are skipped.
    """

    def __init__(self, session: Session) -> None:
        self._session, self._counters, self._gauges = session, SqlCounters(session), SqlGauges(session)

    def add(self, moment: datetime, tallies: Sequence[Tally]) -> bool:
        if not tallies:
            return True
        named = by_name(tallies)
        with self._session.reading():
            places, sums = self._made(_keys(moment, named)), self._counters.made(tallies, moment)
        return self._session.transact(lambda: self._add(places, named, sums, moment))

    def sample(self, moment: datetime) -> bool:
        stretches = [(span, begin_of(moment, span)) for span in KEPT]
        with self._session.reading():
            if self._within(stretches[:1]).filter(queue="", type="", queued__isnull=False).exists():
                return True
            now, depths = self._session.now(), self._counted(COUNTED_TO, MOST_GROUPS, COUNTED_TOGETHER)
            found = met(depths, now, self._gauges.all())
            known = self._within(stretches).filter(Q(queued__gt=0) | Q(in_progress__gt=0)).values_list(*_UNIQUE)
            places = self._made({*_keys(moment, found), *known})  # also rows whose depth must be set to zero
        return self._session.transact(lambda: self._note(places, found) and self._forget(now))

    def depths(self, cap: int = COUNTED_TO, most: int = MOST_GROUPS) -> list[Depth]:
        with self._session.reading(), self._session.index_order(COUNTED_TOGETHER) as soon:
            return self._counted(cap, most, soon)

    def counters(self) -> list[Tally]:
        with self._session.reading():
            return self._counters.read()

    def stretches(self, span: int, since: datetime, queue: str = "", job_type: str = "") -> list[Stretch]:
        rows = self._since(span, since).filter(type=job_type).order_by("begins_at")
        with self._session.reading():
            if job_type and not queue:
                sums = {f"all_{name}": one for name, one in _OVER_QUEUES.items()}
                found = rows.values("begins_at").annotate(**sums)
                return [_stretch_over_queues(job_type, row) for row in found]
            # Without a type this is the total of the queue, and without a queue the total of all queues.
            return [_stretch(row) for row in rows.filter(queue=queue).values(*_UNIQUE, *_COUNTED, *Met._fields)]

    def totals(self, by: Scope, span: int, since: datetime, queue: str = "", job_type: str = "") -> list[MetricSum]:
        rows = self._since(span, since)
        if job_type:
            rows = rows.filter(type=job_type)
        else:
            rows = rows.filter(_WHOLE_QUEUES) if by is Scope.QUEUE else rows.exclude(_WHOLE_QUEUES)
        rows = rows.filter(queue=queue) if queue else rows.exclude(_TOGETHER)
        sums = {f"all_{name}": Sum(name) for name in _SUMMED}
        # By the index: Postgres expects far more stretches of a span since a moment than there are, because each span
        # is kept for another time, and would read the whole table.
        with self._session.reading(), self._session.index_order(1):
            return sorted(MetricSum._make(row) for row in rows.values_list(by.value).annotate(**sums))

    def lengths(self, span: int, since: datetime, types: Collection[str]) -> Mapping[str, tuple[Lengths, Lengths]]:
        with self._session.reading(), self._session.index_order(1):
            return lengths_of(self._since(span, since), types)

    # Rows

    def _since(self, span: int, since: datetime) -> QuerySet[Metric]:
        return self._session.rows(Metric).filter(span=span, begins_at__gte=since)

    def _within(self, stretches: Iterable[tuple[int, datetime]]) -> QuerySet[Metric]:
        those = (Q(span=span, begins_at=begins_at) for span, begins_at in stretches)
        return self._session.rows(Metric).filter(reduce(or_, those))

    def _places(self, keys: Set[Key]) -> dict[Key, int]:
        """Return all rows of the stretches that keys belong to."""
        found = self._within({key[:2] for key in keys}).values_list("pk", *_UNIQUE)
        return {row[1:]: row[0] for row in found}

    def _made(self, keys: Set[Key]) -> dict[Key, int]:
        """Return rows by their keys. Add missing rows, up to the limit of rows for a stretch.

        Rows are added by one statement outside a transaction, so that other processes that add the same rows never
        wait long. All processes add rows in the same order.
        """
        places = self._places(keys)
        if missing := _with_room(sorted(keys - places.keys()), places):
            marks = ", ".join(["(%s, %s, %s, %s, '{}', '{}')"] * len(missing))
            values = [value for span, begins_at, *name in missing for value in (span, self._given(begins_at), *name)]
            statement = f"INSERT INTO job_queue_metric ({', '.join(_UNIQUE)}, waited, ran) VALUES {marks}"
            self._session.retrying(lambda: self._insert(f"{statement} ON CONFLICT DO NOTHING", values))
            places = self._places(keys)
        return {key: place for key, place in places.items() if key in keys}

    def _insert(self, statement: str, values: Sequence[Any]) -> None:
        with self._session.connection.cursor() as cursor:
            cursor.execute(statement, values)

    def _free_rows(self, places: Iterable[int], *columns: str) -> list[dict[str, Any]]:
        """Lock and read rows, except those that other sessions have locked."""
        rows = self._session.rows(Metric).filter(pk__in=list(places)).order_by("pk")
        return [dict(row) for row in rows.select_for_update(skip_locked=True).values(*_UNIQUE, *columns)]

    def _write(self, rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> None:
        """Store some columns of locked rows, in one statement."""
        self._session.rows(Metric).bulk_create(
            [Metric(**row) for row in rows], update_conflicts=True, unique_fields=_UNIQUE, update_fields=columns
        )

    def _add(
        self, places: Mapping[Key, int], named: Mapping[Name, Tally], sums: Mapping[Name, Tally], moment: datetime
    ) -> bool:
        rows, counters = self._free_rows(places.values(), *_COUNTED), self._counters.locked(sums)
        if len(rows) < len(places) or len(counters) < len(sums):
            return False
        self._counters.add(counters, sums, moment)
        self._write([row | _added(row, named[row["queue"], row["type"]]) for row in rows], _COUNTED)
        return True

    def _note(self, places: Mapping[Key, int], found: Mapping[Name, Met]) -> bool:
        """Store the sampled depths, and zero in all other rows. Return whether the totals of all queues are stored."""
        rows = self._free_rows(places.values())
        self._write([row | found.get((row["queue"], row["type"]), Met())._asdict() for row in rows], Met._fields)
        return sum((row["queue"], row["type"]) == ALL for row in rows) == len(KEPT)

    def _forget(self, now: datetime) -> bool:
        """Delete some old rows."""
        for span, kept in KEPT.items():
            old = self._session.rows(Metric).filter(span=span, begins_at__lt=now - kept).order_by("begins_at")
            free = old.select_for_update(skip_locked=True).values_list("pk", flat=True)[:_FORGET_AT_ONCE]
            if places := list(free):
                self._session.rows(Metric).filter(pk__in=places).delete()
        self._counters.forget(now)
        return True

    # Depth

    def _counted(self, cap: int, most: int, together: int) -> list[Depth]:
        """Count each queue and type up to ``cap``, and all of them up to ``together``."""
        idle = paused(self._session.alias)
        running = self._running(cap)
        each = shared(cap, self._kinds(most), together)
        waiting = self._waiting(each, most)
        counts = [due + later for due, later, _oldest in waiting.values()]
        if (further := spread(cap, each, counts, together)) > each:
            each, waiting = further, self._waiting(further, most)
        return [
            _depth(
                name,
                waiting.get(name, (0, 0, None)),
                running.get(name, 0),
                each,
                paused=("queue", name[0]) in idle or ("type", name[1]) in idle,
            )
            for name in sorted({*waiting, *running})[:most]
        ]

    def _given(self, moment: datetime) -> Any:
        """Return a moment as the database stores it."""
        return Metric._meta.get_field("begins_at").get_db_prep_value(moment, self._session.connection)

    def _found(self, statement: str, given: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        with self._session.connection.cursor() as cursor:
            cursor.execute(statement, given)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

    def _kinds(self, most: int) -> int:
        """Return of how many queues and types jobs wait, up to a limit."""
        return len(self._found(statements.kinds(most)))

    def _waiting(self, cap: int, most: int) -> dict[Name, tuple[int, int, datetime | None]]:
        """Count due and later jobs by queue and type, each up to ``cap + 1``, and find the oldest due one."""
        given = {"now": self._given(self._session.now()), "limit": cap + 1}
        return self._as_waiting(self._found(statements.waiting(most + 1), given), most)  # one group may have no names

    def _as_waiting(self, rows: Iterable[tuple[Any, ...]], most: int) -> dict[Name, tuple[int, int, datetime | None]]:
        return {
            name: (due, later, oldest and as_utc(oldest, self._session.connection))
            for name, (due, later, oldest) in sorted(_named(rows).items())[:most]
        }

    def _running(self, cap: int) -> dict[Name, int]:
        return {name: count for name, (count,) in _named(self._found_running({"limit": cap})).items()}

    def _found_running(self, given: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        return self._found(statements.RUNNING, given)


def _keys(moment: datetime, names: Iterable[Name]) -> set[Key]:
    return {(span, begin_of(moment, span), *name) for name in names for span in KEPT}


def _with_room(missing: Iterable[Key], places: Iterable[Key]) -> list[Key]:
    """Leave out keys for which a stretch has no room. There is always room for the total of all queues."""
    many = Counter(map(_level, places))
    found = []
    for key in missing:
        many[_level(key)] += 1
        if many[_level(key)] <= MOST_GROUPS or key[2:] == ALL:
            found.append(key)
    return found


def _level(key: Key) -> tuple[int, datetime, str]:
    """Return a row's stretch, and whether the row is for a type, for a queue or for all queues."""
    span, begins_at, queue, kind = key
    return span, begins_at, "kinds" if kind else "queues" if queue else "all"


def _added(row: Mapping[str, Any], tally: Tally) -> dict[str, Any]:
    found = {name: min(row[name] + getattr(tally, name), _MOST) for name in ENDS}
    for name in _TIMES:
        both = merged((lengths_in(row, name), getattr(tally, name)))
        found |= {name: written(both.buckets), f"{name}_count": min(both.number, _MOST), f"{name}_sum": both.total}
    return found


def _met(values: Iterable[Any]) -> tuple[int | None, int | None, float | None, int | None]:
    queued, in_progress, oldest, shed = values
    return queued, in_progress, None if oldest is None else amount(oldest), shed


def _named(rows: Iterable[tuple[Any, ...]]) -> dict[Name, tuple[Any, ...]]:
    """Leave out rows without names, or, on SQLite, with names that are not text."""
    return {
        (queue, kind): tuple(rest)
        for queue, kind, *rest in rows
        if isinstance(queue, str) and isinstance(kind, str) and (queue, kind) != ALL
    }


def _depth(name: Name, waiting: tuple[int, int, datetime | None], running: int, cap: int, *, paused: bool) -> Depth:
    due, later, oldest_due_at = waiting
    return Depth(*name, min(due + later, cap), due + later > cap, min(due, cap), oldest_due_at, running, paused)


def _stretch(row: Mapping[str, Any]) -> Stretch:
    counts = {name: row[name] for name in ENDS}
    waited, ran = (lengths_in(row, name) for name in _TIMES)
    tally = Tally(row["queue"], row["type"], **counts, waited=waited, ran=ran)
    return Stretch(row["begins_at"], tally, *_met(row[name] for name in Met._fields))


def _stretch_over_queues(job_type: str, row: Mapping[str, Any]) -> Stretch:
    counts = {name: row[f"all_{name}"] for name in ENDS}
    waited, ran = (Lengths(read(*row[f"all_{name}"]), amount(row[f"all_{name}_sum"])) for name in _TIMES)
    tally = Tally("", job_type, **counts, waited=waited, ran=ran)
    return Stretch(row["begins_at"], tally, *_met(row[f"all_{name}"] for name in Met._fields))
