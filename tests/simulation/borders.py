"""The borders between statements, in the drivers: each statement and commit of an actor is a turn."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from functools import cache
from types import SimpleNamespace
from typing import Any
from weakref import WeakSet

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from jobqueue.backends.sqlite import lock as sqlite_lock
from tests.simulation.turns import CRASHES, Actor, Crash, Fate, Watch, here

try:
    import psycopg
    from django.db.backends.postgresql.base import Cursor as DjangoCursor
except ImportError:  # the suite says elsewhere that Postgres was skipped
    psycopg = None

#: Django names savepoints after the thread, which is another one each time.
_THREAD = re.compile(r'"s\d+_x')
BEFORE = {Fate.CRASH_BEFORE, Fate.CUT_BEFORE}


def stepped(statement: str, alias: str, do: Callable[[], Any]) -> Any:
    """Do what a statement does as one turn of the actor whose thread this is."""
    actor = here()
    if actor is None or actor.falling or statement.startswith(("PRAGMA", "SET application_name")):
        return do()
    fate = actor.border(_THREAD.sub('"s_x', " ".join(statement.split())[:90]))
    if fate in BEFORE:
        fall(actor, alias)
    result = do()
    if not statement.lstrip().startswith("SELECT"):
        actor.turns.is_written = True
    if fate is not Fate.GO:
        fall(actor, alias)
    return result


def fall(actor: Actor, alias: str) -> None:
    """Drop the connection, and whatever transaction it was in; a crash takes the process with it."""
    actor.falling = True
    driver = connections[alias].connection
    if isinstance(driver, sqlite3.Connection):
        driver.drop()
    elif driver is not None:
        driver.pgconn.finish()
        actor.turns.watch.await_end_of(actor)
    actor.turns.release()
    if actor.fate in CRASHES:
        raise Crash
    raise psycopg.OperationalError("the connection is lost")


def _ending(method: Callable[[Any], None], name: str) -> Callable[[Any], None]:
    """A commit or a rollback as a turn. Afterwards those that wait for the lock may try."""

    def end(wrapper: Any) -> None:
        try:
            stepped(name, wrapper.alias, lambda: method(wrapper))
        finally:
            if actor := here():
                actor.turns.release()

    return end


# SQLite: the driver itself is replaced by one that has borders, for the backend goes around Django's cursors.


@cache
def _cursor_with_borders(factory: type) -> type:
    class CursorWithBorders(factory):
        def execute(self, statement, *parameters):
            return _sqlite(
                self.connection, statement, lambda: super(CursorWithBorders, self).execute(statement, *parameters)
            )

        def executemany(self, statement, rows):
            return _sqlite(
                self.connection, statement, lambda: super(CursorWithBorders, self).executemany(statement, rows)
            )

    return CursorWithBorders


def _sqlite(driver: Any, statement: str, do: Callable[[], Any]) -> Any:
    """Do one statement; where SQLite would wait by itself, let others have their turns instead."""
    if statement.startswith("PRAGMA busy_timeout ="):
        driver.waits_by_itself = not statement.endswith(" 0")
    actor, began = here(), driver.in_transaction
    while True:
        try:
            result = stepped(statement, "default", do)
        except sqlite3.OperationalError as error:
            busy = (getattr(error, "sqlite_errorcode", 0) & 0xFF) == sqlite3.SQLITE_BUSY
            if not (busy and actor and driver.waits_by_itself) or began:
                raise
            actor.wait()
            continue
        if actor and not began and not driver.in_transaction and not statement.lstrip().startswith("SELECT"):
            actor.turns.release()
        return result


class SqliteWithBorders(sqlite3.Connection):
    """A connection whose statements are turns, however they are sent."""

    waits_by_itself = True

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._cursors = WeakSet()

    def cursor(self, factory=sqlite3.Cursor):
        made = super().cursor(_cursor_with_borders(factory))
        self._cursors.add(made)
        return made

    def execute(self, *args):
        return self.cursor().execute(*args)  # the driver's own would take a cursor without borders

    def executemany(self, *args):
        return self.cursor().executemany(*args)

    def drop(self):
        """Close it as the end of its process would; what is in the midst of a statement would keep its lock."""
        for cursor in list(self._cursors):
            cursor.close()
        self.rollback()
        self.close()


if psycopg is not None:

    class PostgresCursorWithBorders(DjangoCursor):
        """A cursor whose statements are turns."""

        def execute(self, query, *args, **kwargs):
            do = super().execute
            return stepped(str(query), "postgres", lambda: do(query, *args, **kwargs))


class PostgresWatch(Watch):
    """Asks the server itself, over a connection of its own."""

    def __init__(self, alias: str) -> None:
        parameters = connections[alias].get_connection_params()
        known = {
            name: parameters[name] for name in ("host", "port", "user", "password", "dbname") if name in parameters
        }
        self.connection = psycopg.connect(**known, autocommit=True)

    def is_blocked(self, actor: Actor) -> bool:
        return self._any("SELECT 1 FROM pg_locks WHERE pid = %s AND NOT granted LIMIT 1", actor)

    def await_end_of(self, actor: Actor) -> None:
        while self._any("SELECT 1 FROM pg_stat_activity WHERE pid = %s", actor):
            pass

    def close(self) -> None:
        self.connection.close()

    def _any(self, statement: str, actor: Actor) -> bool:
        return self.connection.execute(statement, [actor.pid]).fetchone() is not None


def _introduce(sender: Any, connection: Any, **_: Any) -> None:
    """Tell the database which actor a connection is of, for the record of changes."""
    actor = here()
    name = actor.name if actor else "nobody"
    if connection.vendor == "sqlite":
        connection.connection.create_function("actor", 0, lambda: name)
    else:
        # No server crashes here, so none need wait for the disk.
        connection.connection.execute(f"SET application_name = '{name}'; SET synchronous_commit = off")
        if actor:
            actor.pid = connection.connection.info.backend_pid


def _nap(_seconds: float) -> None:
    if (actor := here()) and not actor.falling:
        actor.wait()


@contextmanager
def borders(monkeypatch, alias):
    """Give an alias's drivers borders, and let a nap before the write lock be a turn of the others."""
    options = connections.settings[alias].get("OPTIONS", {})
    extra = (
        {"factory": SqliteWithBorders, "timeout": 0.001}
        if alias == "default"
        else {"cursor_factory": PostgresCursorWithBorders}
    )
    connections.close_all()
    monkeypatch.setitem(connections.settings[alias], "OPTIONS", options | extra)
    monkeypatch.setattr(BaseDatabaseWrapper, "_commit", _ending(BaseDatabaseWrapper._commit, "COMMIT"))
    monkeypatch.setattr(BaseDatabaseWrapper, "_rollback", _ending(BaseDatabaseWrapper._rollback, "ROLLBACK"))
    monkeypatch.setattr(sqlite_lock, "time", SimpleNamespace(sleep=_nap))
    # What keeps the threads of one process apart: each actor is a process of its own.
    monkeypatch.setattr(sqlite_lock, "turn", lambda _connection: nullcontext())
    connection_created.connect(_introduce)
    try:
        yield
    finally:
        connection_created.disconnect(_introduce)
        connections.close_all()
