"""Frozen values that cross the line between rooms; nothing here touches Django."""

from __future__ import annotations

from jobqueue.records.claim import Assignment, Claim, ClaimRequest, Cycle, Expired, Extension, Sweep
from jobqueue.records.decision import Again, Alone, Attempt, Dead, Decision, Later, Stopped
from jobqueue.records.draft import Admission, Draft, Receipt
from jobqueue.records.event import Event, EventKind
from jobqueue.records.job import (
    DeadLetters,
    Filter,
    Handled,
    JobRecord,
    PastAttempt,
    Pause,
    QueueStats,
    Refusal,
    Scope,
)
from jobqueue.records.outcome import Ending, Failure, Followed, Settled, Settlement
from jobqueue.records.worker import Progress, WorkerRecord, WorkerState

__all__ = [
    "Admission",
    "Again",
    "Alone",
    "Assignment",
    "Attempt",
    "Claim",
    "ClaimRequest",
    "Cycle",
    "Dead",
    "DeadLetters",
    "Decision",
    "Draft",
    "Ending",
    "Event",
    "EventKind",
    "Expired",
    "Extension",
    "Failure",
    "Filter",
    "Followed",
    "Handled",
    "JobRecord",
    "Later",
    "PastAttempt",
    "Pause",
    "Progress",
    "QueueStats",
    "Receipt",
    "Refusal",
    "Scope",
    "Settled",
    "Settlement",
    "Stopped",
    "Sweep",
    "WorkerRecord",
    "WorkerState",
]
