"""Filters as querysets: the rows that match, and how they are read along an index."""

from __future__ import annotations

from django.db import connections
from django.db.models import CharField, Func, QuerySet

from jobqueue.backends.sql.payload_lookup import Holds
from jobqueue.models import Job, Pause
from jobqueue.records import Filter, Scope
from jobqueue.states import JobStatus


def literally(status: JobStatus) -> Func:
    """Write a status out: with a parameter instead, SQLite would not use the partial indexes of that status."""
    return Func(template=f"'{status.value}'", output_field=CharField())


def in_status(alias: str, status: JobStatus) -> QuerySet[Job]:
    """Find the jobs of one status."""
    return Job.objects.using(alias).filter(status=literally(status))


def paused(alias: str) -> set[tuple[str, str]]:
    """Read what is paused: the column, ``queue`` or ``type``, and the name."""
    scopes = [scope.value for scope in Scope]  # a newer release may have more of them
    return set(Pause.objects.using(alias).filter(scope__in=scopes).values_list("scope", "name"))


def without_paused(alias: str, rows: QuerySet[Job]) -> QuerySet[Job]:
    """Leave out the jobs of paused queues and types."""
    for column, name in sorted(paused(alias)):
        rows = rows.exclude(**{column: name})
    return rows


def matching(alias: str, wanted: Filter) -> QuerySet[Job]:
    """Find the jobs that match a filter, in no order."""
    rows = in_status(alias, *wanted.statuses) if len(wanted.statuses) == 1 else Job.objects.using(alias).all()
    return narrowed(rows, wanted)


def narrowed(rows: QuerySet[Job], wanted: Filter) -> QuerySet[Job]:
    """Narrow rows down to those that match a filter. No partial index serves its condition on the status."""
    sets = {"pk": wanted.ids, "status": wanted.statuses, "type": wanted.types, "queue": wanted.queues}
    for column, values in sets.items():
        if values:
            rows = rows.filter(**{f"{column}__in": sorted(values)})
    for column in ("tenant", "idempotency_key", "parent_id", "lease_owner"):
        if (value := getattr(wanted, column)) is not None:
            rows = rows.filter(**{column: value})
    if wanted.fingerprint is not None:
        rows = rows.filter(error_fingerprint=wanted.fingerprint or None)
    if wanted.error:
        rows = rows.filter(error__icontains=wanted.error)
    if wanted.created_after is not None:
        rows = rows.filter(created_at__gte=wanted.created_after)
    if wanted.created_before is not None:
        rows = rows.filter(created_at__lt=wanted.created_before)
    for path, value in wanted.payload:
        rows = rows.filter(Holds("payload", path, value))
    return rows.filter(pk__startswith=wanted.id_prefix) if wanted.id_prefix else rows


# Without statistics Postgres takes a table for a small one, and would rather sort all that matches than walk a part of
# an index. The limit is a subquery, so that it doesn't know beforehand how far the walk goes.


def ids_from(rows: QuerySet[Job], skip: int, most: int) -> list[str]:
    """Read some ids of ordered rows along the index that has their order."""
    statement, params = rows.values_list("pk", flat=True).query.get_compiler(rows.db).as_sql()
    with connections[rows.db].cursor() as cursor:
        cursor.execute(f"{statement} LIMIT (SELECT %s) OFFSET (SELECT %s)", [*params, most, skip])
        return [job_id for (job_id,) in cursor.fetchall()]


def count_to(rows: QuerySet[Job], most: int) -> int:
    """Count ordered rows along the index that has their order, up to ``most``."""
    statement, params = rows.values_list("pk", flat=True).query.get_compiler(rows.db).as_sql()
    with connections[rows.db].cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM ({statement} LIMIT (SELECT %s)) AS counted", [*params, most])
        (count,) = cursor.fetchone()
        return int(count)
