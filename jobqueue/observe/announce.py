"""Django signals for events, sent in a thread of their own so that slow receivers don't slow handlers down."""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from django.db import connections

from jobqueue import signals
from jobqueue.observe import logs
from jobqueue.records import Draft, Event, EventKind

logger = logging.getLogger("jobqueue")

#: If receivers fall behind by more events than these, further signals are dropped.
_MOST_WAITING = 10_000

_SIGNALS = {
    EventKind.FOLLOWED: signals.enqueued,
    EventKind.STARTED: signals.started,
    EventKind.PROGRESSED: signals.progressed,
    EventKind.COMPLETED: signals.completed,
    EventKind.RETRIED: signals.retried,
    EventKind.DEAD_LETTERED: signals.dead_lettered,
    EventKind.CANCELLED: signals.cancelled,
    EventKind.LEASE_LOST: signals.lease_lost,
}


def is_anybody_listening() -> bool:
    """Return whether any signal that a worker sends has a receiver."""
    return any(signal.has_listeners() for signal in _SIGNALS.values())


def enqueued(drafts: Iterable[Draft]) -> None:
    """Log newly stored jobs, and send their signals."""
    logs.enqueued(drafts)
    if signals.enqueued.has_listeners():
        for draft in drafts:
            signals.enqueued.send_robust(sender=None, job_id=draft.id, job_type=draft.type, queue=draft.queue)


def shed(drafts: Iterable[Draft]) -> None:
    """Send the signals of jobs that were shed."""
    if signals.shed.has_listeners():
        for draft in drafts:
            signals.shed.send_robust(sender=None, job_type=draft.type, queue=draft.queue, priority=draft.priority)


def send(event: Event) -> None:
    """Send the signal of an event. Django logs receivers that fail."""
    signal = _SIGNALS.get(event.kind)
    if signal is None or not signal.has_listeners():
        return
    if event.kind is EventKind.FOLLOWED and event.error:
        return  # no job was stored
    facts: dict[str, Any] = event._asdict()
    del facts["kind"]
    signal.send_robust(sender=None, **facts)


class Receivers:
    """A thread that sends signals. The first event starts it."""

    def __init__(self, its_turn: Callable[[], AbstractContextManager[object]] = nullcontext) -> None:
        self._its_turn = its_turn
        self._events: queue.Queue[Event | None] = queue.Queue(_MOST_WAITING)
        self._dropped = 0
        self._thread: threading.Thread | None = None

    def tell(self, events: Iterable[Event | Sequence[Any]]) -> None:
        """Send the signals of events later, in order."""
        for event in events:
            self._put(event if isinstance(event, Event) else Event(EventKind(event[0]), *event[1:]))
        if self._thread is None:
            self._thread = threading.Thread(target=self._send_all, name="jobqueue-receivers", daemon=True)
            self._thread.start()

    def _put(self, event: Event) -> None:
        try:
            self._events.put_nowait(event)
        except queue.Full:
            self._dropped += 1
            if self._dropped == 1:
                logger.warning("Receivers of signals are slower than the jobs: some signals are not sent")

    def finish(self, timeout: float = 5.0) -> None:
        """Send the remaining signals and end, within the timeout."""
        if self._thread is not None:
            with contextlib.suppress(queue.Full):
                self._events.put(None, timeout=timeout)
            self._thread.join(timeout)

    def _send_all(self) -> None:
        while (event := self._events.get()) is not None:
            with self._its_turn():
                send(event)
            if self._events.empty():
                connections.close_all()
        connections.close_all()
