"""System checks: what is wrong with the settings, and what is risky about the database, each with a hint."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as Caution
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from jobqueue import conf
from jobqueue.backends import BY_VENDOR

#: RETURNING came with 3.35.
OLDEST_SQLITE = (3, 35, 0)
#: Until then, two connections that write and checkpoint at the same moment could corrupt a WAL database; rarely, but
#: a queue's processes are just that.
WAL_RESET_FIXED = (3, 51, 3)


def check_settings(**_: Any) -> list[CheckMessage]:
    """Check the ``JOBQUEUE`` dict and the database it names."""
    try:
        found = [*_unknown_keys(), *_bad_values()]
    except ImproperlyConfigured as error:
        return [Error(str(error), hint="Write JOBQUEUE = {...}.", id="jobqueue.E001")]
    return found or [*_database()]


def _unknown_keys() -> Iterator[CheckMessage]:
    for key in conf.given():
        if key not in conf.SETTINGS:
            nearest = get_close_matches(str(key).upper(), conf.SETTINGS, n=1, cutoff=0.5)
            hint = f"Did you mean {nearest[0]!r}?" if nearest else f"Known keys: {', '.join(sorted(conf.SETTINGS))}."
            yield Error(f"JOBQUEUE has the unknown key {key!r}.", hint=hint, id="jobqueue.E002")


def _bad_values() -> Iterator[CheckMessage]:
    for key, value in conf.mistakes():
        hint = f"The default is {conf.SETTINGS[key].default!r}."
        yield Error(conf.complaint(key, value), hint=hint, id="jobqueue.E003")


def _database() -> Iterator[CheckMessage]:
    alias = conf.get("DATABASE")
    if alias not in connections.settings:
        nearest = get_close_matches(alias, connections.settings, n=1, cutoff=0.3)
        hint = f"Did you mean {nearest[0]!r}?" if nearest else "Add it to DATABASES."
        yield Error(f"JOBQUEUE['DATABASE'] names {alias!r}, which is not in DATABASES.", hint=hint, id="jobqueue.E004")
        return
    vendor = connections[alias].vendor
    if vendor not in BY_VENDOR and conf.get("BACKEND") is None:
        yield Error(
            f"The job queue does not run on {vendor}, the database of {alias!r}.",
            hint=f"Point JOBQUEUE['DATABASE'] to a database that is one of: {', '.join(BY_VENDOR)}.",
            id="jobqueue.E005",
        )
    if vendor == "sqlite":
        yield from _sqlite(alias)
    if vendor == "postgresql" and find_spec("psycopg") is None:
        yield Error(
            "The job queue needs psycopg 3 to talk to Postgres.",
            hint="pip install 'django-jobqueue[postgres]'",
            id="jobqueue.E006",
        )
    yield from _own_database(alias)


def _sqlite(alias: str) -> Iterator[CheckMessage]:
    options = connections.settings[alias].get("OPTIONS", {})
    where = f"DATABASES[{alias!r}]['OPTIONS']"
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        yield Error(
            f"SQLite {sqlite3.sqlite_version} is too old for the job queue.",
            hint="It needs 3.35 or newer.",
            id="jobqueue.E007",
        )
    if str(options.get("transaction_mode", "")).upper() not in ("IMMEDIATE", "EXCLUSIVE"):
        yield Caution(
            f"Transactions of {alias!r} begin deferred: one that reads and then enqueues fails at once "
            "while another process writes, whatever the timeout.",
            hint=f"Set {where}['transaction_mode'] = 'IMMEDIATE'.",
            id="jobqueue.W001",
        )
    if "journal_mode=wal" not in "".join(str(options.get("init_command", "")).lower().split()):
        yield Caution(
            f"{alias!r} is not set to use a write-ahead log: readers and the worker block each other.",
            hint=f"Set {where}['init_command'] = 'PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;'.",
            id="jobqueue.W002",
        )
    elif sqlite3.sqlite_version_info < WAL_RESET_FIXED:
        yield Caution(
            f"SQLite {sqlite3.sqlite_version} has a rare bug: in WAL mode, two connections that write and checkpoint "
            "at the same moment can corrupt the database.",
            hint="Upgrade SQLite to 3.51.3 or newer and keep backups; silence jobqueue.W003 if your build has the fix.",
            id="jobqueue.W003",
        )


def _own_database(alias: str) -> Iterator[CheckMessage]:
    routers = [router if isinstance(router, str) else type(router).__name__ for router in settings.DATABASE_ROUTERS]
    if alias != "default" and not any(path.endswith("JobQueueRouter") for path in routers):
        yield Caution(
            f"The queue is in {alias!r}, but nothing sends its tables there: they would be made in 'default' too.",
            hint="Add 'jobqueue.routers.JobQueueRouter' to DATABASE_ROUTERS.",
            id="jobqueue.W004",
        )
    if alias != "default":
        yield Caution(
            f"The queue is in {alias!r}: a job is no part of a transaction of 'default', and stays if that rolls back.",
            hint="Use jobqueue.enqueue_on_commit() in such transactions, and silence jobqueue.W005.",
            id="jobqueue.W005",
        )
