"""Frozen values that pass between rooms. They don't depend on Django.

What an attempt comes to has a word for each step:

==================  ====================================================================================  ============
word                means                                                                                 lives in
==================  ====================================================================================  ============
Verdict             what a handler raises to say what its attempt comes to                                errors
Ending              how an attempt that did not succeed ended                                             outcome
Failure             an ending with its error, as the job's history keeps it                               outcome
Decision            what follows for the job: again, later, alone, dead or stopped                        decision
Move                the change of status that it makes of the job                                         states
Settlement          claim, move and failure or result: what is offered to be stored                       outcome
Outcome             what an executor's slot returns: a settlement to offer, a stored one, or a lost       worker
                    claim
PendingSettlement   a settlement with its claim, in the supervisor until it is stored                     worker
==================  ====================================================================================  ============

So an error or a verdict becomes a decision (``policy.retry``), the decision a settlement (``policy.settling``), and the
settlement a row.
"""

from __future__ import annotations

from jobqueue.records.claim import Assignment, Claim, ClaimKey, ClaimRequest, Cycle, Extension, OverdueLease, Sweep
from jobqueue.records.decision import Again, Alone, AttemptCount, Dead, Decision, Later, Stopped
from jobqueue.records.draft import Admission, Draft, DraftReceipt
from jobqueue.records.error_group import HOUR, HOURS, Caps, ErrorGroup, ErrorGroups
from jobqueue.records.event import Event, EventKind
from jobqueue.records.filter_json import filter_from_json, filter_to_json
from jobqueue.records.job import (
    LONGEST_SOUGHT,
    Amendment,
    DeadLetterCount,
    Filter,
    Ground,
    Handled,
    JobRecord,
    PastAttempt,
    PauseRecord,
    QueueStats,
    Refusal,
    Scope,
    is_place,
    stands_for,
)
from jobqueue.records.metric import COUNTED_TO, MOST_GROUPS, Depth, Lengths, MetricSum, Share, Stretch, Tally
from jobqueue.records.outcome import Ending, Failure, Followed, Settled, Settlement
from jobqueue.records.search import Ids, MatchCount, Matches
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
    "AttemptCount",
    "Caps",
    "Claim",
    "ClaimKey",
    "ClaimRequest",
    "Cycle",
    "Dead",
    "DeadLetterCount",
    "Decision",
    "Depth",
    "Draft",
    "DraftReceipt",
    "Ending",
    "ErrorGroup",
    "ErrorGroups",
    "Event",
    "EventKind",
    "Extension",
    "Failure",
    "Filter",
    "Followed",
    "Ground",
    "Handled",
    "Ids",
    "JobRecord",
    "Later",
    "Lengths",
    "MatchCount",
    "Matches",
    "MetricSum",
    "OverdueLease",
    "PastAttempt",
    "PauseRecord",
    "Progress",
    "QueueStats",
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
