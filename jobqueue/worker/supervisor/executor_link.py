"""The supervisor's end of the channel to one executor."""

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

#: How often its channel is read before others have their turn.
READS = 64
#: The same where it is dead, and nothing comes after what is there.
LAST_READS = 1 << 14


class ExecutorLink:
    """Says and hears without ever waiting for the executor: what cannot be sent at once is sent later."""

    def __init__(self, channel: socket.socket, size: int, *, most: float = NEVER, alone: bool = False) -> None:
        self.channel = channel
        self.size = size
        self.most = most  # how many jobs it runs in its life
        self.alone = alone  # for one suspect
        self.pid: int | None = None
        self.thread: threading.Thread | None = None  # where there are no processes
        self.held: dict[ClaimKey, HeldClaim] = {}
        self.given = 0
        self.leaving = False
        self.doomed = False
        self.ends_at = NEVER  # when it is killed, its neighbours' grace over
        self.ready = False
        self.listening = False
        self.deaf = False  # its channel is closed, or it is not listened to any more
        self.broken = ""  # what it said that no executor says
        self.inbox = wire.Inbox(wire.LONGEST)
        self._unsent = bytearray()

    @property
    def free(self) -> int:
        """How many more jobs it takes."""
        return 0 if self.leaving else int(min(self.size - len(self.held), self.most - self.given))

    @property
    def unsent(self) -> bool:
        """Whether something waits to be sent."""
        return bool(self._unsent)

    def say(self, word: Word, content: object = None) -> None:
        """Send a message, as far as it goes at once."""
        self._unsent += wire.pack(word, content)
        self.send()

    def send(self) -> None:
        """Send what waits, as far as it goes."""
        while self._unsent:
            try:
                sent = self.channel.send(self._unsent)
            except BlockingIOError:
                return
            except OSError:
                self._unsent.clear()  # it is dead; what it held is settled when that is certain
                return
            del self._unsent[:sent]

    def hear(self, reads: int = READS) -> Iterator[tuple[Word, Any]]:
        """Read what it says, until there is no more, or until it is the turn of others. Raises BadMessage."""
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
