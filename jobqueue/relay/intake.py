"""The intake: the shared database's side of a relay, which takes in each batch of an outbox once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Q

from jobqueue.backends.sql.session import Session
from jobqueue.errors import RelayInCircle
from jobqueue.models import Attempt, Job, Relay
from jobqueue.policy.redaction import redact_text
from jobqueue.records import Dead, Stopped
from jobqueue.records.relay import Batch, Refused
from jobqueue.states import ACTIVE, JobStatus

_AGAIN = {
    "status": JobStatus.QUEUED.value,
    "lease_owner": None,
    "lease_until": None,
    "cancel_requested_at": None,
    "lane": None,
    "lane_position": None,  # positions of another database
}


class Intake:
    """Takes jobs in with their ids, columns and history.

    The jobs and the name of a batch are stored in one transaction. The name shows that the batch was stored, even after
    its jobs were purged.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._jobs = session.rows(Job)
        self._relays = session.rows(Relay)

    def receive(self, source: str, take: Callable[[], Batch | None]) -> tuple[Batch, Mapping[str, Refused]] | None:
        """Store the next batch of an outbox. Return the batch and its refused jobs, or ``None`` if there is no batch.

        The row of the outbox is locked before ``take`` is called. A relay that was suspended for a while therefore gets
        the current batch, and can't store an old one again.
        """

        def work() -> tuple[Batch, Mapping[str, Refused]] | None:
            row = self._relays.filter(pk=source).select_for_update(skip_locked=True).first()
            if row is not None and row.is_own:
                raise RelayInCircle(self._session.alias)
            batch = None if row is None else take()
            if row is None or batch is None:
                return None
            if batch.jobs and batch.holder != row.batch:
                row.refused = {_escaped(job_id): one for job_id, one in self._store(batch).items()}
                row.batch, row.relayed_at = batch.holder, self._session.now()
                row.save(using=self._session.alias)
            return batch, {_read(key): Refused(JobStatus(one[0]), *one[1:]) for key, one in row.refused.items()}

        self._introduce(source)
        return self._session.transact(work)

    def _introduce(self, source: str) -> None:
        with self._session.reading():
            if not self._relays.filter(pk=source).exists():
                self._relays.bulk_create([Relay(source=source, is_own=False)], ignore_conflicts=True)

    def _store(self, batch: Batch) -> dict[str, list[str]]:
        """Store jobs in order of id. Return the refused ones, each with status, reason and error."""
        now = self._session.now()
        jobs = [Job(**{**row, **_AGAIN, "scheduled_at": _due_at(row, now), "updated_at": now}) for row in batch.jobs]
        self._refusal(lambda: self._jobs.bulk_create(jobs, ignore_conflicts=True))
        there = self._there([job.pk for job in jobs])
        refused = {job.pk: one for job in jobs if job.pk not in there and (one := self._store_alone(job))}
        history = [Attempt(**row) for row in batch.attempts if row["job_id"] not in refused]
        if not self._is_kept(history):
            for past in history:
                self._is_kept([past])
        return refused

    def _refusal(self, work: Callable[[], object]) -> Exception | None:
        """Do work in a savepoint. Return the error if a row caused one."""
        try:
            with self._session.atomic():
                work()
        except Exception as error:
            if not self._session.lies_in_row(error):
                raise
            return error
        return None

    def _there(self, ids: Sequence[str]) -> set[str]:
        """Return the ids of the stored jobs. An id that the database rejects isn't stored."""
        found: set[str] = set()
        if self._refusal(lambda: found.update(self._jobs.filter(pk__in=ids).values_list("pk", flat=True))):
            for one in ids if len(ids) > 1 else ():
                found |= self._there([one])
        return found

    def _is_kept(self, history: Sequence[Attempt]) -> bool:
        """Store the history of jobs. Return whether the database accepted all of it."""
        attempts = self._session.rows(Attempt)
        return self._refusal(lambda: attempts.bulk_create(history, ignore_conflicts=True)) is None

    def _store_alone(self, job: Job) -> list[str] | None:
        """Store one job, or return why it was refused."""
        error = self._refusal(lambda: job.save(using=self._session.alias, force_insert=True))
        if error is None:
            return None
        held: list[list[str] | None] = []
        self._refusal(lambda: held.append(self._duplicate(job)))  # if the database rejects the key, no job here has it
        return next(filter(None, held), None) or _kept(Dead("not relayed"), _told(error))

    def _duplicate(self, job: Job) -> list[str] | None:
        """Return why a job was refused, if a job of this database has its key."""
        by_key = Q(idempotency_key=job.idempotency_key) if job.idempotency_key is not None else Q(pk=None)
        if job.unique_key is not None:
            by_key |= Q(unique_key=job.unique_key, status__in=sorted(ACTIVE))
        holder = self._jobs.filter(by_key).order_by("pk").first()
        if holder is None:
            return None
        whose = f"Job {holder.pk} of type {holder.type!r} in the shared database has its key"
        if holder.type != job.type:
            return _kept(Dead("not relayed"), f"{whose}; another type's work would be lost.")
        differs = ", and other payload" if holder.payload != job.payload else ""
        return _kept(Stopped("duplicate"), f"{whose}{differs}; it stands for this one.")


def _kept(decision: Dead | Stopped, error: str) -> list[str]:
    """Return the status, reason and error that a refused job gets in its outbox, as JSON."""
    status = JobStatus.FAILED if isinstance(decision, Stopped) else JobStatus.DEAD_LETTER
    return [status.value, decision.reason, error]


def _escaped(job_id: str) -> str:
    """Return an id as a key of JSON. Postgres stores no NUL in JSON, not even an escaped one."""
    return job_id.encode("unicode_escape").decode("ascii")


def _read(key: str) -> str:
    """Return the id that was escaped."""
    return key.encode("latin-1", "backslashreplace").decode("unicode_escape", "replace")


def _due_at(row: Mapping[str, Any], now: datetime) -> datetime:
    """Return when a job is due here. A job that was due at once is due now, even if the other clock is ahead."""
    due_at: datetime = row["scheduled_at"]
    return min(due_at, now) if due_at <= row["created_at"] else due_at


def _told(error: Exception) -> str:
    return f"The shared database refused it: {redact_text(str(error).strip().splitlines()[0])}"
