"""The start of a worker: fork first, then ask the database, then print what it will do."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import StringIO

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand
from django.db import connections

from jobqueue import backends, conf
from jobqueue.backends import sqlite_memory
from jobqueue.backends.base import Backend
from jobqueue.backends.sql import SqlBackend
from jobqueue.errors import InvalidOption, JobQueueError, UnknownJobType
from jobqueue.handlers.registry import registry
from jobqueue.policy.leases import LONGEST_LEASE
from jobqueue.version import __version__
from jobqueue.worker.executor.executor import Executor
from jobqueue.worker.options import Plan, WorkerOptions
from jobqueue.worker.relaying import Relaying
from jobqueue.worker.supervisor.supervisor import Supervisor
from jobqueue.worker.zygote.zygote import Zygote

logger = logging.getLogger("jobqueue")

_MANY_SLOTS = 50


def can_fork() -> bool:
    """Whether this system has what executors of their own need."""
    return hasattr(os, "fork")


def plan_of(options: WorkerOptions) -> Plan:
    """Say how many outcomes an executor sends at once.

    Where a transaction is cheap, half of its slots: the supervisor stores them while the other half runs. Elsewhere, as
    many as there are: a cycle has a price of its own.
    """
    slots, alias = options.concurrency, conf.get("DATABASE")
    if connections[alias].vendor != "sqlite":
        return Plan(slots, slots)
    given = str(connections.settings[alias].get("OPTIONS", {}).get("init_command", "")).lower()
    is_relaxed = any(f"synchronous={level}" in "".join(given.split()) for level in ("normal", "off", "1", "0"))
    return Plan(slots, max(1, slots // 2) if is_relaxed or slots > _MANY_SLOTS else slots)


def refuse_transaction() -> None:
    """Refuse to work inside a transaction of the caller's: a worker's other connections do not see what is in it."""
    if backends.current().in_atomic():
        raise JobQueueError(
            f"A worker cannot run inside a transaction of {conf.get('DATABASE')!r}: what was enqueued in it is not "
            "committed, so that no other connection sees it, and handlers have connections of their own. Start it "
            "outside of atomic(). In a test, use TransactionTestCase instead of TestCase, or with pytest-django "
            "@pytest.mark.django_db(transaction=True)."
        )


def fit_to_database(options: WorkerOptions) -> WorkerOptions:
    """Have one slot where a database is in memory; executors of their own could not see it at all.

    The slot keeps the worker from renewing a lease. Where the queue is in memory, nobody else could take the job.
    """
    alias = conf.get("DATABASE")
    is_own = isinstance(backends.current(), SqlBackend) and sqlite_memory.is_in_memory(alias)
    if options.processes and is_own:
        raise InvalidOption(
            "--processes",
            f"must be 0: the database {alias!r} is in the memory of this process, and no other process can see it",
        )
    lease = LONGEST_LEASE.total_seconds() if is_own else options.lease
    return replace(options, concurrency=1, lease=lease) if sqlite_memory.is_shared() else options


def fork_zygote(options: WorkerOptions) -> Zygote | None:
    """Start the process that forks executors; call it before anything else has begun."""
    if options.processes == 0:
        return None
    backends.current()  # before the fork, for what it loads is then there once
    connections.close_all()  # some application may have asked its database as it came up
    if threading.active_count() > 1:
        logger.warning(
            "Something in this project starts threads as it comes up, so executors cannot be forked from here: "
            "each sets Django up for itself, and takes more memory."
        )
        return Zygote.start_bare(plan_of(options))
    return Zygote.start(plan_of(options))


def check(*, quietly: bool) -> None:
    """Run the system checks, and write what they warn of to stderr; raise SystemCheckError for what is wrong."""
    BaseCommand(stderr=StringIO() if quietly else None).check(
        display_num_errors=False, databases=[conf.get("DATABASE")]
    )


def types_of(options: WorkerOptions) -> frozenset[str]:
    """Say which types a worker takes: all that this release knows, or those it was told, with their aliases."""
    asked = options.types or frozenset(kind.name for kind in registry)
    for name in (*asked, *options.excluded_types):
        if name not in registry.names:
            raise UnknownJobType(name, registry.names)
    excluded = {registry.get(name).name for name in options.excluded_types}
    wanted = {registry.get(name).name for name in asked} - excluded
    return frozenset(name for name in registry.names if registry.get(name).name in wanted)


def supervisor_of(options: WorkerOptions, zygote: Zygote | None) -> Supervisor:
    """Make the supervisor of a worker."""
    backend = backends.current()
    return Supervisor(backend, conf.get("DATABASE"), options, types_of(options), plan_of(options), zygote, in_thread)


def in_thread(channel: socket.socket, plan: Plan) -> Callable[[], None]:
    """Make an executor where there are no processes of their own, and return what its thread runs."""
    return Executor(channel, plan).serve


def relaying_of(options: WorkerOptions) -> Relaying:
    """Make what runs in a worker's place where ``RELAY_TO`` names a database: it relays jobs there, and runs none."""
    outbox, further = backends.current(), backends.shared()
    if not (isinstance(outbox, SqlBackend) and isinstance(further, SqlBackend)):
        raise ImproperlyConfigured(
            "Nothing can be relayed: JOBQUEUE['RELAY_TO'] has to name a database, and JOBQUEUE['BACKEND'] to be None."
        )
    return Relaying(outbox, further, options)


def known_queues(backend: Backend) -> list[str]:
    """List the queues that a handler names, in which jobs are, or that are paused."""
    waiting = {one.queue for one in backend.stats()}
    paused = {one.name for one in backend.pauses() if one.scope == "queue"}
    return sorted({kind.options.queue for kind in registry} | waiting | paused)


def banner(options: WorkerOptions, supervisor: Supervisor) -> Iterator[str]:
    """Say what a worker does, line by line."""
    alias = conf.get("DATABASE")
    settings = connections[alias].settings_dict
    types = sorted(types_of(options))
    where = f"{options.processes} executor" + ("s" if options.processes != 1 else "")
    yield f"jobqueue {__version__}, worker {supervisor.context.events.worker}"
    yield f"  database  {alias} ({connections[alias].vendor}, {settings['NAME']})"
    yield f"  queues    {', '.join(sorted(options.queues)) if options.queues else 'all'}"
    yield f"  types     {', '.join(types) or 'none: no handler is registered'}"
    yield f"  slots     {options.concurrency} in {where if options.processes else 'this process'}"
    yield f"  limits    lease {options.lease:g} s, {options.shutdown_grace:g} s to end in"
