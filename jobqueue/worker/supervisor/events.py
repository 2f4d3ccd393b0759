"""The events for the log and the signals. Executors send the signals."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from jobqueue.clock import SYSTEM
from jobqueue.durations import in_seconds
from jobqueue.observe import logs
from jobqueue.records import Event, EventKind, Followed, Settlement
from jobqueue.states import Move
from jobqueue.worker.protocol.wire import Word
from jobqueue.worker.supervisor.claims import HeldClaim
from jobqueue.worker.supervisor.executors import Executors

KINDS = {
    Move.COMPLETE: EventKind.COMPLETED,
    Move.RETRY: EventKind.RETRIED,
    Move.SNOOZE: EventKind.SNOOZED,
    Move.RELEASE: EventKind.RELEASED,
    Move.QUARANTINE: EventKind.QUARANTINED,
    Move.BURY: EventKind.DEAD_LETTERED,
    Move.CANCEL: EventKind.CANCELLED,
}


#: The most events that wait for an executor to send their signals. The oldest are dropped.
_MOST_UNTOLD = 10_000


class Events:
    """Reports events to the log and to signal receivers. Costs next to nothing if there are none."""

    def __init__(self, executors: Executors, worker: str) -> None:
        self._executors = executors
        self.worker = worker
        self._is_listened_to = False
        self._untold: deque[Event] = deque(maxlen=_MOST_UNTOLD)

    @property
    def is_heard(self) -> bool:
        """Return whether the log or a receiver wants events."""
        return logs.is_heard() or self._is_listened_to

    @property
    def untold(self) -> int:
        """Return how many events wait for an executor."""
        return len(self._untold)

    def tell(self, events: Sequence[Event]) -> None:
        """Log events, and let an executor with receivers send their signals."""
        for event in events:
            logs.write(event)
        if self._is_listened_to:
            self._untold.extend(events)
            self.tell_the_rest()

    def tell_the_rest(self) -> None:
        """Give the waiting events to an executor. If there is none at the moment, the next executor gets the events."""
        listener = self._executors.listener()
        if listener is not None:
            self._is_listened_to = True
            if self._untold:
                listener.say(Word.EVENTS, [list(event) for event in self._untold])
                self._executors.watch(listener)
                self._untold.clear()

    def stored(self, held: HeldClaim, settlement: Settlement) -> Event:
        """Return the event of a settlement that was stored."""
        failure = settlement.failure
        return self._event(KINDS[settlement.move], held)._replace(
            duration=SYSTEM.monotonic() - held.since,
            delay=in_seconds(settlement.delay),
            reason=settlement.end_reason or (failure.ending if failure else ""),
            error_class=failure.error_class if failure else "",
            error=failure.message if failure else "",
        )

    def completed_itself(self, held: HeldClaim) -> Event:
        """Return the event of a completion that the handler's own transaction has stored."""
        return self._event(EventKind.COMPLETED, held)._replace(duration=SYSTEM.monotonic() - held.since)

    def began(self, several: Sequence[HeldClaim]) -> None:
        """Log at DEBUG that jobs begin to run. The executor sends the signal."""
        if logs.is_debugging():
            for held in several:
                logs.write(self._event(EventKind.STARTED, held))

    def _event(self, kind: EventKind, held: HeldClaim) -> Event:
        claim = held.claim
        return Event(kind, claim.id, claim.type, claim.queue, claim.attempt, claim.max_retries, self.worker)

    def lost(self, held: HeldClaim) -> Event:
        """Return the event of a lost claim."""
        return self._event(EventKind.LEASE_LOST, held)

    def swept(self, settlement: Settlement, job_type: str, reason: str = "lease lost") -> Event:
        """Return the event of a claim that lost its worker, whichever that was."""
        return Event(KINDS[settlement.move], settlement.id, job_type, worker=settlement.owner, reason=reason)

    def followed(self, several: Sequence[Followed]) -> list[Event]:
        """Return the events of follow-up jobs: the stored ones, and those whose key belongs to another type's job."""
        return [
            Event(EventKind.FOLLOWED, *one.names, worker=self.worker, error=one.refusal)
            for one in several
            if one.is_news
        ]
