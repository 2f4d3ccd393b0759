"""The listener for new jobs, which reconnects if its connection breaks."""

from __future__ import annotations

import logging
import selectors

from django.db import Error

from jobqueue.backends.base import Backend
from jobqueue.backends.wake import Listener
from jobqueue.clock import NEVER, SYSTEM

logger = logging.getLogger("jobqueue")

_LISTEN_AGAIN = 1.0
_TEST = 0.5


class WakeListener:
    """A listener in the supervisor's selector. If it misses a wake-up, polling finds the jobs."""

    def __init__(self, backend: Backend, selector: selectors.BaseSelector) -> None:
        self._backend = backend
        self._selector = selector
        self._listener: Listener | None = None
        self._descriptor = -1
        self._next = 0.0

    @property
    def due(self) -> float:
        """Return when to look, or to try to listen again."""
        if self._listener is not None and self._listener.look_every is None:
            return NEVER
        return self._next

    def open(self) -> None:
        """Start to listen. After a failure, try again later."""
        self._next = SYSTEM.monotonic() + _LISTEN_AGAIN
        try:
            listener = self._backend.listen()
        except (Error, OSError) as error:
            logger.debug("Cannot listen for wake-ups at the moment: %s", error)
            return
        try:
            # A listener that hears itself has a session of its own: a pooler would send the wake-up to another session.
            self._backend.owns_session = listener.self_test(_TEST)
        except (Error, OSError) as error:
            logger.debug("Cannot test wake-ups at the moment: %s", error)
            listener.close()
            return
        self._listener = listener
        self._descriptor = self._listener.fileno()  # kept, because a listener without a connection has none
        self._selector.register(self._descriptor, selectors.EVENT_READ, self)

    def hear(self) -> bool:
        """Return whether something was committed since the last look."""
        if self._listener is None:
            self.open()
            return self._listener is not None
        if self._listener.look_every is not None:
            self._next = SYSTEM.monotonic() + self._listener.look_every
        try:
            heard = self._listener.hear(0)
        except (Error, OSError):
            self.close()
            return False
        self._backend.owns_session |= heard  # the self-test may have been too early
        return heard

    def close(self) -> None:
        """Stop listening."""
        if self._listener is not None:
            listener, self._listener = self._listener, None
            self._selector.unregister(self._descriptor)
            listener.close()
