"""The wait for SQLite's only write lock.

SQLite's own busy handler sleeps longer with each try, so threads that came later would get the lock first.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from random import uniform
from typing import Any, TypeVar

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import OperationalError

from jobqueue import conf
from jobqueue.clock import SYSTEM
from jobqueue.errors import DatabaseBusy

T = TypeVar("T")

_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
#: The bounds of a random nap in seconds. All waiting threads then have the same chance, and none waits for long.
_NAP = (0.00005, 0.0005)
_LONG_NAP = (0.001, 0.005)
_SHORT_NAPS = 400
_LOOK_UP = 0.05
#: After a handler held the lock, it stays free for a tenth of that time, but not much longer than the longest nap.
_ROOM = 0.1
_MOST_ROOM = 0.006
_WORTH_A_NAP = 0.0002

_turn = threading.RLock()
_room_until = 0.0


def retrying(connection: BaseDatabaseWrapper, work: Callable[[], T], limit: float | None = None) -> T:
    """Do work that stores all or nothing. Repeat it for ``limit`` seconds (BUSY_TIMEOUT) until the lock is free.

    Inside the caller's transaction, the work is tried once. An IMMEDIATE transaction already has the lock, and a
    deferred one that has read can't get it, however long it waits.
    """
    if connection.in_atomic_block:
        try:
            return work()
        except OperationalError as error:
            if _is_locked(error):
                raise DatabaseBusy(_refused_at_once(connection.alias)) from error
            raise
    connection.ensure_connection()
    # SQLite's own waiting is off meanwhile, and restored afterwards, because the application uses the connection.
    driver: Any = connection.connection
    given = driver.execute("PRAGMA busy_timeout").fetchone()[0]
    driver.execute("PRAGMA busy_timeout = 0")
    try:
        return _repeated(connection, work, conf.get("BUSY_TIMEOUT") if limit is None else limit)
    finally:
        if connection.connection is driver:
            driver.execute(f"PRAGMA busy_timeout = {given}")


@contextmanager
def turn(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Let one thread of this process at a time try to get the lock, and then hold it during its transaction.

    If all threads tried at once, they would slow down the thread that holds the lock. A thread inside a transaction may
    already have the lock, so it doesn't wait.
    """
    if connection.in_atomic_block:
        yield
        return
    try:
        if not _turn.acquire(blocking=False):
            _wait_for_turn(SYSTEM.monotonic() + conf.get("BUSY_TIMEOUT"))
        if (room := _room_until - SYSTEM.monotonic()) > _WORTH_A_NAP:
            time.sleep(room)
        yield
    finally:
        with suppress(RuntimeError):  # this thread didn't have its turn yet
            _turn.release()


def _wait_for_turn(limit: float) -> None:
    while not _turn.acquire(timeout=_LOOK_UP):  # in pieces, so that a thread that is interrupted notices
        if SYSTEM.monotonic() > limit:
            raise DatabaseBusy(
                f"Other atomic jobs of this process held the database for {conf.get('BUSY_TIMEOUT')} seconds. "
                f"Keep their handlers short, or raise JOBQUEUE['BUSY_TIMEOUT']."
            )


@contextmanager
def in_turn(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Wait for this thread's turn, and open a transaction with the lock. Afterwards, leave the lock free for a moment.

    Other processes nap between two tries. Without the free moment, atomic handlers that follow each other would keep
    renewals, claims and views from getting the lock.
    """
    global _room_until
    work = transaction.atomic(using=connection.alias)

    def begin() -> None:
        with immediate(connection):
            work.__enter__()

    with turn(connection):
        retrying(connection, begin)
        began = SYSTEM.monotonic()
        try:
            _prove_that_it_writes(connection)
            yield
        except BaseException:
            work.__exit__(*sys.exc_info())
            raise
        else:
            work.__exit__(None, None, None)
        finally:
            now = SYSTEM.monotonic()
            _room_until = now + min(_ROOM * (now - began), _MOST_ROOM)


def _prove_that_it_writes(connection: BaseDatabaseWrapper) -> None:
    """Raise if the file is read-only. SQLite doesn't raise when an IMMEDIATE transaction begins."""
    with connection.wrap_database_errors:
        driver: Any = connection.connection
        driver.execute("DELETE FROM job_queue WHERE 0")


def give_up_turn() -> None:
    """Give up this thread's turn, which an interruption may have left behind."""
    with suppress(RuntimeError):
        while True:
            _turn.release()


def _after_fork() -> None:
    global _turn
    _turn = threading.RLock()  # the thread that held the old lock isn't in the child


os.register_at_fork(after_in_child=_after_fork)


def _repeated(connection: BaseDatabaseWrapper, work: Callable[[], T], limit: float) -> T:
    started, naps = SYSTEM.monotonic(), 0
    while True:
        try:
            return work()
        except OperationalError as error:
            if not _is_locked(error):
                raise
            if SYSTEM.monotonic() - started > limit:
                raise DatabaseBusy(
                    f'The database "{connection.alias}" was locked for {limit} seconds by another writer. Look for a '
                    f"transaction that stays open, or raise JOBQUEUE['BUSY_TIMEOUT']."
                ) from error
        naps += 1
        time.sleep(uniform(*(_NAP if naps < _SHORT_NAPS else _LONG_NAP)))  # noqa: S311 - no secret in a nap


@contextmanager
def immediate(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Have the next transaction take the write lock as it begins, whatever the settings say."""
    wrapper: Any = connection
    given = wrapper.transaction_mode
    wrapper.transaction_mode = "IMMEDIATE"
    try:
        yield
    finally:
        wrapper.transaction_mode = given


def _is_locked(error: OperationalError) -> bool:
    code = getattr(error.__cause__, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in _LOCKED


def _refused_at_once(alias: str) -> str:
    return (
        f'The database "{alias}" refused a write inside a deferred transaction: another writer was at work, and SQLite '
        f"does not let such a transaction wait. Nothing was stored. "
        f"Set DATABASES[{alias!r}]['OPTIONS']['transaction_mode'] = 'IMMEDIATE'."
    )
