"""A proxy in front of Postgres: slow, silent, reset, or cut in the middle of an answer."""

from __future__ import annotations

import re
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import psycopg

from benchmarks.databases import Place

_AT_ONCE = 65_536
#: The server is ready for the next statement, and outside a transaction: what it answered before is committed.
_COMMITTED = b"Z\x00\x00\x00\x05I"
_READY = re.compile(rb"Z\x00\x00\x00\x05[ITE]\Z")
_DONE = re.compile(rb"C\x00\x00\x00.(COMMIT|INSERT|UPDATE|SELECT)[ \d]*\x00", re.DOTALL)
#: What the rows of a worker's cycle begin with, and of no other SELECT.
_OF_A_CYCLE = (b"taken", b"settled")


class Link:
    """A connection between a client and the server."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client = client
        self.server = server
        self._passes = threading.Event()
        self._passes.set()
        self._is_over = False

    def silence(self) -> None:
        """Stop reading from both sides without closing anything."""
        self._passes.clear()

    @property
    def is_silent(self) -> bool:
        """Return whether traffic is blocked."""
        return not self._passes.is_set()

    def may_pass(self) -> bool:
        """Wait until traffic may pass, possibly for ever. Return false if the link is gone."""
        self._passes.wait()
        return not self._is_over

    def reset(self) -> None:
        """Break it so that the client gets RST without a goodbye."""
        self._is_over = True
        with suppress(OSError):
            self.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._close()

    def end(self) -> None:
        """End it at the request of one side."""
        self._is_over = True
        self._close()

    def _close(self) -> None:
        for side in (self.client, self.server):
            with suppress(OSError):
                side.shutdown(socket.SHUT_RD)  # says nothing on the wire, and ends the waiting of the other thread
            side.close()
        self._passes.set()


class Proxy:
    """Listens on a local port and forwards connections as configured. Its threads end with the process."""

    def __init__(self, place: Place) -> None:
        self._open = _opener(place)
        self._server = socket.create_server(("127.0.0.1", 0))
        #: How long each piece is kept back, on its way there and on its way back.
        self.delay = 0.0
        #: Whether connections that come are silent from the first byte on.
        self.swallows = False
        #: Answers that were cut, by what the server had done.
        self.cuts: Counter[str] = Counter()
        self._cut_after: int | None = None
        self._arming = threading.Lock()
        self._links: list[Link] = []
        threading.Thread(target=self._accept, daemon=True).start()
        host, port = self._server.getsockname()
        options = place.database.get("OPTIONS", {}) | {"sslmode": "disable", "gssencmode": "disable"}
        self.place = replace(place, database=place.database | {"HOST": host, "PORT": str(port), "OPTIONS": options})

    def silence(self) -> int:
        """Silence the existing connections. Return their number."""
        for link in self._links:
            link.silence()
        return len(self._links)

    def reset(self, *, silent_only: bool = False) -> int:
        """Reset the existing connections, or only silent ones. Return their number."""
        ended = [link for link in self._links if link.is_silent or not silent_only]
        for link in ended:
            link.reset()
            self._forget(link)
        return len(ended)

    def _forget(self, link: Link) -> None:
        with suppress(ValueError):
            self._links.remove(link)

    def cut_next(self, after: int) -> None:
        """Forward only some bytes of the next answer to a COMMIT, and reset its connection."""
        with self._arming:
            self._cut_after = after

    def close(self) -> None:
        """Accept no more connections, and reset the existing ones."""
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.reset()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            try:
                link = Link(client, self._open())
            except OSError:
                client.close()
                continue
            if self.swallows:
                link.silence()
            self._links.append(link)
            for work in (self._ask, self._answer):
                threading.Thread(target=work, args=(link,), daemon=True).start()

    def _ask(self, link: Link) -> None:
        self._carry(link, link.client, lambda data: self._pass(link.server, data))

    def _answer(self, link: Link) -> None:
        held = bytearray()

        def take(data: bytes) -> None:
            held.extend(data)
            if self._cut_after is not None and data[:1] != b"A" and not _READY.search(held):
                return  # the rest of the answer is to come
            whole = bytes(held)
            held.clear()
            if (rest := self._to_cut(whole)) is None:
                self._pass(link.client, whole)
            else:
                link.client.sendall(rest)
                link.reset()

        self._carry(link, link.server, take)

    def _to_cut(self, answer: bytes) -> bytes | None:
        """Return how much of an answer to forward, if it must be cut."""
        with self._arming:
            done = _DONE.search(answer)
            if self._cut_after is None or done is None or not answer.endswith(_COMMITTED):
                return None
            what = done[1].decode()
            if what == "SELECT" and not any(words in answer for words in _OF_A_CYCLE):
                return None
            rest, self._cut_after = answer[: min(self._cut_after, len(answer) - len(_COMMITTED))], None
            self.cuts[what] += 1
            return rest

    def _pass(self, sink: socket.socket, data: bytes) -> None:
        if self.delay:
            time.sleep(self.delay)
        sink.sendall(data)

    def _carry(self, link: Link, source: socket.socket, take: Callable[[bytes], None]) -> None:
        with suppress(OSError):
            while (data := source.recv(_AT_ONCE)) and link.may_pass():
                take(data)
        if link.may_pass():
            link.end()
        self._forget(link)


def _opener(place: Place) -> Callable[[], socket.socket]:
    """Return the driver's target: a socket file or a port."""
    with psycopg.connect(place.address) as direct:
        host, port = direct.info.host, direct.info.port

    def connect() -> socket.socket:
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{host}/.s.PGSQL.{port}")
        return server

    return connect
