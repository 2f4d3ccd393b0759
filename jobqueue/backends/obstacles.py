"""Rows that make a verb fail for all others: each is found by itself, and ended as a dead letter that says why."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

from django.db import transaction
from django.db.models import F

from jobqueue.backends.matching import in_status
from jobqueue.clock import SYSTEM
from jobqueue.models import Job
from jobqueue.records import ClaimRequest, JobRecord, Pause
from jobqueue.records.outcome import MESSAGE_LIMIT, storable
from jobqueue.states import JobStatus

logger = logging.getLogger("jobqueue")

#: How many jobs beyond those of a claim are tried one by one.
LOOKED_BEYOND = 50
#: For how many seconds a job is left out before it is tried again: an operator may have mended it.
LEFT_OUT_FOR = 300.0
#: So many jobs are ended for the same reason within that time; more of them are hardly at fault themselves.
MOST_ALIKE = 10
MOST_LEFT_OUT = 1_000
REASON = "unreadable"


class _Table(Protocol):
    """What is asked of a backend."""

    alias: str

    def now(self) -> datetime: ...
    def get(self, job_id: str) -> JobRecord | None: ...
    def pauses(self) -> list[Pause]: ...
    def lies_in_row(self, error: Exception) -> bool: ...
    def check_deferred(self) -> None: ...


class _NotMeant(Exception):
    """Undoes what was only tried."""


class Obstacles:
    """Finds the jobs that cannot be claimed or settled, whatever the reason: a value, a trigger, a constraint.

    One that cannot even be ended is left out of claims and sweeps for a while. ``left_out`` has the reasons by id.
    """

    def __init__(self, table: _Table) -> None:
        self._table = table
        self._since = 0.0
        self._alike: list[tuple[float, str]] = []
        self.left_out: dict[str, str] = {}

    def among_due(self, owner: str, request: ClaimRequest) -> int:
        """Try to claim each of the first jobs of a claim by itself; say how many of them were in the way."""
        due = in_status(self._table.alias, JobStatus.QUEUED).filter(
            priority__gt=0, scheduled_at__lte=self._table.now(), type__in=sorted(request.types)
        )
        if request.queues is not None:
            due = due.filter(queue__in=sorted(request.queues))
        for pause in self._table.pauses():
            due = due.exclude(**{pause.scope.value: pause.name})
        first = due.exclude(pk__in=list(self.left_out)).order_by("priority", "scheduled_at", "pk")
        # Locked, so that nobody takes one between the try and its end.
        free = first.select_for_update(skip_locked=True).values_list("pk", flat=True)
        ids = list(free[: request.limit + LOOKED_BEYOND])
        return len(ids) - len(self.among(ids, partial(self._claim, owner)))

    def among(self, ids: Sequence[str], work: Callable[[str], object]) -> list[str]:
        """Do a piece of work for each job by itself; end those for which it fails, and return the others.

        Where many fail alike, the reason is hardly theirs, but a trigger that refuses everything, a migration that is
        missing, or a fault of this release. Those are left out and not ended; and where these are too many, it fails.
        """
        done, failed = [], dict[str, Exception]()
        for job_id in ids:
            try:
                with transaction.atomic(using=self._table.alias):
                    work(job_id)
                    self._table.check_deferred()
            except _NotMeant:
                done.append(job_id)
            except Exception as error:
                if not self._table.lies_in_row(error):
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
        """Count a failure; say whether many were alike of late."""
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
        """Have those that were left out for long enough tried again."""
        if self.left_out and SYSTEM.monotonic() - self._since > LEFT_OUT_FOR:
            self.left_out.clear()

    def _claim(self, owner: str, job_id: str) -> None:
        """Claim a job, read all of it, and undo that."""
        now = self._table.now()
        changes = {"attempts": F("attempts") + 1, "fence": F("fence") + 1, "started_at": now, "updated_at": now}
        taken = Job.objects.using(self._table.alias).filter(pk=job_id, status=JobStatus.QUEUED.value)
        if not taken.update(
            status=JobStatus.IN_PROGRESS.value, lease_owner=owner, lease_until=now + timedelta(seconds=60), **changes
        ):
            raise ValueError("the database left it as it was")
        self._table.get(job_id)
        self._table.check_deferred()
        raise _NotMeant

    def _is_ended(self, job_id: str, words: str) -> bool:
        """End a job that is in the way; say whether the database took that."""
        now = self._table.now()
        try:
            with transaction.atomic(using=self._table.alias):
                found = Job.objects.using(self._table.alias).filter(pk=job_id)
                count = found.update(
                    status=JobStatus.DEAD_LETTER.value,
                    end_reason=REASON,
                    error=f"{REASON}: {words}",
                    completed_at=now,
                    updated_at=now,
                    lease_owner=None,
                    lease_until=None,
                )
                self._table.check_deferred()
        except Exception as error:
            if not self._table.lies_in_row(error):
                raise
            return False
        if count:
            logger.error("Job %s cannot be run, and is a dead letter: %s", job_id, words)
        return bool(count)


def _words(error: Exception) -> str:
    """Name an error; further lines of a database's would quote the row."""
    return storable(f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}", MESSAGE_LIMIT)
