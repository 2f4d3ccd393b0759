"""The trace of an attempt."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from jobqueue.errors import Verdict
from jobqueue.records import Assignment, EventKind, Settlement
from jobqueue.states import Move
from jobqueue.tracing import headers
from jobqueue.tracing.tracer import Process, harmless, in_use

_OUTCOMES = {
    Move.COMPLETE: EventKind.COMPLETED,
    Move.RETRY: EventKind.RETRIED,
    Move.SNOOZE: EventKind.SNOOZED,
    Move.RELEASE: EventKind.RELEASED,
    Move.BURY: EventKind.DEAD_LETTERED,
    Move.CANCEL: EventKind.CANCELLED,
}


class AttemptTrace:
    """The trace of one attempt, in all tracers in use."""

    __slots__ = ("_begun", "_context", "_has_ended", "is_current")

    def __init__(self, begun: Sequence[Process], context: str | None) -> None:
        self._begun = begun
        self._context = context
        self._has_ended = False
        #: Whether the handler runs in the context of a span of OpenTelemetry.
        self.is_current = any(one.is_current for one in begun)

    def end(self, settlement: Settlement | None, error: BaseException | None = None) -> Settlement | None:
        """End the trace with the attempt's outcome. Only the first call counts.

        Return the settlement. That of a retry leads the next attempt to this one.
        """
        if self._has_ended:
            return settlement
        self._has_ended = True
        for one in reversed(self._begun):
            harmless(partial(one.end, settlement, error))
        if settlement is None or settlement.move is not Move.RETRY:
            return settlement
        return settlement._replace(context=harmless(self._next_context))

    def _next_context(self) -> str | None:
        found = headers.joined(one.link for one in self._begun)
        if not found or len(self._context or "") > headers.LONGEST_CONTEXT:
            return None
        made = headers.within(self._context, found)
        return None if made == self._context or made is None or len(made) > headers.LONGEST_CONTEXT else made

    def settled(self, seconds: float) -> None:
        """Record that the outcome was stored, so many seconds after the attempt's end."""
        for one in self._begun:
            harmless(partial(one.settled, seconds))


def begin(assignment: Assignment) -> AttemptTrace | None:
    """Begin the trace of an attempt. Without a tracer in use, return ``None``."""
    tracers = in_use()
    if not tracers:
        return None
    found = harmless(lambda: headers.of_context(assignment.context)) or {}
    begun = (harmless(partial(tracer.process, assignment, found)) for tracer in tracers)
    return AttemptTrace([one for one in begun if one is not None], assignment.context)


def outcome_of(settlement: Settlement | None) -> str:
    """Return what an attempt came to, in the word of its event."""
    return EventKind.LEASE_LOST if settlement is None else _OUTCOMES.get(settlement.move, settlement.move)


def is_failed(settlement: Settlement | None, error: BaseException | None) -> bool:
    """Return whether an attempt failed. One whose handler asked for what follows did not, unless it was the last."""
    if settlement is None or settlement.move not in (Move.RETRY, Move.BURY):
        return False
    return not isinstance(error, Verdict) or is_given_up(settlement)


def is_given_up(settlement: Settlement | None) -> bool:
    """Return whether a job became a dead letter, other than by its handler's ``Discard``."""
    return settlement is not None and settlement.move is Move.BURY and settlement.end_reason != "discarded"
