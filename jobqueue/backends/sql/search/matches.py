"""The ids that a planned search finds."""

from __future__ import annotations

from dataclasses import replace

from django.db.models import QuerySet, Value
from django.db.models.functions import Concat

from jobqueue.backends.sql.filters import count_to, ids_from, literally, narrowed
from jobqueue.backends.sql.search.plan import SearchPlan, Way, beginning
from jobqueue.backends.sql.search.walk import walked
from jobqueue.backends.sql.session import Session
from jobqueue.models import Job
from jobqueue.records import Matches


def matches_of(session: Session, plan: SearchPlan, cap: int, oldest_first: bool = False) -> Matches:
    """Find the ids as planned, up to a cap."""
    rows = _before(session.rows(Job), plan)
    if plan.way is Way.ORDER or plan.way is Way.INDEX:
        return _along(session, rows, plan, cap, oldest_first)
    id_range, size = plan.id_range, plan.size
    if plan.way is Way.WALK:
        id_range, ids = walked(session, plan, cap + 1)
        size = id_range.size if id_range else len(ids)
    else:
        ids = _looked_through(rows, plan, cap + 1)
    found, ids = len(ids), ids[:cap]
    matches = Matches(ids[::-1] if oldest_first else ids, found, cap, searched=size or found)
    if id_range is None or not id_range.is_part:
        return matches
    return replace(matches, is_part=True, back_to=id_range.back_to, edge=id_range.low)


class _IndexedIds:
    """Ids that the database reads along an index, slice by slice."""

    def __init__(self, session: Session, rows: QuerySet[Job]) -> None:
        self._session = session
        self._rows = rows

    def __getitem__(self, part: slice) -> list[str]:
        with self._session.reading():
            return ids_from(self._rows, part.start, part.stop - part.start)


def _before(rows: QuerySet[Job], plan: SearchPlan) -> QuerySet[Job]:
    """Keep the rows that an earlier search has not searched. A range has them as its end."""
    if plan.before_id is None or plan.way is Way.RANGE:
        return rows
    if plan.way is Way.SET or plan.way is Way.INDEX:
        return rows.alias(own_id=_expressed("pk")).filter(own_id__lt=plan.before_id)
    return rows.filter(pk__lt=plan.before_id)


def _along(session: Session, rows: QuerySet[Job], plan: SearchPlan, cap: int, oldest_first: bool) -> Matches:
    """Let the database page through an index."""
    if plan.index:
        (rows,) = _by_status(rows, plan)
    elif plan.wanted.parent_id is not None:
        rows = narrowed(rows, plan.wanted)
    elif plan.wanted.id_prefix:
        rows = beginning(rows, plan.wanted.id_prefix)
    newest_first = rows.order_by(_expressed("pk").desc() if plan.way is Way.INDEX else "-pk")
    found = count_to(rows.order_by(*(plan.index or ["pk"])), cap + 1)
    ids = _IndexedIds(session, newest_first.reverse() if oldest_first else newest_first)
    return Matches(ids, found, cap, searched=found)


def _looked_through(rows: QuerySet[Job], plan: SearchPlan, most: int) -> list[str]:
    """Fetch the ids of matches, the newest first, up to ``most``."""
    if plan.way is Way.SET:
        by = _by_parent if plan.wanted.parent_id is not None else _by_status
        parts = [part.order_by(_expressed("pk").desc()) for part in by(rows, plan)]
    elif plan.id_range is not None:
        parts = [plan.id_range.of(narrowed(rows, plan.wanted)).order_by("-pk")]
    else:
        parts = [narrowed(rows, plan.wanted).order_by()]
    found = [job_id for part in parts for job_id in part.values_list("pk", flat=True)[:most]]
    return sorted(found, reverse=True)[:most]


def _by_status(rows: QuerySet[Job], plan: SearchPlan) -> list[QuerySet[Job]]:
    """Return one queryset per status, so that each uses the partial index of its status."""
    rest = replace(plan.wanted, statuses=frozenset())
    return [narrowed(rows.filter(status=literally(status)), rest) for status in sorted(plan.wanted.statuses)]


def _by_parent(rows: QuerySet[Job], plan: SearchPlan) -> list[QuerySet[Job]]:
    """Keep the jobs of a parent, by the parent's index. That of a status would have all its jobs."""
    found = narrowed(rows, replace(plan.wanted, statuses=frozenset()))
    if plan.wanted.statuses:
        found = found.alias(state=_expressed("status")).filter(state__in=sorted(plan.wanted.statuses))
    return [found]


def _expressed(column: str) -> Concat:
    """Write a column as an expression, so that no planner scans its index past rows that don't match."""
    return Concat(column, Value(""))
