"""The wait for SQLite's only write lock.

SQLite's own busy handler sleeps longer and longer, so that those who come later get the lock first.
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
#: Short, random naps: all that wait have the same chance each time, so that none waits for long.
_NAP = (0.00005, 0.0005)
_LONG_NAP = (0.001, 0.005)
_SHORT_NAPS = 400
_LOOK_UP = 0.05
#: After a handler had the lock, it is left alone for a tenth of that time, at most a bit longer than the longest nap.
_ROOM = 0.1
_MOST_ROOM = 0.006
_WORTH_A_NAP = 0.0002

_turn = threading.RLock()
_room_until = 0.0


def retrying(connection: BaseDatabaseWrapper, work: Callable[[], T], limit: float | None = None) -> T:
    """Do work that stores all or nothing, again and again until the lock is free or ``limit`` (BUSY_TIMEOUT) is over.

    Inside the caller's transaction it is tried once. An IMMEDIATE transaction has the lock already, and a deferred one
    that has read can never get it, however long it waits.
    """
    if connection.in_atomic_block:
        try:
            return work()
        except OperationalError as error:
            if _is_locked(error):
                raise DatabaseBusy(_refused_at_once(connection.alias)) from error
            raise
    connection.ensure_connection()
    # SQLite's own waiting is switched off, and back to what it was afterwards: the connection is the application's.
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
    """Let one thread of this process at a time try for the lock, and keep it as long as its transaction takes.

    If all threads tried at once, the trying would slow down the one that holds the lock. A thread in a transaction may
    have the lock already, and doesn't wait.
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
        with suppress(RuntimeError):  # it was not this thread's turn yet
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
    """Open a transaction that has the lock, when it is this thread's turn. Leave the lock to others for a while after.

    The others nap between two tries. Without the pause, jobs that hold the lock one right after another would keep it
    from renewals, claims and views for as long as there are such jobs.
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
    """Raise if the file is read-only. There, even a transaction that asks for the lock begins."""
    with connection.wrap_database_errors:
        driver: Any = connection.connection
        driver.execute("DELETE FROM job_queue WHERE 0")


def give_up_turn() -> None:
    """Give up this thread's turn, if it has one: an interruption may have come just as the turn ended."""
    with suppress(RuntimeError):
        while True:
            _turn.release()


def _after_fork() -> None:
    global _turn
    _turn = threading.RLock()  # the thread that had the other one is not in the child


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
