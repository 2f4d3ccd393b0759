"""Filters as querysets, and reads of their rows in the order of an index."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import and_

from django.db import connections
from django.db.models import (
    BooleanField,
    CharField,
    Exists,
    ExpressionWrapper,
    F,
    Func,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
)

from jobqueue.backends.sql.payload_lookup import Holds
from jobqueue.models import Attempt, Job, Pause
from jobqueue.records import Filter, Scope
from jobqueue.states import JobStatus


def literally(status: JobStatus) -> Func:
    """Return a status as a literal. With a parameter, SQLite would not use the partial indexes on the status."""
    return Func(template=f"'{status.value}'", output_field=CharField())


def in_status(alias: str, status: JobStatus) -> QuerySet[Job]:
    """Return the jobs with a status, in a way that can use the partial indexes on the status."""
    return Job.objects.using(alias).filter(status=literally(status))


def paused(alias: str) -> set[tuple[str, str]]:
    """Return the paused queues and types, as pairs of ``"queue"`` or ``"type"`` and a name."""
    scopes = [scope.value for scope in Scope]  # a newer release may have stored others
    return set(Pause.objects.using(alias).filter(scope__in=scopes).values_list("scope", "name"))


def without_paused(alias: str, rows: QuerySet[Job]) -> QuerySet[Job]:
    """Leave out the jobs of paused queues and types."""
    for column, name in sorted(paused(alias)):
        rows = rows.exclude(**{column: name})
    return rows


def matching(alias: str, wanted: Filter) -> QuerySet[Job]:
    """Return the jobs that match a filter, unordered."""
    rows = in_status(alias, *wanted.statuses) if len(wanted.statuses) == 1 else Job.objects.using(alias).all()
    return narrowed(rows, wanted)


def narrowed(rows: QuerySet[Job], wanted: Filter) -> QuerySet[Job]:
    """Narrow rows down to those that match a filter. No partial index serves its condition on the status."""
    for condition in conditions(wanted):
        rows = rows.filter(condition)
    for one in wanted.excluded:
        rows = rows.exclude(reduce(and_, conditions(one)))
    return rows


#: The columns of fields that name the values a job may have, and of those that name one value.
_SETS = {"ids": "pk", "statuses": "status", "types": "type", "queues": "queue", "end_reasons": "end_reason"}
_ONES = ("tenant", "idempotency_key", "parent_id", "lease_owner")
_BOUNDS = {"created_after": "created_at__gte", "created_before": "created_at__lt"}
_BOUNDS |= {"ended_after": "completed_at__gte", "ended_before": "completed_at__lt"}


def conditions(wanted: Filter) -> Iterator[Q]:
    """Yield what a filter demands, except for what it excludes."""
    given = {column: getattr(wanted, field) for field, column in _SETS.items()}
    yield from (Q((f"{column}__in", sorted(values))) for column, values in given.items() if values)
    yield from (Q((column, value)) for column in _ONES if (value := getattr(wanted, column)) is not None)
    yield from (Q((lookup, value)) for field, lookup in _BOUNDS.items() if (value := getattr(wanted, field)))
    for column in ("priority", "attempts"):
        if (numbers := getattr(wanted, column)) is not None:
            yield Q((f"{column}__gte", numbers.least), (f"{column}__lte", numbers.most))
    if wanted.fingerprint is not None:
        yield Q(error_fingerprint=wanted.fingerprint) if wanted.fingerprint else Q(error_fingerprint__isnull=True)
    if wanted.error:
        yield Q(error__icontains=wanted.error) | of_class(wanted.error)
    if wanted.error_class:
        yield of_class(wanted.error_class)
    yield from (Q(Holds("payload", path, value)) for path, value in wanted.payload)
    if wanted.id_prefix:
        yield Q(pk__startswith=wanted.id_prefix)


def last_class() -> Subquery:
    """Return the expression of the class of the last attempt's error. The history has it."""
    return Subquery(_last_attempt().values("error_class"))


def of_class(text: str) -> Q:
    """Return the condition that this class contains a text, ignoring case. Jobs without an error aren't looked up."""
    return Q(Exists(_last_attempt().filter(error_class__icontains=text)), error__isnull=False)


def _last_attempt() -> QuerySet[Attempt]:
    return Attempt.objects.filter(job_id=OuterRef("pk"), fence=OuterRef("fence"))


# Without statistics, Postgres assumes that a table is small, and would sort all matching rows instead of reading a part
# of an index. With the limit in a subquery, the planner doesn't know how many rows are needed, and uses the index.


def ids_from(rows: QuerySet[Job], skip: int, most: int) -> list[str]:
    """Return ids of ordered rows, read from the index with the same order."""
    statement, params = rows.values_list("pk", flat=True).query.get_compiler(rows.db).as_sql()
    with connections[rows.db].cursor() as cursor:
        cursor.execute(f"{statement} LIMIT (SELECT %s) OFFSET (SELECT %s)", [*params, most, skip])
        return [job_id for (job_id,) in cursor.fetchall()]


def ids_among(rows: QuerySet[Job], size: int, condition: Q, most: int) -> list[str]:
    """Read the newest ``size`` rows, and return the ids of those that meet a condition, up to ``most``.

    The rows are a subquery with a limit, so that no planner looks for matches in another order.
    """
    is_match = ExpressionWrapper(condition, output_field=BooleanField())
    read = rows.annotate(job_id=F("pk"), is_match=is_match).order_by("-pk").values_list("job_id", "is_match")
    statement, params = read.query.get_compiler(rows.db).as_sql()
    with connections[rows.db].cursor() as cursor:
        limited = f"SELECT job_id FROM ({statement} LIMIT (SELECT %s)) AS newest WHERE is_match LIMIT %s"
        cursor.execute(limited, [*params, size, most])
        return [job_id for (job_id,) in cursor.fetchall()]


def count_to(rows: QuerySet[Job], most: int) -> int:
    """Count ordered rows up to ``most``, in the index with the same order."""
    statement, params = rows.values_list("pk", flat=True).query.get_compiler(rows.db).as_sql()
    with connections[rows.db].cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM ({statement} LIMIT (SELECT %s)) AS counted", [*params, most])
        (count,) = cursor.fetchone()
        return int(count)
