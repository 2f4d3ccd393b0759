"""The exceptions: errors, and the verdicts that a handler raises instead of returning.

JobQueueError                    do not raise it directly
├── InvalidHandler               a function that cannot become a handler
│   └── DuplicateJobType         two handlers claim one name
├── UnknownJobType               no handler has that name
├── InvalidOption                an enqueue option outside its bounds
├── PayloadRefused               a payload that cannot be stored
│   └── PayloadUnfit             … because it does not fit its type's form
├── NotEditable                  a job type whose payloads cannot be edited
├── PayloadInvalid               a stored payload that its handler cannot read
│   └── PayloadTooNew            … because a newer release wrote it
├── ResultRefused                a result that cannot be stored
├── IdempotencyMismatch          the key belongs to a job of another type
├── QueueFull                    a queue has no room for more jobs
├── JobNotFound                  no job has that id
├── JobFailed                    the job that was waited for did not complete
├── LeaseLost                    the claim is no longer ours
├── NotMigrated                  the queue's tables are missing
├── RelayInCircle                RELAY_TO leads back to the database that the jobs are in
└── DatabaseBusy                 SQLite would not give the write lock

Verdict                          raised by a handler to decide how its attempt ends
├── Retry                        again later, by the policy or after the given delay
├── Snooze                       later, without using up an attempt
├── Discard                      never again: a dead letter at once
└── Cancel                       stop on request: failed, but not counted as a failure

Interrupted                      raised in a handler that must stop; do not catch it
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from difflib import get_close_matches
from enum import StrEnum

from django.core.exceptions import ImproperlyConfigured
from django.db.utils import OperationalError

from jobqueue import durations


class JobQueueError(Exception):
    """The base class of this package's errors. Do not raise it directly."""


class InvalidHandler(JobQueueError, ImproperlyConfigured):
    """A function or its options can't make a handler."""


class DuplicateJobType(InvalidHandler):
    """Two handlers claim one name."""

    def __init__(self, name: str, first: str, second: str) -> None:
        super().__init__(
            f"The job type {name!r} is defined twice: by {first} and by {second}. "
            f'Rename one of them, for example with @job("{name}_2").'
        )


class UnknownJobType(JobQueueError, LookupError):
    """No handler has the name. The message suggests the nearest ones."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name = name
        nearest = get_close_matches(name, list(known), n=3, cutoff=0.5)
        advice = f"Did you mean {' or '.join(map(repr, nearest))}?" if nearest else "Is its app in INSTALLED_APPS?"
        super().__init__(f"No handler is registered for the job type {name!r}. {advice}")


class InvalidOption(JobQueueError, ValueError):
    """An option of a handler or of an enqueue is outside its bounds. The message names both."""

    def __init__(self, option: str, complaint: str) -> None:
        self.option, self.complaint = option, complaint
        super().__init__(f"{option} {complaint}")


def duration(value: object, name: str) -> timedelta:
    """Return seconds or a timedelta as a timedelta. Raise InvalidOption if it is negative or above LONGEST_DURATION."""
    try:
        return durations.read(value)
    except ValueError as error:
        raise InvalidOption(name, str(error)) from None


class PayloadRefused(JobQueueError, ValueError):
    """A payload can't be stored: it is too large, or a round trip through JSON changes it."""


class PayloadUnfit(PayloadRefused):
    """An edited payload doesn't fit its type's form. ``complaints`` are pairs of field and message, without secrets."""

    def __init__(self, complaints: Iterable[tuple[str, str]]) -> None:
        self.complaints = tuple(complaints)
        told = "; ".join(f"{place}: {words}" for place, words in self.complaints)
        super().__init__(f"The payload does not fit: {told}.")


class NotEditable(JobQueueError):
    """The payloads of a job type can't be edited: its handler has ``editable=False``."""

    def __init__(self, job_type: str) -> None:
        super().__init__(f"Payloads of the job type {job_type!r} cannot be edited: its handler has editable=False.")


class PayloadInvalid(JobQueueError):
    """The handler can't read a stored payload, and a retry would not help. Contains no values of the payload."""


class PayloadTooNew(PayloadInvalid):
    """A newer release wrote the payload. A worker of that release can read it."""


class ResultRefused(JobQueueError, ValueError):
    """A handler's result can't be stored: it is too large, or a round trip through JSON changes it."""


class IdempotencyMismatch(JobQueueError):
    """The key already belongs to a job of another type, so the new job would be lost."""

    def __init__(self, key: str, existing_id: str, existing_type: str, wanted_type: str) -> None:
        self.key, self.existing_id = key, existing_id
        super().__init__(
            f"The key {key!r} belongs to job {existing_id} of type {existing_type!r}, so the {wanted_type!r} job "
            f"was not enqueued. Start the key with the job type to keep types apart."
        )


class QueueFull(JobQueueError):
    """A queue has no room for more jobs, so nothing was enqueued. The depth is approximate."""

    def __init__(self, queue: str, number: int, depth: int, capacity: int, why: str = "") -> None:
        self.queue, self.number, self.depth, self.capacity = queue, number, depth, capacity
        jobs = "the job was" if number == 1 else f"the {number:,} jobs were"
        super().__init__(
            f"The queue {queue!r} is full: about {depth:,} jobs wait, and its capacity is {capacity:,}. Therefore "
            f"{jobs} not enqueued{f': {why}' if why else ''}. Try again later, or start more workers."
        )

    def because(self, why: str) -> QueueFull:
        """Return the same error with a reason."""
        return QueueFull(self.queue, self.number, self.depth, self.capacity, why)


class JobNotFound(JobQueueError, LookupError):
    """No job has that id: it was purged or pruned, or it was never committed."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        super().__init__(f"There is no job {job_id}: it was purged, pruned, or its transaction rolled back.")


class JobFailed(JobQueueError):
    """The job that the caller waited for did not complete."""

    def __init__(self, job_id: str, job_type: str, status: str, error: str) -> None:
        self.job_id, self.status, self.error = job_id, status, error
        why = f": {error}" if error else ""
        super().__init__(f"Job {job_id} ({job_type}) ended as {status.replace('_', ' ')}{why}")


class LeaseLost(JobQueueError):
    """The claim is no longer held: the job was swept, cancelled, settled or claimed again. Nothing was changed."""

    def __init__(self, job_id: str, fence: int) -> None:
        self.job_id, self.fence = job_id, fence
        super().__init__(f"Claim {fence} of job {job_id} is no longer held, so its outcome was not stored.")


class NotMigrated(JobQueueError, ImproperlyConfigured):
    """Tables or columns of the queue are missing."""

    def __init__(self, alias: str) -> None:
        option = "" if alias == "default" else f" --database={alias}"
        super().__init__(
            f'The database "{alias}" has no job queue of this release yet: run "manage.py migrate{option}".'
        )


class RelayInCircle(JobQueueError, ImproperlyConfigured):
    """Jobs would be relayed to the database they are in, under another name or as a copy."""

    def __init__(self, alias: str) -> None:
        super().__init__(
            f"Nothing is relayed: JOBQUEUE['RELAY_TO'] names {alias!r}, which is the database that the jobs are in, "
            "under another name, or a copy of it. Name another database, or leave RELAY_TO out to run the jobs there. "
            "In a copy, empty the table job_queue_relay."
        )


class DatabaseBusy(JobQueueError, OperationalError):
    """SQLite didn't give the write lock in time, or refused it at once to a deferred transaction.

    On Postgres, a worker's own session has waited too long for a lock.
    """


class Verdict(Exception):
    """A handler's decision about its own attempt. Do not raise it directly."""


class Retry(Verdict):
    """Run the job again, after ``delay`` if given, otherwise by the type's policy. Uses up the attempt."""

    def __init__(self, delay: timedelta | float | None = None, reason: str = "") -> None:
        self.delay = None if delay is None else duration(delay, "delay")
        super().__init__(reason or "the handler asked for a retry")


class Snooze(Verdict):
    """Run the job again after ``delay``. The attempt isn't counted."""

    def __init__(self, delay: timedelta | float, reason: str = "") -> None:
        self.delay = duration(delay, "delay")
        super().__init__(reason or "the handler asked for a snooze")


class Discard(Verdict):
    """Never run the job again: it becomes a dead letter at once."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason or "discarded by its handler")


class Cancel(Verdict):
    """Stop the job on request: it ends as failed, can be retried, and doesn't count in the success rate."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason or "cancelled by its handler")


class StopReason(StrEnum):
    """The reason why a handler must stop."""

    TIME_LIMIT = "its time is up"
    CANCELLED = "it was cancelled"
    LEASE_LOST = "its lease is lost"
    SHUTDOWN = "its worker stops"


class Interrupted(BaseException):
    """Raised in a handler that must stop. Clean up and re-raise it: the job's outcome is settled elsewhere.

    It isn't an ``Exception``, so that ``except Exception`` in a handler doesn't catch it.
    """

    def __init__(self, reason: StopReason = StopReason.TIME_LIMIT) -> None:
        super().__init__()
        self.reason = reason

    def __str__(self) -> str:
        return f"The attempt must stop: {self.reason}."
