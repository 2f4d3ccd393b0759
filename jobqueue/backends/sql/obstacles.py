"""Obstacles: rows that make a statement fail for all its rows. Each becomes a dead letter with the error."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial

from django.db.models import F

from jobqueue.backends.sql.filters import in_status, without_paused
from jobqueue.backends.sql.ports.jobs import SqlJobReader
from jobqueue.backends.sql.session import Session
from jobqueue.clock import SYSTEM
from jobqueue.models import Job
from jobqueue.records import ClaimRequest
from jobqueue.records.outcome import MESSAGE_LIMIT, storable
from jobqueue.states import JobStatus

logger = logging.getLogger("jobqueue")

#: How many more jobs than a claim requests are tried one by one.
LOOKED_BEYOND = 50
#: Seconds until a job that is left out is tried again, because an operator may have repaired it.
LEFT_OUT_FOR = 300.0
#: How many jobs are ended for the same error within that time. If more fail, the cause is probably not in the jobs.
MOST_ALIKE = 10
MOST_LEFT_OUT = 1_000
REASON = "unreadable"


class _NotMeant(Exception):
    """Raised to roll a trial back."""


class Obstacles:
    """Finds the jobs that can't be claimed or settled because of a value, a trigger or a constraint.

    A job that can't be ended either is left out of claims and sweeps for a while. ``left_out`` has the reasons by id.
    """

    def __init__(self, session: Session, jobs: SqlJobReader) -> None:
        self._session = session
        self._jobs = jobs
        self._since = 0.0
        self._alike: list[tuple[float, str]] = []
        self.left_out: dict[str, str] = {}

    def among_due(self, owner: str, request: ClaimRequest) -> int:
        """Try to claim the first due jobs one by one. Return how many of them failed."""
        due = in_status(self._session.alias, JobStatus.QUEUED).filter(
            priority__gt=0, scheduled_at__lte=self._session.now(), type__in=sorted(request.types)
        )
        if request.queues is not None:
            due = due.filter(queue__in=sorted(request.queues))
        open_to = without_paused(self._session.alias, due)
        first = open_to.exclude(pk__in=list(self.left_out)).order_by("priority", "scheduled_at", "pk")
        # Locked, so that no other worker takes one between the trial and its end.
        free = first.select_for_update(skip_locked=True).values_list("pk", flat=True)
        ids = list(free[: request.limit + LOOKED_BEYOND])
        return len(ids) - len(self.among(ids, partial(self._claim, owner)))

    def among(self, ids: Sequence[str], work: Callable[[str], object]) -> list[str]:
        """Do work for the jobs one by one. End the jobs for which it fails, and return the others.

        If many jobs fail with the same error, the cause is probably not in the jobs: a trigger refuses everything, a
        migration is missing, or this release has a bug. These jobs are left out instead of ended. If too many jobs are
        left out, the error is raised.
        """
        done, failed = [], dict[str, Exception]()
        for job_id in ids:
            try:
                with self._session.atomic():
                    work(job_id)
                    self._session.check_deferred()
            except _NotMeant:
                done.append(job_id)
            except Exception as error:
                if not self._session.lies_in_row(error):
                    raise
                failed[job_id] = error
            else:
                done.append(job_id)
        for job_id, failure in failed.items():
            if len(self.left_out) >= MOST_LEFT_OUT:
                raise failure
            words = _words(failure)
            if self._is_common(words) or not self._is_ended(job_id, words):
                self._leave_out(job_id, words)
        return done

    def _is_common(self, words: str) -> bool:
        """Record a failure. Return whether many recent failures had the same error."""
        now = SYSTEM.monotonic()
        self._alike = [one for one in self._alike if now - one[0] < LEFT_OUT_FOR]
        if sum(seen == words for _moment, seen in self._alike) >= MOST_ALIKE:
            return True
        self._alike.append((now, words))
        return False

    def _leave_out(self, job_id: str, words: str) -> None:
        self._since = SYSTEM.monotonic()
        self.left_out[job_id] = words
        logger.error("Job %s can neither be run nor ended, and is left out: %s", job_id, words)

    def forget(self) -> None:
        """Try jobs again that were left out long enough ago."""
        if self.left_out and SYSTEM.monotonic() - self._since > LEFT_OUT_FOR:
            self.left_out.clear()

    def _claim(self, owner: str, job_id: str) -> None:
        """Claim a job, read all its columns, and roll back."""
        now = self._session.now()
        changes = {"attempts": F("attempts") + 1, "fence": F("fence") + 1, "started_at": now, "updated_at": now}
        taken = self._session.rows(Job).filter(pk=job_id, status=JobStatus.QUEUED.value)
        if not taken.update(
            status=JobStatus.IN_PROGRESS.value, lease_owner=owner, lease_until=now + timedelta(seconds=60), **changes
        ):
            raise ValueError("the database left it as it was")
        self._jobs.get(job_id)
        self._session.check_deferred()
        raise _NotMeant

    def _is_ended(self, job_id: str, words: str) -> bool:
        """Make a job a dead letter. Return whether the database accepted that."""
        now = self._session.now()
        try:
            with self._session.atomic():
                found = self._session.rows(Job).filter(pk=job_id)
                count = found.update(
                    status=JobStatus.DEAD_LETTER.value,
                    end_reason=REASON,
                    error=f"{REASON}: {words}",
                    completed_at=now,
                    updated_at=now,
                    lease_owner=None,
                    lease_until=None,
                )
                self._session.check_deferred()
        except Exception as error:
            if not self._session.lies_in_row(error):
                raise
            return False
        if count:
            logger.error("Job %s cannot be run, and is a dead letter: %s", job_id, words)
        return bool(count)


def _words(error: Exception) -> str:
    """Return the class and the first line of an error. Other lines may quote the row."""
    return storable(f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}", MESSAGE_LIMIT)
