"""Figures: what workers add up, the depth that is met now and then, and what is read of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any

from django.db import connections
from django.db.models import Aggregate, Max, Q, QuerySet, Sum

from jobqueue.backends import depth_statements as statements
from jobqueue.backends.enlisting import Enlisting
from jobqueue.models import Metric
from jobqueue.models.fields import DataField, as_utc
from jobqueue.policy.histogram import merged, read, written
from jobqueue.policy.stretches import ALL, KEPT, Met, Name, begin_of, by_name, met, shared, spread
from jobqueue.records import COUNTED_TO, MOST_GROUPS, Depth, Lengths, Part, Scope, Stretch, Tally
from jobqueue.records.metric import ENDS

#: Span, beginning, queue and type of a row.
Key = tuple[int, datetime, str, str]

_TIMES = ("waited", "ran")
_COUNTED = (*ENDS, *_TIMES, *(f"{name}_{what}" for name in _TIMES for what in ("count", "sum")))
#: What a part is made of, in its order.
_SUMMED = (*ENDS, "ran_count", "ran_sum")
_UNIQUE = ("span", "begins_at", "queue", "type")
#: What a column of counts holds, and a length that no queue has.
_MOST = 2**31 - 1
_BEYOND_ALL = 1e12
#: How many rows that are out of date are deleted at once.
_FORGET_AT_ONCE = 1_000


class _Gathered(Aggregate):
    """All values of a JSON column, in one array."""

    function = "jsonb_agg"
    output_field = DataField()

    def as_sqlite(self, compiler: Any, connection: Any, **others: Any) -> tuple[str, Any]:
        return self.as_sql(
            compiler, connection, function="json_group_array", template="%(function)s(json(%(expressions)s))", **others
        )


#: What a type had in all its queues, by the columns it is made of.
_OVER_QUEUES = {
    **{name: Sum(name) for name in (*ENDS, "waited_sum", "ran_sum", "queued", "in_progress")},
    **{name: _Gathered(name) for name in _TIMES},
    "oldest": Max("oldest"),
}


class Metering(Enlisting):
    """Keeps a row for each stretch of time, queue and type, one for each queue as a whole, and one for all together.

    Nobody waits for a lock for the sake of figures: a row is made by a statement of its own, which comes to its end
    whatever becomes of its sender, and a row that somebody else has locked is left alone.
    """

    def tally(self, moment: datetime, tallies: Sequence[Tally]) -> bool:
        if not tallies:
            return True
        named = by_name(tallies)
        with self.reading():
            places = self._made(_keys(moment, named))
        return self.operate(lambda: self._add(places, named))

    def sample(self, moment: datetime) -> bool:
        stretches = [(span, begin_of(moment, span)) for span in KEPT]
        with self.reading():
            if self._within(stretches[:1]).filter(queue="", type="", queued__isnull=False).exists():
                return True
            now, depths = self.now(), self.depths()
            found = met(depths, now)
            known = self._within(stretches).filter(Q(queued__gt=0) | Q(in_progress__gt=0)).values_list(*_UNIQUE)
            places = self._made({*_keys(moment, found), *known})  # what is empty by now was not before
        return self.operate(lambda: self._note(places, found) and self._forget(now))

    def depths(self, cap: int = COUNTED_TO, most: int = MOST_GROUPS) -> list[Depth]:
        with self.reading():
            paused = {(pause.scope, pause.name) for pause in self.pauses()}
            running = self._running(cap)
            each = shared(cap, len(self._found(statements.kinds(most))))
            waiting = self._waiting(each, most)
            if (further := spread(cap, each, [due + later for due, later, _oldest in waiting.values()])) > each:
                each, waiting = further, self._waiting(further, most)
        return [
            _depth(
                name,
                waiting.get(name, (0, 0, None)),
                running.get(name, 0),
                each,
                paused=(Scope.QUEUE, name[0]) in paused or (Scope.TYPE, name[1]) in paused,
            )
            for name in sorted({*waiting, *running})[:most]
        ]

    def tallied(self, span: int, since: datetime, queue: str = "", job_type: str = "") -> list[Stretch]:
        rows = self._since(span, since).filter(type=job_type).order_by("begins_at")
        with self.reading():
            if job_type and not queue:
                sums = {f"all_{name}": one for name, one in _OVER_QUEUES.items()}
                found = rows.values("begins_at").annotate(**sums)
                return [_stretch_over_queues(job_type, row) for row in found]
            # An empty type is the queue as a whole, and an empty queue beside it all of them.
            return [_stretch(row) for row in rows.filter(queue=queue).values(*_UNIQUE, *_COUNTED, *Met._fields)]

    def parts(self, by: Scope, span: int, since: datetime, queue: str = "", job_type: str = "") -> list[Part]:
        rows = self._since(span, since)
        rows = rows.filter(type=job_type) if job_type or by is Scope.QUEUE else rows.exclude(type="")
        rows = rows.filter(queue=queue) if queue else rows.exclude(queue="", type="")
        sums = {f"all_{name}": Sum(name) for name in _SUMMED}
        with self.reading():
            return sorted(Part._make(row) for row in rows.values_list(by.value).annotate(**sums))

    # Rows

    def _since(self, span: int, since: datetime) -> QuerySet[Metric]:
        return Metric.objects.using(self.alias).filter(span=span, begins_at__gte=since)

    def _within(self, stretches: Iterable[tuple[int, datetime]]) -> QuerySet[Metric]:
        those = (Q(span=span, begins_at=begins_at) for span, begins_at in stretches)
        return Metric.objects.using(self.alias).filter(reduce(or_, those))

    def _places(self, keys: Set[Key]) -> dict[Key, int]:
        """Find all rows of the stretches that keys are of."""
        found = self._within({key[:2] for key in keys}).values_list("pk", *_UNIQUE)
        return {row[1:]: row[0] for row in found}

    def _made(self, keys: Set[Key]) -> dict[Key, int]:
        """Find rows; make those that are not there yet, with nothing in them, as far as there is room for more.

        One statement on its own: within a transaction it would keep others waiting who make the same rows, for as long
        as its process is held up. In one order for all that do so.
        """
        places = self._places(keys)
        if missing := _with_room(sorted(keys - places.keys()), places):
            marks = ", ".join(["(%s, %s, %s, %s, '{}', '{}')"] * len(missing))
            values = [value for span, begins_at, *name in missing for value in (span, self._given(begins_at), *name)]
            statement = f"INSERT INTO job_queue_metric ({', '.join(_UNIQUE)}, waited, ran) VALUES {marks}"
            self.unit(lambda: self._insert(f"{statement} ON CONFLICT DO NOTHING", values))
            places = self._places(keys)
        return {key: place for key, place in places.items() if key in keys}

    def _insert(self, statement: str, values: Sequence[Any]) -> None:
        with connections[self.alias].cursor() as cursor:
            cursor.execute(statement, values)

    def _free_rows(self, places: Iterable[int], *columns: str) -> list[dict[str, Any]]:
        """Lock rows, but for those that others have locked, and read them."""
        rows = Metric.objects.using(self.alias).filter(pk__in=list(places)).order_by("pk")
        return [dict(row) for row in rows.select_for_update(skip_locked=True).values(*_UNIQUE, *columns)]

    def _write(self, rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> None:
        """Store what has changed of locked rows, in one statement."""
        Metric.objects.using(self.alias).bulk_create(
            [Metric(**row) for row in rows], update_conflicts=True, unique_fields=_UNIQUE, update_fields=columns
        )

    def _add(self, places: Mapping[Key, int], named: Mapping[Name, Tally]) -> bool:
        rows = self._free_rows(places.values(), *_COUNTED)
        if len(rows) < len(places):
            return False
        self._write([row | _added(row, named[row["queue"], row["type"]]) for row in rows], _COUNTED)
        return True

    def _note(self, places: Mapping[Key, int], found: Mapping[Name, Met]) -> bool:
        """Note what was met, and that nothing was of other rows; say whether it was noted of all together."""
        rows = self._free_rows(places.values())
        self._write([row | found.get((row["queue"], row["type"]), Met())._asdict() for row in rows], Met._fields)
        return sum((row["queue"], row["type"]) == ALL for row in rows) == len(KEPT)

    def _forget(self, now: datetime) -> bool:
        """Delete what is kept no longer, some at a time; say that it was tried."""
        for span, kept in KEPT.items():
            old = Metric.objects.using(self.alias).filter(span=span, begins_at__lt=now - kept).order_by("begins_at")
            free = old.select_for_update(skip_locked=True).values_list("pk", flat=True)[:_FORGET_AT_ONCE]
            if places := list(free):
                Metric.objects.using(self.alias).filter(pk__in=places).delete()
        return True

    # Depth

    def _given(self, moment: datetime) -> Any:
        """Spell a moment out as the database wants it."""
        return Metric._meta.get_field("begins_at").get_db_prep_value(moment, connections[self.alias])

    def _found(self, statement: str, given: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        with connections[self.alias].cursor() as cursor:
            cursor.execute(statement, given)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

    def _waiting(self, cap: int, most: int) -> dict[Name, tuple[int, int, datetime | None]]:
        """Count what is due and what is not, up to one more than the cap, and find the oldest that is due."""
        given = {"now": self._given(self.now()), "limit": cap + 1}
        rows = _named(self._found(statements.waiting(most + 1), given))  # one of them may have no names
        return {
            name: (due, later, oldest and as_utc(oldest, connections[self.alias]))
            for name, (due, later, oldest) in sorted(rows.items())[:most]
        }

    def _running(self, cap: int) -> dict[Name, int]:
        return {name: count for name, (count,) in _named(self._found(statements.RUNNING, {"limit": cap})).items()}


def _keys(moment: datetime, names: Iterable[Name]) -> set[Key]:
    return {(span, begin_of(moment, span), *name) for name in names for span in KEPT}


def _with_room(missing: Iterable[Key], places: Iterable[Key]) -> list[Key]:
    """Leave out kinds, and queues, that are more than a stretch tells apart; there is room for all together always."""
    many = Counter(map(_crowd, places))
    found = []
    for key in missing:
        many[_crowd(key)] += 1
        if many[_crowd(key)] <= MOST_GROUPS or key[2:] == ALL:
            found.append(key)
    return found


def _crowd(key: Key) -> tuple[int, datetime, str]:
    """Say among which a row is counted: those of kinds, those of queues, or that of all together."""
    span, begins_at, queue, kind = key
    return span, begins_at, "kinds" if kind else "queues" if queue else "all"


def _added(row: Mapping[str, Any], tally: Tally) -> dict[str, Any]:
    found = {name: min(row[name] + getattr(tally, name), _MOST) for name in ENDS}
    for name in _TIMES:
        both = merged((_lengths(row, name), getattr(tally, name)))
        found |= {name: written(both.buckets), f"{name}_count": min(both.number, _MOST), f"{name}_sum": both.total}
    return found


def _lengths(row: Mapping[str, Any], name: str) -> Lengths:
    return Lengths(read(row[name]), _amount(row[f"{name}_sum"]))


def _amount(seconds: float) -> float:
    """Read a length of time; one beyond all, which another program has written, counts for nothing."""
    return seconds if abs(seconds) < _BEYOND_ALL else 0.0


def _met(values: Iterable[Any]) -> tuple[int | None, int | None, float | None]:
    queued, in_progress, oldest = values
    return queued, in_progress, None if oldest is None else _amount(oldest)


def _named(rows: Iterable[tuple[Any, ...]]) -> dict[Name, tuple[Any, ...]]:
    """Leave out what has no names, or, on SQLite, names that are no text."""
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
    waited, ran = (_lengths(row, name) for name in _TIMES)
    tally = Tally(row["queue"], row["type"], **counts, waited=waited, ran=ran)
    return Stretch(row["begins_at"], tally, *_met(row[name] for name in Met._fields))


def _stretch_over_queues(job_type: str, row: Mapping[str, Any]) -> Stretch:
    counts = {name: row[f"all_{name}"] for name in ENDS}
    waited, ran = (Lengths(read(*row[f"all_{name}"]), _amount(row[f"all_{name}_sum"])) for name in _TIMES)
    tally = Tally("", job_type, **counts, waited=waited, ran=ran)
    return Stretch(row["begins_at"], tally, *_met(row[f"all_{name}"] for name in Met._fields))
