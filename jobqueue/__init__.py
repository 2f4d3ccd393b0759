"""A job queue for Django that lives in the application's own database."""

from __future__ import annotations

from jobqueue.api import aenqueue, aenqueue_many, aget, enqueue, enqueue_many, enqueue_on_commit, get, job
from jobqueue.api.handler import Handler
from jobqueue.api.receipts import Receipt
from jobqueue.api.schedules import schedule
from jobqueue.errors import (
    Cancel,
    DatabaseBusy,
    Discard,
    DuplicateJobType,
    IdempotencyMismatch,
    Interrupted,
    InvalidHandler,
    InvalidOption,
    JobFailed,
    JobNotFound,
    JobQueueError,
    LeaseLost,
    NotEditable,
    NotMigrated,
    PayloadInvalid,
    PayloadRefused,
    PayloadTooNew,
    PayloadUnfit,
    QueueFull,
    RelayInCircle,
    ResultRefused,
    Retry,
    Snooze,
    UnknownJobType,
)
from jobqueue.handlers.context import JobContext
from jobqueue.handlers.origin import origin
from jobqueue.handlers.typed_options import JobOptions
from jobqueue.policy.limits.declared_limits import Concurrency, Rate
from jobqueue.policy.retry import Exponential, Fixed
from jobqueue.policy.schedules.rule import Cron, Every
from jobqueue.records import JobRecord
from jobqueue.states import JobStatus
from jobqueue.version import __version__ as __version__

__all__ = [
    "Cancel",
    "Concurrency",
    "Cron",
    "DatabaseBusy",
    "Discard",
    "DuplicateJobType",
    "Every",
    "Exponential",
    "Fixed",
    "Handler",
    "IdempotencyMismatch",
    "Interrupted",
    "InvalidHandler",
    "InvalidOption",
    "JobContext",
    "JobFailed",
    "JobNotFound",
    "JobOptions",
    "JobQueueError",
    "JobRecord",
    "JobStatus",
    "LeaseLost",
    "NotEditable",
    "NotMigrated",
    "PayloadInvalid",
    "PayloadRefused",
    "PayloadTooNew",
    "PayloadUnfit",
    "QueueFull",
    "Rate",
    "Receipt",
    "RelayInCircle",
    "ResultRefused",
    "Retry",
    "Snooze",
    "UnknownJobType",
    "aenqueue",
    "aenqueue_many",
    "aget",
    "enqueue",
    "enqueue_many",
    "enqueue_on_commit",
    "get",
    "job",
    "origin",
    "schedule",
]
