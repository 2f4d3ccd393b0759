"""The outbound queue of an executor, which combines many outcomes into one message."""

from __future__ import annotations

import socket
import threading
from typing import Any

from jobqueue.worker.protocol.wire import Word, pack

#: Results of this many characters are sent at once, so that a message can be read quickly.
_ENOUGH = 1024 * 1024


class Outgoing:
    """Sends to the supervisor from any thread. Outcomes are held back until a thread has nothing else to do.

    ``full`` outcomes are sent at once, so that the supervisor stores them while other jobs run. Large outcomes don't
    wait.
    """

    def __init__(self, channel: socket.socket, full: int) -> None:
        self._channel = channel
        self._full = full
        self._outcomes: list[Any] = []
        self._size = 0
        self._seen: list[Any] | None = None
        self._gathers = threading.Lock()
        self._sends = threading.Lock()  # held while a message waits for room in the socket; not needed to add outcomes

    @property
    def pending(self) -> bool:
        """Return whether outcomes wait to be sent."""
        return bool(self._outcomes)

    def keep(self, outcome: Any) -> None:
        """Keep an outcome that isn't urgent. The caller must call ``flush_late`` from time to time."""
        with self._gathers:
            self._outcomes.append(outcome)

    def put(self, outcome: Any, size: int = 0) -> None:
        """Keep an outcome for the next message. ``size`` is its approximate number of characters."""
        with self._gathers:
            self._outcomes.append(outcome)
            self._size += size
            is_full = len(self._outcomes) >= self._full or self._size >= _ENOUGH
        if is_full:
            self.flush()

    def flush(self) -> None:
        """Send the waiting outcomes."""
        if self._outcomes:
            with self._sends:
                with self._gathers:
                    batch, size, self._outcomes, self._size = self._outcomes, self._size, [], 0
                # While one message was sent, many large outcomes may have arrived.
                for part in [[one] for one in batch] if size >= _ENOUGH else [batch]:
                    if part:
                        self._send(pack(Word.OUTCOMES, part))

    def flush_late(self) -> None:
        """Send the outcomes if any of them has waited since the last call."""
        if self._outcomes is self._seen:
            self.flush()
        self._seen = self._outcomes or None

    def say(self, word: Word, content: object) -> None:
        """Send another message at once."""
        with self._sends:
            self._send(pack(word, content))

    def _send(self, message: bytes) -> None:
        try:
            self._channel.sendall(message)
        except OSError:
            return  # the supervisor is dead, and this process ends soon
