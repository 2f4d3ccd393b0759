"""The listener for new jobs, opened again where its connection breaks."""

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
    """A listener in the supervisor's selector. Polling covers whatever it does not hear."""

    def __init__(self, backend: Backend, selector: selectors.BaseSelector) -> None:
        self._backend = backend
        self._selector = selector
        self._listener: Listener | None = None
        self._descriptor = -1
        self._next = 0.0

    @property
    def due(self) -> float:
        """When to look, or to try to listen again."""
        if self._listener is not None and self._listener.look_every is None:
            return NEVER
        return self._next

    def open(self) -> None:
        """Begin to listen; where that fails, it is tried again."""
        self._next = SYSTEM.monotonic() + _LISTEN_AGAIN
        try:
            listener = self._backend.listen()
        except (Error, OSError) as error:
            logger.debug("Wake-ups cannot be heard just now: %s", error)
            return
        try:
            # Who hears itself has a session of its own: a pooler would hand the wake-up to somebody else.
            self._backend.owns_session = listener.self_test(_TEST)
        except (Error, OSError) as error:
            logger.debug("Wake-ups cannot be tried just now: %s", error)
            listener.close()
            return
        self._listener = listener
        self._descriptor = self._listener.fileno()  # once its connection is lost, it does not know it any more
        self._selector.register(self._descriptor, selectors.EVENT_READ, self)

    def hear(self) -> bool:
        """Say whether something was committed since the last look."""
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
        self._backend.owns_session |= heard  # the test may have been too early
        return heard

    def close(self) -> None:
        """Stop listening."""
        if self._listener is not None:
            listener, self._listener = self._listener, None
            self._selector.unregister(self._descriptor)
            listener.close()
