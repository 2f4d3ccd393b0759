"""The constructors of settlements, from a claim and a decision. Pure."""

from __future__ import annotations

from jobqueue.records import (
    Again,
    Alone,
    Assignment,
    Claim,
    Dead,
    Decision,
    Ending,
    Failure,
    Later,
    OverdueLease,
    Settlement,
    Stopped,
)
from jobqueue.states import Move


def completed(claim: Claim | Assignment, result: str | None = None) -> Settlement:
    """Return the settlement of a handler that returned. ``result`` is JSON text."""
    return Settlement(claim.id, claim.fence, claim.owner, Move.COMPLETE, result)


def released(claim: Claim | Assignment, message: str = "") -> Settlement:
    """Return the settlement that gives a claim back. The attempt isn't counted, and the job keeps its place."""
    failure = Failure.of(Ending.RELEASED, message=message)
    return Settlement(claim.id, claim.fence, claim.owner, Move.RELEASE, failure=failure)


def settled(claim: Claim | Assignment | OverdueLease, decision: Decision, failure: Failure) -> Settlement:
    """Return the settlement of an unsuccessful attempt, by the decision."""
    made = Settlement(claim.id, claim.fence, claim.owner, Move.RETRY, failure=failure)
    match decision:
        case Again(after=after):
            return made._replace(delay=after)
        case Later(after=after):
            return made._replace(move=Move.SNOOZE, delay=after)
        case Alone():
            return made._replace(move=Move.QUARANTINE)
        case Dead(reason=reason):
            return made._replace(move=Move.BURY, end_reason=reason)
        case Stopped(reason=reason):
            return made._replace(move=Move.CANCEL, end_reason=reason)
