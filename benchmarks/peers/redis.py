"""A minimal Redis client: it finds an empty database, empties it again, and reads the settings."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from benchmarks.databases import Place

VARIABLE = "JOBQUEUE_BENCH_REDIS"
TRIED = "redis://127.0.0.1:6379"

_HIGHEST = 15
_PATIENCE = 5.0


class NoRedis(Exception):
    """No Redis answers, or none has room; the message says so."""


class Connection:
    """A connection that sends one command and reads one reply."""

    def __init__(self, address: str) -> None:
        url = urlsplit(address)
        self._socket = socket.create_connection((url.hostname or "127.0.0.1", url.port or 6379), timeout=_PATIENCE)
        self._replies = self._socket.makefile("rb")
        if url.password:
            self("AUTH", *filter(None, [url.username]), url.password)
        if url.path.strip("/"):
            self("SELECT", url.path.strip("/"))

    def __call__(self, *words: str) -> Any:
        parts = [f"${len(word.encode())}\r\n{word}\r\n" for word in words]
        self._socket.sendall(f"*{len(words)}\r\n{''.join(parts)}".encode())
        return self._reply()

    def _reply(self) -> Any:
        line = self._replies.readline().rstrip(b"\r\n")
        kind, rest = line[:1], line[1:]
        match kind:
            case b"+":
                return rest.decode()
            case b":":
                return int(rest)
            case b"$":
                return self._replies.read(int(rest) + 2)[:-2].decode() if int(rest) >= 0 else None
            case b"*":
                return [self._reply() for _ in range(int(rest))]
        raise NoRedis(rest.decode() or "the connection was closed")

    def close(self) -> None:
        """Hang up."""
        self._replies.close()
        self._socket.close()


@contextmanager
def connected(address: str) -> Iterator[Connection]:
    """Connect for a while; raise NoRedis if nobody answers."""
    try:
        connection = Connection(address)
    except OSError as error:
        raise NoRedis(f"{address} does not answer ({error}); set {VARIABLE} to its address") from error
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def redis_place() -> Iterator[Place]:
    """Find a database that is empty, and empty it again; one that holds anything is left alone."""
    given = os.environ.get(VARIABLE, TRIED).rstrip("/")
    named = urlsplit(given).path.strip("/")
    server = given.removesuffix(f"/{named}") if named else given
    address = f"{server}/{_empty(server, [named] if named else [str(n) for n in range(_HIGHEST, 0, -1)])}"
    with tempfile.TemporaryDirectory() as folder:
        try:
            yield Place(vendor="redis", database={}, address=address, runtime=folder)
        finally:
            with connected(address) as connection:
                connection("FLUSHDB")


def _empty(server: str, numbers: list[str]) -> str:
    with connected(server) as connection:
        for number in numbers:
            connection("SELECT", number)
            if not connection("DBSIZE"):
                return number
    raise NoRedis(f"of {server}, no database is empty that might be used (tried {', '.join(numbers)})")


def settings() -> dict[str, str]:
    """Read how Redis keeps what it is given."""
    with connected(os.environ.get(VARIABLE, TRIED)) as connection:
        read: dict[str, str] = {}
        for name in ("appendonly", "appendfsync", "save"):
            read.update([connection("CONFIG", "GET", name)])
        [version] = [line for line in connection("INFO", "server").splitlines() if line.startswith("redis_version:")]
    return {**read, "version": version.partition(":")[2]}
