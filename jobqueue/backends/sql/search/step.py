"""The way through the whole table in steps of bounded time."""

from __future__ import annotations

from django.db.models import QuerySet

from jobqueue.backends.sql.filters import count_to, ids_from, in_status, matching, narrowed
from jobqueue.backends.sql.search.plan import LEADING
from jobqueue.models import Job
from jobqueue.records import Filter, Step
from jobqueue.states import JobStatus

#: Statuses of which a table keeps few jobs for long: a walk through these alone is shorter.
_RARE = frozenset({JobStatus.FAILED, JobStatus.DEAD_LETTER})
_ACTIVE = frozenset({JobStatus.QUEUED, JobStatus.IN_PROGRESS})


def step_of(alias: str, wanted: Filter, most: int, after_id: str | None) -> Step:
    """Find the matches among at most ``most`` rows after an id."""
    if wanted.ids or wanted.idempotency_key is not None:
        return Step(tuple(sorted(matching(alias, wanted).values_list("pk", flat=True))), None)
    rows = _looked_at(alias, wanted, most)
    if after_id is not None:
        rows = rows.filter(pk__gt=after_id)
    edge = ids_from(rows.order_by("pk"), most - 1, 1)
    end = edge or ids_from(rows.order_by("-pk"), 0, 1)
    if not end:
        return Step((), None)
    # With both ends given, Postgres always expects few rows.
    part = narrowed(rows.filter(pk__gte=after_id or "", pk__lte=end[0]), wanted)
    return Step(tuple(part.order_by("pk").values_list("pk", flat=True)), edge[0] if edge else None)


def _looked_at(alias: str, wanted: Filter, most: int) -> QuerySet[Job]:
    """Return the rows to walk through: all, those of a parent, or those of one status if an index has few of them."""
    if wanted.parent_id is not None:
        return Job.objects.using(alias).filter(parent_id=wanted.parent_id)
    if len(wanted.statuses) == 1:
        (status,) = wanted.statuses
        rows = in_status(alias, status)
        if status in _RARE or (status in _ACTIVE and count_to(rows.order_by(*LEADING[status]), most) < most):
            return rows
    return Job.objects.using(alias).all()
