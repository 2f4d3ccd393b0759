"""The search for errors among failed jobs and dead letters. It reads indexes, so it finds all matches.

All errors with one fingerprint have the same class. So a class is searched among the errors that occur, and its jobs
are found by fingerprint. The text of an error is searched in an index of the database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db.models import Q, QuerySet

from jobqueue.backends.sql.filters import count_to, ids_from, in_status, of_class
from jobqueue.backends.sql.search.plan import SCATTERED, SearchPlan
from jobqueue.backends.sql.session import Session
from jobqueue.models import Job
from jobqueue.states import JobStatus

#: How many errors are looked through for a class.
ERRORS = 1_000

# Each step finds the next fingerprint with a probe of the index of the status, then its newest job with another. A
# column counts the steps, because Postgres allows no LIMIT in the recursive part.
_CLASSES = """
WITH RECURSIVE found(place, fingerprint) AS (
    SELECT 1, (SELECT error_fingerprint {of} > '' ORDER BY error_fingerprint LIMIT 1)
    UNION ALL
    SELECT place + 1, (SELECT error_fingerprint {of} > found.fingerprint ORDER BY error_fingerprint LIMIT 1)
      FROM found WHERE fingerprint IS NOT NULL AND place <= %s
)
SELECT fingerprint, (SELECT error_class FROM job_queue_attempt WHERE job_id = (
           SELECT id {of} = found.fingerprint
            ORDER BY error_fingerprint DESC, completed_at DESC, id DESC LIMIT 1) ORDER BY fence DESC LIMIT 1)
  FROM found WHERE fingerprint IS NOT NULL
"""


def is_in_texts(plan: SearchPlan) -> bool:
    """Return whether errors and their classes are all that rows would be read for."""
    return plan.reads_rows and not plan.wanted.payload and plan.wanted.lease_owner is None


def by_texts(session: Session, plan: SearchPlan, rows: QuerySet[Job], status: JobStatus, most: int) -> list[str] | None:
    """Find the ids of matches in a status, the newest first, up to ``most``. Return ``None`` if no index has them.

    ``rows`` are the jobs that match otherwise.
    """
    with session.index_order(most):
        classes = _classes(session, status)
        if len(classes) > ERRORS:
            return None
        if plan.wanted.error_class:
            kinds = _named(classes, plan.wanted.error_class)
            if not plan.wanted.error:
                return _of_class(rows, status, kinds, plan.wanted.error_class, most)
            rows = rows.filter(Q(error_fingerprint__in=kinds) | _ungrouped(plan.wanted.error_class))
        found = _of_class(rows, status, _named(classes, plan.wanted.error), plan.wanted.error, most)
    texts = session.ids_with_text(rows, plan.wanted.error, most)
    return None if texts is None else sorted({*found, *texts}, reverse=True)[:most]


def _classes(session: Session, status: JobStatus) -> dict[str, str]:
    """Return the class of each error of a status, by fingerprint, up to one more than ``ERRORS``."""
    of = f"FROM job_queue WHERE status = '{status.value}' AND error_fingerprint"
    with session.connection.cursor() as cursor:
        cursor.execute(_CLASSES.format(of=of), [ERRORS])
        return {fingerprint: error_class or "" for fingerprint, error_class in cursor.fetchall()}


def _named(classes: Mapping[str, str], text: str) -> list[str]:
    """Return the fingerprints of errors whose class contains a text, ignoring case."""
    return sorted(name for name, error_class in classes.items() if text.lower() in error_class.lower())


def _ungrouped(text: str) -> Q:
    """Return the condition that a job without a fingerprint has a class with a text, by its history."""
    return Q(error_fingerprint__isnull=True) & of_class(text)


def _of_class(rows: QuerySet[Job], status: JobStatus, kinds: Sequence[str], text: str, most: int) -> list[str]:
    by_end = ("-error_fingerprint", "-completed_at", "-pk")  # in the index of fingerprints, few have none
    ungrouped = ids_from(rows.filter(_ungrouped(text)).order_by(*by_end), 0, max(most, SCATTERED))
    return sorted({*_of_kinds(rows, status, kinds, most), *ungrouped}, reverse=True)[:most]


def _of_kinds(rows: QuerySet[Job], status: JobStatus, kinds: Sequence[str], most: int) -> list[str]:
    """Find the newest jobs with one of the fingerprints.

    If they are few, their own index has them; else enough of them are found soon in the order of ids.
    """
    if not kinds:
        return []
    of_kinds = in_status(rows.db, status).filter(error_fingerprint__in=kinds)
    by_kind = ("error_fingerprint", "completed_at", "pk")
    found = rows.filter(error_fingerprint__in=kinds)
    if count_to(of_kinds.order_by(*by_kind), SCATTERED + 1) > SCATTERED:
        return ids_from(found.order_by("-pk"), 0, most)
    return sorted(ids_from(found.order_by(*by_kind), 0, SCATTERED), reverse=True)[:most]
