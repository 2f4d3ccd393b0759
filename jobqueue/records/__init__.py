"""Frozen values that cross the line between rooms; nothing here touches Django."""

from __future__ import annotations

from jobqueue.records.claim import Assignment, Claim, ClaimKey, ClaimRequest, Cycle, Expired, Extension, Sweep
from jobqueue.records.decision import Again, Alone, Attempt, Dead, Decision, Later, Stopped
from jobqueue.records.draft import Admission, Draft, Receipt
from jobqueue.records.error_group import HOUR, HOURS, Caps, ErrorGroup, ErrorGroups
from jobqueue.records.event import Event, EventKind
from jobqueue.records.filter_json import filter_from_json, filter_to_json
from jobqueue.records.job import (
    LONGEST_SOUGHT,
    Amendment,
    DeadLetters,
    Filter,
    Ground,
    Handled,
    JobRecord,
    PastAttempt,
    Pause,
    QueueStats,
    Refusal,
    Scope,
    is_place,
    stands_for,
)
from jobqueue.records.metric import COUNTED_TO, MOST_GROUPS, Depth, Lengths, Part, Share, Stretch, Tally
from jobqueue.records.outcome import Ending, Failure, Followed, Settled, Settlement
from jobqueue.records.worker import Progress, WorkerRecord, WorkerState

__all__ = [
    "COUNTED_TO",
    "HOUR",
    "HOURS",
    "LONGEST_SOUGHT",
    "MOST_GROUPS",
    "Admission",
    "Again",
    "Alone",
    "Amendment",
    "Assignment",
    "Attempt",
    "Caps",
    "Claim",
    "ClaimKey",
    "ClaimRequest",
    "Cycle",
    "Dead",
    "DeadLetters",
    "Decision",
    "Depth",
    "Draft",
    "Ending",
    "ErrorGroup",
    "ErrorGroups",
    "Event",
    "EventKind",
    "Expired",
    "Extension",
    "Failure",
    "Filter",
    "Followed",
    "Ground",
    "Handled",
    "JobRecord",
    "Later",
    "Lengths",
    "Part",
    "PastAttempt",
    "Pause",
    "Progress",
    "QueueStats",
    "Receipt",
    "Refusal",
    "Scope",
    "Settled",
    "Settlement",
    "Share",
    "Stopped",
    "Stretch",
    "Sweep",
    "Tally",
    "WorkerRecord",
    "WorkerState",
    "filter_from_json",
    "filter_to_json",
    "is_place",
    "stands_for",
]
