"""A stand-in for a transaction pooler, which forwards Postgres' protocol without notifications."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress

NOTIFICATION = b"A"


@contextmanager
def pooler(connect):
    """Listen on a local port and pass connections on to where `connect` leads; yield the port."""
    server = socket.create_server(("127.0.0.1", 0))
    opened = []

    def serve():
        with suppress(OSError):
            while True:
                client, _ = server.accept()
                upstream = connect()
                opened.extend((client, upstream))
                for work in (lambda c=client, u=upstream: _pass(c, u), lambda c=client, u=upstream: _swallow(u, c)):
                    threading.Thread(target=work, daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield server.getsockname()[1]
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(10)
        for one in opened:
            one.close()


def _pass(source, sink):
    with suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


def _swallow(source, sink):
    """Pass the server's messages on: a letter, a length, a body."""
    with suppress(OSError, EOFError):
        reader = source.makefile("rb")
        while head := reader.read(5):
            body = reader.read(int.from_bytes(head[1:5], "big") - 4)
            if head[:1] != NOTIFICATION:
                sink.sendall(head + body)
