"""What can go wrong, and what a handler may say instead of returning.

JobQueueError                    do not raise it directly
├── InvalidHandler               a function that cannot become a handler
│   └── DuplicateJobType         two handlers claim one name
├── UnknownJobType               no handler has that name
├── InvalidOption                an enqueue option outside its bounds
├── PayloadRefused               a payload that cannot be stored
│   └── PayloadUnfit             … because it does not fit its type's form
├── NotEditable                  a job type whose payloads are not to be edited
├── PayloadInvalid               a stored payload that its handler cannot read
│   └── PayloadTooNew            … because a newer release wrote it
├── ResultRefused                a result that cannot be stored
├── IdempotencyMismatch          the key belongs to a job of another type
├── JobNotFound                  no job has that id
├── JobFailed                    the job that was waited for did not complete
├── LeaseLost                    the claim is no longer ours
├── NotMigrated                  the queue's tables are missing
├── RelayInCircle                RELAY_TO leads back to the database that the jobs are in
└── DatabaseBusy                 SQLite would not give the write lock

Verdict                          raised by a handler to say what its attempt comes to
├── Retry                        again later, by the policy or after the delay given
├── Snooze                       later, without using up an attempt
├── Discard                      never again: a dead letter at once
└── Cancel                       stop by wish: failed, and not counted as a failure

Interrupted                      raised in a handler that shall stop; let it pass
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from difflib import get_close_matches
from enum import StrEnum
from math import isfinite

from django.core.exceptions import ImproperlyConfigured
from django.db.utils import OperationalError

#: Far beyond any sense, and far from where dates overflow.
LONGEST_DURATION = timedelta(days=3650)


class JobQueueError(Exception):
    """The root of this package's errors; do not raise it directly."""


class InvalidHandler(JobQueueError, ImproperlyConfigured):
    """A function or its options cannot make a handler."""


class DuplicateJobType(InvalidHandler):
    """Two handlers claim one name."""

    def __init__(self, name: str, first: str, second: str) -> None:
        super().__init__(
            f"The job type {name!r} is defined twice: by {first} and by {second}. "
            f'Rename one of them, for example with @job("{name}_2").'
        )


class UnknownJobType(JobQueueError, LookupError):
    """No handler has the name; the message offers the nearest ones."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name = name
        nearest = get_close_matches(name, list(known), n=3, cutoff=0.5)
        advice = f"Did you mean {' or '.join(map(repr, nearest))}?" if nearest else "Is its app in INSTALLED_APPS?"
        super().__init__(f"No handler is registered for the job type {name!r}. {advice}")


class InvalidOption(JobQueueError, ValueError):
    """An option of a handler or of one enqueue is outside its bounds; the message names both."""

    def __init__(self, option: str, complaint: str) -> None:
        self.option = option
        super().__init__(f"{option} {complaint}")


def duration(value: object, name: str) -> timedelta:
    """Read seconds or a timedelta; a negative one, or one beyond LONGEST_DURATION, is refused."""
    if isinstance(value, bool) or not isinstance(value, (int, float, timedelta)):
        raise InvalidOption(name, f"must be seconds or a timedelta, got {type(value).__name__}")
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, float) and not isfinite(seconds):
        raise InvalidOption(name, f"must be a length of time, got {value!r}")
    if seconds < 0:
        raise InvalidOption(name, f"must not be negative, got {value!r}")
    if seconds > LONGEST_DURATION.total_seconds():
        raise InvalidOption(name, f"must be at most {LONGEST_DURATION.days} days, got {value!r}")
    return value if isinstance(value, timedelta) else timedelta(seconds=value)


class PayloadRefused(JobQueueError, ValueError):
    """A payload cannot be stored: too large, or not the same after a trip through JSON."""


class PayloadUnfit(PayloadRefused):
    """An edited payload does not fit its type's form; ``complaints`` are pairs of place and words, without secrets."""

    def __init__(self, complaints: Iterable[tuple[str, str]]) -> None:
        self.complaints = tuple(complaints)
        told = "; ".join(f"{place}: {words}" for place, words in self.complaints)
        super().__init__(f"The payload does not fit: {told}.")


class NotEditable(JobQueueError):
    """The payloads of a job type are not to be edited: its handler says ``editable=False``."""

    def __init__(self, job_type: str) -> None:
        super().__init__(f"Payloads of the job type {job_type!r} are not to be edited; its handler says so.")


class PayloadInvalid(JobQueueError):
    """A stored payload cannot be read by the handler; trying again would not help. Carries no payload values."""


class PayloadTooNew(PayloadInvalid):
    """A newer release wrote the payload; a worker of that release can read it."""


class ResultRefused(JobQueueError, ValueError):
    """A handler's result cannot be stored: too large, or not the same after a trip through JSON."""


class IdempotencyMismatch(JobQueueError):
    """The key already belongs to a job of another type, so this work would be lost."""

    def __init__(self, key: str, existing_id: str, existing_type: str, wanted_type: str) -> None:
        self.key, self.existing_id = key, existing_id
        super().__init__(
            f"The key {key!r} belongs to job {existing_id} of type {existing_type!r}, so the {wanted_type!r} job "
            f"was not enqueued. Start the key with the job type to keep types apart."
        )


class JobNotFound(JobQueueError, LookupError):
    """No job has that id: it was purged, pruned, or never committed."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        super().__init__(f"There is no job {job_id}: it was purged, pruned, or its transaction rolled back.")


class JobFailed(JobQueueError):
    """The job that was waited for did not complete."""

    def __init__(self, job_id: str, job_type: str, status: str, error: str) -> None:
        self.job_id, self.status, self.error = job_id, status, error
        why = f": {error}" if error else ""
        super().__init__(f"Job {job_id} ({job_type}) ended as {status.replace('_', ' ')}{why}")


class LeaseLost(JobQueueError):
    """The claim is no longer ours: the job was swept, cancelled, settled or claimed anew; nothing was changed."""

    def __init__(self, job_id: str, fence: int) -> None:
        self.job_id, self.fence = job_id, fence
        super().__init__(f"Claim {fence} of job {job_id} is no longer held, so its outcome was not stored.")


class NotMigrated(JobQueueError, ImproperlyConfigured):
    """The queue's tables are missing."""

    def __init__(self, alias: str) -> None:
        option = "" if alias == "default" else f" --database={alias}"
        super().__init__(f'The database "{alias}" has no job queue yet: run "manage.py migrate{option}".')


class RelayInCircle(JobQueueError, ImproperlyConfigured):
    """Jobs would be relayed to where they are: by another name, or to a copy of it."""

    def __init__(self, alias: str) -> None:
        super().__init__(
            f"Nothing is relayed: {alias!r}, which JOBQUEUE['RELAY_TO'] names, is the database that the jobs are in, "
            "by another name, or a copy of it. Name another database, or leave RELAY_TO out to run the jobs there. "
            "In a copy, empty the table job_queue_relay."
        )


class DatabaseBusy(JobQueueError, OperationalError):
    """SQLite would not give the write lock in time, or refused it at once to a deferred transaction.

    On Postgres a worker's own session has waited too long for what others have locked.
    """


class Verdict(Exception):
    """What a handler says of its own attempt; do not raise it directly."""


class Retry(Verdict):
    """Run the job again: after ``delay`` if given, by the type's policy otherwise. Uses up the attempt."""

    def __init__(self, delay: timedelta | float | None = None, reason: str = "") -> None:
        self.delay = None if delay is None else duration(delay, "delay")
        super().__init__(reason or "the handler asked for a retry")


class Snooze(Verdict):
    """Run the job again after ``delay``; the attempt is not counted."""

    def __init__(self, delay: timedelta | float, reason: str = "") -> None:
        self.delay = duration(delay, "delay")
        super().__init__(reason or "the handler asked for a snooze")


class Discard(Verdict):
    """Never run the job again: it becomes a dead letter at once."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason or "discarded by its handler")


class Cancel(Verdict):
    """Stop the job by wish: it ends as failed, stays retriable, and no success rate counts it."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason or "cancelled by its handler")


class StopReason(StrEnum):
    """Why a handler shall stop."""

    TIME_LIMIT = "its time is up"
    CANCELLED = "it was cancelled"
    LEASE_LOST = "its lease is lost"
    SHUTDOWN = "its worker stops"


class Interrupted(BaseException):
    """Raised in a handler that shall stop; clean up and let it pass, for what it stands for is settled elsewhere.

    Not an ``Exception``, so that a handler that catches those to go on with its work does not catch it too.
    """

    def __init__(self, reason: StopReason = StopReason.TIME_LIMIT) -> None:
        super().__init__()
        self.reason = reason

    def __str__(self) -> str:
        return f"The attempt shall stop: {self.reason}."
