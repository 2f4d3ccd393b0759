"""The search of jobs that wait for somebody, along the index that has those of a status in order of id.

The index also has the columns that most filters name, so that the rows that don't match aren't read. Such a search is
complete, however many jobs wait. So is one for errors, if ``texts`` finds them. A filter on payloads reads each
row, and so covers a range of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import reduce
from operator import and_

from django.db.models import QuerySet

from jobqueue.backends.sql.filters import conditions, count_to, ids_among, ids_from, in_status, narrowed
from jobqueue.backends.sql.search.plan import IdRange, SearchPlan, beginning, newest_of
from jobqueue.backends.sql.search.texts import by_texts, is_in_texts
from jobqueue.backends.sql.session import Session
from jobqueue.ids import begins_ulid
from jobqueue.models import Job
from jobqueue.states import JobStatus

#: How many rows the first search reads. They are scattered: each may be on a page of its own.
WALKED = 10_000


def walked(session: Session, plan: SearchPlan, most: int) -> tuple[IdRange | None, list[str]]:
    """Find the newest matches, up to ``most``, as ids. The range is ``None`` if all were found in the index."""
    statuses = sorted(plan.wanted.statuses)
    parts = [_of_status(session.alias, status, plan) for status in statuses]
    if is_in_texts(plan):
        told = [by_texts(session, plan, part, status, most) for part, status in zip(parts, statuses, strict=True)]
        if None not in told:
            return _all_of(session, parts, most), _newest(filter(None, told))[:most]
    with session.index_order(most):
        if plan.reads_rows:
            return _read(parts, plan, most)
        return None, _newest(ids_from(part.order_by("-pk"), 0, most) for part in parts)[:most]


def _all_of(session: Session, parts: Sequence[QuerySet[Job]], most: int) -> IdRange:
    """Return the range of a complete search. Its size must not depend on matches, which redaction may hide."""
    with session.index_order(most):
        return IdRange("", "", sum(count_to(part.order_by("-pk"), most) for part in parts))


def _of_status(alias: str, status: JobStatus, plan: SearchPlan) -> QuerySet[Job]:
    """Find the jobs of one status that match as far as its index can tell."""
    rows = in_status(alias, status)
    if plan.before_id is not None:
        rows = rows.filter(pk__lt=plan.before_id)
    if begins_ulid(plan.wanted.id_prefix):
        rows = beginning(rows, plan.wanted.id_prefix)
    return narrowed(rows, plan.in_index)


def _read(parts: Sequence[QuerySet[Job]], plan: SearchPlan, most: int) -> tuple[IdRange | None, list[str]]:
    """Read the newest rows of each status, back to an id that the searches of all of them reach."""
    read = WALKED // len(parts)
    ranges = [newest_of(part, plan.wanted, plan.before_id, read) for part in parts]
    all_read = IdRange("", "", sum(one.size for one in ranges))
    if partial := {one.low: one for one in ranges if one.is_part}:
        low = _latest(parts[0].db, partial)
        parts = [part.filter(pk__gte=low) for part in parts]
        all_read = replace(partial[low], size=all_read.size)
    matches = reduce(and_, conditions(plan.in_rows))
    found = _newest(ids_among(part, one.size, matches, most) for part, one in zip(parts, ranges, strict=True))
    return all_read, found[:most]


def _latest(alias: str, ids: Collection[str]) -> str:
    """Return the greatest id in the order of the database, which depends on its collation."""
    rows = Job.objects.using(alias).filter(pk__in=ids).order_by("-pk")
    return rows.values_list("pk", flat=True).first() or max(ids)


def _newest(parts: Iterable[Sequence[str]]) -> list[str]:
    """Merge the ids of each status. Those of one alone are in the order of the database."""
    found = list(parts)
    return list(found[0]) if len(found) == 1 else sorted((job_id for part in found for job_id in part), reverse=True)
