"""Wake-ups between processes of one machine: a datagram to each socket in a folder."""

from __future__ import annotations

import hashlib
import logging
import os
import socket
import stat
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from select import select
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from jobqueue import runtime
from jobqueue.backends.wake import Listener
from jobqueue.clock import SYSTEM

logger = logging.getLogger("jobqueue")

#: The seconds between two checks of whether another connection has committed. A check takes 3 µs.
LOOK_EVERY = 0.025


def folder(connection: BaseDatabaseWrapper) -> Path:
    """Return the folder of this database's sockets. Its parent belongs to this user alone."""
    return Path(runtime.path(_name(connection)))


def _name(connection: BaseDatabaseWrapper) -> str:
    return _digest(os.fspath(connection.settings_dict["NAME"]))


@lru_cache(maxsize=16)
def _digest(database: str) -> str:
    return hashlib.sha256(os.fsencode(os.path.realpath(database))).hexdigest()[:16]


def send_wake_up(connection: BaseDatabaseWrapper) -> None:
    """Send an empty datagram to every listener of this database, without waiting.

    It raises no errors, because the jobs are already committed and polling finds them too.
    """
    try:
        name = _name(connection)
        place = runtime.opened(name)
    except FileNotFoundError:
        return  # there never was a listener
    except Exception:
        logger.debug("No wake-up can be sent", exc_info=True)
        return
    try:
        _send_to_all(place, runtime.path_of(place, name))
    except OSError:
        logger.debug("No wake-up can be sent", exc_info=True)
    finally:
        os.close(place)


def _send_to_all(place: int, path: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        for name in os.listdir(place):
            try:
                sender.sendto(b"", socket.MSG_DONTWAIT, f"{path}/{name}")
            except ConnectionRefusedError:
                _remove_dead(place, name)
            except OSError:
                continue  # a full buffer, which wakes the listener too, or a file that is gone or no socket


def _remove_dead(place: int, name: str) -> None:
    """Remove the socket of a dead listener. Other files refuse datagrams too, and are left alone."""
    with suppress(OSError):
        found = os.stat(name, dir_fd=place, follow_symlinks=False)
        if stat.S_ISSOCK(found.st_mode) and found.st_uid == os.geteuid():
            os.unlink(name, dir_fd=place)


class SqliteListener(Listener):
    """Listens on a socket, and checks `data_version` for commits of other programs, which send no wake-ups."""

    look_every = LOOK_EVERY

    def __init__(self, alias: str) -> None:
        self._alias = alias
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._name = self._bind()
        self._version = self._data_version()

    def _bind(self) -> str | None:
        connection = connections[self._alias]
        name = f"{os.getpid()}-{os.urandom(4).hex()}"
        try:
            place = runtime.opened(_name(connection), make=True)
            try:
                self._socket.bind(f"{runtime.path_of(place, _name(connection))}/{name}")
            finally:
                os.close(place)
        except OSError as error:
            logger.warning(
                "The folder %s cannot hold wake-up sockets (%s): new jobs are found by polling every %s s. "
                "Set JOBQUEUE['RUNTIME_DIR'] to a folder of your own.",
                folder(connection),
                error.strerror or error,
                LOOK_EVERY,
            )
            return None
        return name

    def _data_version(self) -> int:
        connection: Any = connections[self._alias]
        connection.ensure_connection()
        with connection.wrap_database_errors:  # four times as fast as with Django's cursor
            return int(connection.connection.execute("PRAGMA data_version").fetchone()[0])

    def fileno(self) -> int:
        return self._socket.fileno()

    def hear(self, timeout: float) -> bool:
        end = SYSTEM.monotonic() + timeout
        while True:
            left = max(0.0, end - SYSTEM.monotonic())
            if select([self._socket], [], [], min(left, LOOK_EVERY))[0]:
                self._drain()
                self._version = self._data_version()
                return True
            version = self._data_version()
            if version != self._version:
                self._version = version
                return True
            if left <= LOOK_EVERY and SYSTEM.monotonic() >= end:
                return False

    def _drain(self) -> None:
        try:
            while True:
                self._socket.recv(1)
        except BlockingIOError:
            return

    def self_test(self, timeout: float = 2.0) -> bool:
        if self._name is None:
            return False
        send_wake_up(connections[self._alias])
        arrived = bool(select([self._socket], [], [], timeout)[0])
        self._drain()
        return arrived

    def close(self) -> None:
        self._socket.close()
        if self._name is None:
            return
        with suppress(OSError):
            place = runtime.opened(_name(connections[self._alias]))
            try:
                os.unlink(self._name, dir_fd=place)
            finally:
                os.close(place)
