"""What dead letters of one error have in common, and what the current rule groups them by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import OuterRef, Subquery

from jobqueue.backends.sql.filters import in_status
from jobqueue.backends.sql.ports.jobs import ending_of
from jobqueue.backends.sql.session import Session
from jobqueue.models import Attempt
from jobqueue.policy.fingerprint import Grouping, grouping
from jobqueue.records import Ending, ErrorShare, ErrorShares, Failure
from jobqueue.records.error_group import host_of
from jobqueue.states import JobStatus

#: How many ids a statement names. With many more, a planner without statistics would read the whole table.
ASKED_FOR = 100
_COLUMNS = ("tenant", "queue", "owner", "release")


def shares_of(session: Session, fingerprint: str, most: int) -> ErrorShares:
    """Count what the newest dead letters of a group have in common."""
    past = Attempt.objects.filter(job_id=OuterRef("pk")).order_by("-fence")
    rows = in_status(session.alias, JobStatus.DEAD_LETTER).filter(error_fingerprint=fingerprint or None)
    # The first column is the same for all. Without it, Postgres would sort the jobs that have no fingerprint.
    newest = rows.order_by("-error_fingerprint", "-completed_at", "-pk").annotate(
        owner=Subquery(past.values("owner")[:1]), release=Subquery(past.values("release")[:1])
    )
    found = list(newest.values_list(*_COLUMNS)[: most + 1])
    tenants, queues, owners, releases = zip(*found[:most], strict=True) if found else ((), (), (), ())
    return ErrorShares(
        of=len(found[:most]),
        is_all=len(found) <= most,
        tenants=_shares(tenants),
        queues=_shares(queues),
        hosts=_shares(map(host_of, owners)),
        releases=_shares(releases),
    )


def _shares(names: Iterable[str | None]) -> tuple[ErrorShare, ...]:
    counts = Counter(name or "" for name in names)
    return tuple(ErrorShare(name, counts[name]) for name in sorted(counts, key=lambda one: (-counts[one], one)))


def groupings_of(session: Session, ids: Sequence[str]) -> dict[str, tuple[str | None, Grouping]]:
    """Return the fingerprint of dead letters, and what the current rule groups them by.

    The newest entry of a job's history is its failure.
    """
    past = Attempt.objects.filter(job_id=OuterRef("pk")).order_by("-fence")
    rows = in_status(session.alias, JobStatus.DEAD_LETTER).annotate(attempt=Subquery(past.values("pk")[:1]))
    found: dict[str, tuple[str | None, Grouping]] = {}
    columns = ("pk", "type", "error", "error_fingerprint", "attempt")
    for place in range(0, len(ids), ASKED_FOR):
        part = list(rows.filter(pk__in=ids[place : place + ASKED_FOR]).values(*columns))
        history = _history(session, [row["attempt"] for row in part if row["attempt"] is not None])
        for row in part:
            failure = _failure(row, history.get(row["attempt"]))
            found[row["pk"]] = (row["error_fingerprint"], grouping(row["type"], failure))
    return found


def _history(session: Session, ids: Sequence[int]) -> dict[int, Mapping[str, Any]]:
    rows = session.rows(Attempt).filter(pk__in=ids).values("pk", "ending", "error_class", "message", "traceback")
    return {row["pk"]: row for row in rows}


def _failure(job: Mapping[str, Any], past: Mapping[str, Any] | None) -> Failure:
    """Return the failure of a dead letter. Another program may have written one without history."""
    if past is None:
        return Failure.of(Ending.FAILED, message=job["error"] or "")
    return Failure.of(
        ending_of(past["ending"]),
        error_class=past["error_class"],
        message=past["message"] or job["error"] or "",
        traceback=past["traceback"],
    )
