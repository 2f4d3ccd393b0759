"""Events for the log and for signals; an executor sends the signals."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from jobqueue.clock import SYSTEM
from jobqueue.observe import logs
from jobqueue.records import Event, EventKind, Followed, Settlement
from jobqueue.states import Move
from jobqueue.worker.protocol.wire import Word
from jobqueue.worker.supervisor.claims import HeldClaim
from jobqueue.worker.supervisor.executors import Executors

_KINDS = {
    Move.COMPLETE: EventKind.COMPLETED,
    Move.RETRY: EventKind.RETRIED,
    Move.SNOOZE: EventKind.SNOOZED,
    Move.RELEASE: EventKind.RELEASED,
    Move.QUARANTINE: EventKind.QUARANTINED,
    Move.BURY: EventKind.DEAD_LETTERED,
    Move.CANCEL: EventKind.CANCELLED,
}


#: Signals are news: without an executor to send them, more than these are not kept.
_MOST_UNTOLD = 10_000


class Events:
    """Tells what happened to those who want to know; costs next to nothing where nobody does."""

    def __init__(self, executors: Executors, worker: str) -> None:
        self._executors = executors
        self.worker = worker
        self._is_listened_to = False
        self._untold: deque[Event] = deque(maxlen=_MOST_UNTOLD)

    @property
    def is_heard(self) -> bool:
        """Whether anybody wants to know."""
        return logs.is_heard() or self._is_listened_to

    @property
    def untold(self) -> int:
        """How many events no executor has been told of yet."""
        return len(self._untold)

    def tell(self, events: Sequence[Event]) -> None:
        """Log events, and have their signals sent by an executor in which somebody listens."""
        for event in events:
            logs.write(event)
        if self._is_listened_to:
            self._untold.extend(events)
            self.tell_the_rest()

    def tell_the_rest(self) -> None:
        """Have an executor send what is still to be sent; where there is none just now, the next one does."""
        listener = self._executors.listener()
        if listener is not None:
            self._is_listened_to = True
            if self._untold:
                listener.say(Word.EVENTS, [list(event) for event in self._untold])
                self._executors.watch(listener)
                self._untold.clear()

    def stored(self, held: HeldClaim, settlement: Settlement) -> Event:
        """Make the event of a settlement that was stored."""
        failure = settlement.failure
        return self._event(_KINDS[settlement.move], held)._replace(
            duration=SYSTEM.monotonic() - held.since,
            delay=None if settlement.delay is None else settlement.delay.total_seconds(),
            reason=settlement.end_reason or (failure.ending if failure else ""),
            error_class=failure.error_class if failure else "",
            error=failure.message if failure else "",
        )

    def completed_itself(self, held: HeldClaim) -> Event:
        """Make the event of a completion that the handler's own transaction has stored."""
        return self._event(EventKind.COMPLETED, held)._replace(duration=SYSTEM.monotonic() - held.since)

    def began(self, several: Sequence[HeldClaim]) -> None:
        """Log what begins to run, for those who want to know everything; the signal is sent where it runs."""
        if logs.is_debugging():
            for held in several:
                logs.write(self._event(EventKind.STARTED, held))

    def _event(self, kind: EventKind, held: HeldClaim) -> Event:
        claim = held.claim
        return Event(kind, claim.id, claim.type, claim.queue, claim.attempt, claim.max_retries, self.worker)

    def lost(self, held: HeldClaim) -> Event:
        """Make the event of a claim that is no longer held."""
        return self._event(EventKind.LEASE_LOST, held)

    def swept(self, settlement: Settlement, job_type: str) -> Event:
        """Make the event of a lease that ran out, whoever held it."""
        return Event(_KINDS[settlement.move], settlement.id, job_type, worker=settlement.owner, reason="lease lost")

    def followed(self, several: Sequence[Followed]) -> list[Event]:
        """Make the events of follow-up jobs: those that were stored, and those whose key another type's job has."""
        return [
            Event(EventKind.FOLLOWED, *one.names, worker=self.worker, error=one.refusal)
            for one in several
            if one.is_news
        ]
