"""Frozen values that pass between rooms. They don't depend on Django.

The outcome of an attempt has another name at each step:

==================  ====================================================================================  ============
word                means                                                                                 lives in
==================  ====================================================================================  ============
Verdict             an exception by which a handler decides how its attempt ends                          errors
Ending              how an attempt that did not succeed ended                                             outcome
Failure             an ending with its error, as the job's history keeps it                               outcome
Decision            what follows for the job: again, later, alone, dead or stopped                        decision
Move                the change of status that it makes of the job                                         states
Settlement          claim, move, and failure or result, to be stored if the claim is still held           outcome
Outcome             what an executor's slot returns: a settlement to offer, a stored one, or a lost       worker
                    claim
PendingSettlement   a settlement with its claim, in the supervisor until it is stored                     worker
==================  ====================================================================================  ============

An error or a verdict becomes a decision (``policy.retry``), then a settlement (``policy.settling``), and then a row.
"""

from __future__ import annotations

from jobqueue.records.claim import Assignment, Claim, ClaimKey, ClaimRequest, Cycle, Extension, OverdueLease, Sweep
from jobqueue.records.decision import Again, Alone, AttemptCount, Dead, Decision, Later, Stopped
from jobqueue.records.draft import Admission, Draft, DraftReceipt
from jobqueue.records.error_group import (
    HOUR,
    HOURS,
    Caps,
    ErrorGroup,
    ErrorGroups,
    ErrorShare,
    ErrorShares,
    GroupFilter,
    GroupOrder,
    SeenIn,
)
from jobqueue.records.event import Event, EventKind
from jobqueue.records.filter import LARGEST_SOUGHT, LONGEST_SOUGHT, Filter, Range, is_place, stands_for
from jobqueue.records.filter_json import filter_from_json, filter_to_json
from jobqueue.records.health import DeadJob, LapsedLeases, QuietJob
from jobqueue.records.job import (
    Amendment,
    DeadLetterCount,
    Ground,
    Handled,
    JobRecord,
    PastAttempt,
    PauseRecord,
    QueueStats,
    Refusal,
    Scope,
)
from jobqueue.records.lane import Hold, LaneHold, LaneRecord
from jobqueue.records.limit import Limit, LimitKind, LimitUse, StoredLimit
from jobqueue.records.metric import COUNTED_TO, MOST_GROUPS, Depth, Lengths, MetricSum, Share, Stretch, Tally
from jobqueue.records.outcome import Ending, Failure, Followed, Settled, Settlement
from jobqueue.records.queue_options import QueueOptions, WhenFull
from jobqueue.records.search import Ids, MatchCount, Matches, Step
from jobqueue.records.turn import ServedTurn, TurnPlace, TurnShare
from jobqueue.records.worker import Progress, WorkerRecord, WorkerRequest, WorkerState

__all__ = [
    "COUNTED_TO",
    "HOUR",
    "HOURS",
    "LARGEST_SOUGHT",
    "LONGEST_SOUGHT",
    "MOST_GROUPS",
    "Admission",
    "Again",
    "Alone",
    "Amendment",
    "Assignment",
    "AttemptCount",
    "Caps",
    "Claim",
    "ClaimKey",
    "ClaimRequest",
    "Cycle",
    "Dead",
    "DeadJob",
    "DeadLetterCount",
    "Decision",
    "Depth",
    "Draft",
    "DraftReceipt",
    "Ending",
    "ErrorGroup",
    "ErrorGroups",
    "ErrorShare",
    "ErrorShares",
    "Event",
    "EventKind",
    "Extension",
    "Failure",
    "Filter",
    "Followed",
    "Ground",
    "GroupFilter",
    "GroupOrder",
    "Handled",
    "Hold",
    "Ids",
    "JobRecord",
    "LaneHold",
    "LaneRecord",
    "LapsedLeases",
    "Later",
    "Lengths",
    "Limit",
    "LimitKind",
    "LimitUse",
    "MatchCount",
    "Matches",
    "MetricSum",
    "OverdueLease",
    "PastAttempt",
    "PauseRecord",
    "Progress",
    "QueueOptions",
    "QueueStats",
    "QuietJob",
    "Range",
    "Refusal",
    "Scope",
    "SeenIn",
    "ServedTurn",
    "Settled",
    "Settlement",
    "Share",
    "Step",
    "Stopped",
    "StoredLimit",
    "Stretch",
    "Sweep",
    "Tally",
    "TurnPlace",
    "TurnShare",
    "WhenFull",
    "WorkerRecord",
    "WorkerRequest",
    "WorkerState",
    "filter_from_json",
    "filter_to_json",
    "is_place",
    "stands_for",
]
