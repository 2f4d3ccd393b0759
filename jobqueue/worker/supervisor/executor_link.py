"""The supervisor's end of the channel to an executor."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

from jobqueue.clock import NEVER
from jobqueue.records import ClaimKey
from jobqueue.worker.protocol import wire
from jobqueue.worker.protocol.wire import Word
from jobqueue.worker.supervisor.claims import HeldClaim

#: How many reads a channel gets in one turn.
READS = 64
#: The same for a dead executor, which sends nothing more.
LAST_READS = 1 << 14


class ExecutorLink:
    """A non-blocking channel to an executor. Data that can't be sent at once is sent later."""

    def __init__(self, channel: socket.socket, size: int, *, most: float = NEVER, alone: bool = False) -> None:
        self.channel = channel
        self.size = size
        self.most = most  # how many jobs it may run
        self.alone = alone  # it runs one suspect of a crash
        self.pid: int | None = None
        self.thread: threading.Thread | None = None  # with --processes 0
        self.held: dict[ClaimKey, HeldClaim] = {}
        self.given = 0
        self.leaving = False
        self.doomed = False
        self.ends_at = NEVER  # when it is killed, at the end of the other jobs' grace
        self.ready = False
        self.listening = False
        self.tracing = False
        self.deaf = False  # its channel is closed or no longer read
        self.broken = ""  # why its message was invalid
        self.inbox = wire.Inbox(wire.LONGEST)
        self._unsent = bytearray()

    @property
    def free(self) -> int:
        """Return how many more jobs it takes."""
        return 0 if self.leaving else int(min(self.size - len(self.held), self.most - self.given))

    @property
    def unsent(self) -> bool:
        """Return whether something waits to be sent."""
        return bool(self._unsent)

    def say(self, word: Word, content: object = None) -> None:
        """Send a message, as far as possible without blocking."""
        self._unsent += wire.pack(word, content)
        self.send()

    def send(self) -> None:
        """Send waiting data, as far as possible without blocking."""
        while self._unsent:
            try:
                sent = self.channel.send(self._unsent)
            except BlockingIOError:
                return
            except OSError:
                self._unsent.clear()  # it is dead; its jobs are settled when that is certain
                return
            del self._unsent[:sent]

    def hear(self, reads: int = READS) -> Iterator[tuple[Word, Any]]:
        """Yield messages until there are no more, or its turn ends. Raises BadMessage."""
        for _ in range(0 if self.deaf else reads):
            try:
                data = self.channel.recv(wire.AT_ONCE)
            except BlockingIOError:
                return
            except ConnectionResetError:
                data = b""
            if not data:
                self.deaf = True
                return
            yield from self.inbox.feed(data)
            if len(data) < wire.AT_ONCE:
                return
