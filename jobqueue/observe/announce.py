"""From events to Django signals: sent in a thread of their own, so that a slow receiver slows no handler."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connections

from jobqueue import signals
from jobqueue.records import Event, EventKind

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
    """Whether any of the signals that a worker sends has a receiver."""
    return any(signal.has_listeners() for kind, signal in _SIGNALS.items() if kind is not EventKind.FOLLOWED)


def send(event: Event) -> None:
    """Send the signal of an event; a receiver that fails is logged by Django and harms nothing."""
    signal = _SIGNALS.get(event.kind)
    if signal is None or not signal.has_listeners():
        return
    facts: dict[str, Any] = event._asdict()
    del facts["kind"]
    signal.send_robust(sender=None, **facts)


class Receivers:
    """A thread that sends signals, started by the first event."""

    def __init__(self) -> None:
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def tell(self, events: Iterable[Event | Sequence[Any]]) -> None:
        """Have the signals of events sent, in order."""
        for event in events:
            self._events.put(event if isinstance(event, Event) else Event(EventKind(event[0]), *event[1:]))
        if self._thread is None:
            self._thread = threading.Thread(target=self._send_all, name="jobqueue-receivers", daemon=True)
            self._thread.start()

    def _send_all(self) -> None:
        while True:
            send(self._events.get())
            if self._events.empty():
                connections.close_all()
