"""The outbound queue of an executor: many outcomes travel in one message."""

from __future__ import annotations

import socket
import threading
from typing import Any

from jobqueue.worker.protocol.wire import Word, pack

#: So many characters of results wait for no others: a message is to be read in a moment.
_ENOUGH = 1024 * 1024


class Outgoing:
    """Sends to the supervisor from any thread; outcomes are held back until somebody has nothing else to do.

    ``full`` is the number of outcomes that are sent at once, so that the supervisor stores them while others run. Large
    ones do not wait for that.
    """

    def __init__(self, channel: socket.socket, full: int) -> None:
        self._channel = channel
        self._full = full
        self._outcomes: list[Any] = []
        self._size = 0
        self._seen: list[Any] | None = None
        self._gathers = threading.Lock()
        self._sends = threading.Lock()  # held while a message waits for room in the pipe; nobody gathers behind it

    @property
    def pending(self) -> bool:
        """Whether outcomes wait to be sent."""
        return bool(self._outcomes)

    def keep(self, outcome: Any) -> None:
        """Keep an outcome that nobody waits for; whoever does this calls ``flush_late`` now and then."""
        with self._gathers:
            self._outcomes.append(outcome)

    def put(self, outcome: Any, size: int = 0) -> None:
        """Keep an outcome for the next message; ``size`` says about how many characters it has."""
        with self._gathers:
            self._outcomes.append(outcome)
            self._size += size
            is_full = len(self._outcomes) >= self._full or self._size >= _ENOUGH
        if is_full:
            self.flush()

    def flush(self) -> None:
        """Send the outcomes that wait."""
        if self._outcomes:
            with self._sends:
                with self._gathers:
                    batch, size, self._outcomes, self._size = self._outcomes, self._size, [], 0
                # While one was sent, many may have come together, each of them large.
                for part in [[one] for one in batch] if size >= _ENOUGH else [batch]:
                    if part:
                        self._send(pack(Word.OUTCOMES, part))

    def flush_late(self) -> None:
        """Send the outcomes if some of them were there at the last call already."""
        if self._outcomes is self._seen:
            self.flush()
        self._seen = self._outcomes or None

    def say(self, word: Word, content: object) -> None:
        """Send something else, at once."""
        with self._sends:
            self._send(pack(word, content))

    def _send(self, message: bytes) -> None:
        try:
            self._channel.sendall(message)
        except OSError:
            return  # nobody reads any more: the supervisor is dead, and this process is about to be
