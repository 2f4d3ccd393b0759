"""Wake-ups between processes of one machine: a datagram to each socket in a folder, and `data_version` behind it."""

from __future__ import annotations

import hashlib
import logging
import os
import socket
import stat
import tempfile
from functools import lru_cache
from pathlib import Path
from select import select
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from jobqueue import conf
from jobqueue.backends.wake import Listener
from jobqueue.clock import SYSTEM

logger = logging.getLogger("jobqueue")

#: How often a listener asks SQLite whether another connection committed; it costs 3 µs.
LOOK_EVERY = 0.025

#: A socket's address has room for 108 bytes, the last of which is zero.
_LONGEST_ADDRESS = 107


def folder(connection: BaseDatabaseWrapper) -> Path:
    """Name the folder of this database's sockets; its parent belongs to this user alone."""
    base = conf.get("RUNTIME_DIR") or os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return _folder(str(connection.settings_dict["NAME"]), base)


@lru_cache(maxsize=16)
def _folder(database: str, base: str) -> Path:
    digest = hashlib.sha256(os.path.realpath(database).encode()).hexdigest()[:16]
    return Path(base) / f"jobqueue-{os.getuid()}" / digest


def is_private(path: Path) -> bool:
    """Make a folder if need be; say whether nobody else can enter it."""
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077


def send_wake_up(connection: BaseDatabaseWrapper) -> None:
    """Send an empty datagram to every listener of this database; nobody waits, and nothing depends on it."""
    try:
        addresses = list(folder(connection).iterdir())
    except OSError:
        return  # nobody ever listened here
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        for address in addresses:
            try:
                sender.sendto(b"", os.fspath(address))
            except ConnectionRefusedError:
                address.unlink(missing_ok=True)  # its listener is dead
            except OSError:
                continue  # its buffer is full, so it is awake; or it has just gone


class SqliteListener(Listener):
    """A socket of its own, and a look at `data_version` for commits that nobody announces: a foreign program's."""

    look_every = LOOK_EVERY

    def __init__(self, alias: str) -> None:
        self._alias = alias
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._address = self._bind()
        self._version = self._data_version()

    def _bind(self) -> Path | None:
        place = folder(connections[self._alias])
        address = place / f"{os.getpid()}-{os.urandom(4).hex()}"
        try:
            usable = len(os.fsencode(address)) <= _LONGEST_ADDRESS and is_private(place.parent) and is_private(place)
        except OSError:
            usable = False
        if not usable:
            logger.warning(
                "The folder %s cannot hold wake-up sockets (its name is too long, or it is not private to this user): "
                "new jobs are found by polling every %s s. Set JOBQUEUE['RUNTIME_DIR'] to a folder of your own.",
                place,
                LOOK_EVERY,
            )
            return None
        self._socket.bind(os.fspath(address))
        return address

    def _data_version(self) -> int:
        connection: Any = connections[self._alias]
        connection.ensure_connection()
        with connection.wrap_database_errors:  # the driver itself answers in a quarter of a cursor's time
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
        if self._address is None:
            return False
        send_wake_up(connections[self._alias])
        arrived = bool(select([self._socket], [], [], timeout)[0])
        self._drain()
        return arrived

    def close(self) -> None:
        self._socket.close()
        if self._address is not None:
            self._address.unlink(missing_ok=True)
