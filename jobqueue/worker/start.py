"""The start of a worker: the fork of the zygote, the checks, and the parts that make it up."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import StringIO

from django.core.management.base import BaseCommand
from django.db import connections

from jobqueue import backends, conf
from jobqueue.backends.base import Backend
from jobqueue.backends.sql.backend import SqlBackend
from jobqueue.backends.sqlite import json_functions
from jobqueue.backends.sqlite import memory as sqlite_memory
from jobqueue.errors import InvalidOption, JobQueueError, UnknownJobType
from jobqueue.handlers.registry import registry
from jobqueue.policy.leases import LONGEST_LEASE
from jobqueue.version import __version__
from jobqueue.worker.executor.executor import Executor
from jobqueue.worker.options import Plan, WorkerOptions
from jobqueue.worker.supervisor.supervisor import Supervisor
from jobqueue.worker.worker_lock import WorkerLock
from jobqueue.worker.zygote.zygote import Zygote

logger = logging.getLogger("jobqueue")

_MANY_SLOTS = 50


def can_fork() -> bool:
    """Return whether this system can fork, which executor processes need."""
    return hasattr(os, "fork")


def plan_of(options: WorkerOptions) -> Plan:
    """Return the plan of an executor.

    If transactions are cheap, a message holds half of its slots' outcomes: the supervisor stores them while the other
    half runs. Otherwise it holds those of all slots, because each cycle has a cost.
    """
    slots, alias = options.concurrency, conf.get("DATABASE")
    if connections[alias].vendor != "sqlite":
        return Plan(slots, slots)
    given = str(connections.settings[alias].get("OPTIONS", {}).get("init_command", "")).lower()
    is_relaxed = any(f"synchronous={level}" in "".join(given.split()) for level in ("normal", "off", "1", "0"))
    return Plan(slots, max(1, slots // 2) if is_relaxed or slots > _MANY_SLOTS else slots)


def refuse_transaction() -> None:
    """Refuse to work inside a transaction of the caller: the worker's other connections can't see its changes."""
    if backends.current().in_atomic():
        raise JobQueueError(
            f"A worker cannot run inside a transaction of {conf.get('DATABASE')!r}: jobs enqueued in it are not "
            "committed, and handlers use other connections, which cannot see them. Start the worker outside of "
            "atomic(). In a test, use jobqueue.testing.drain() instead, or let the test commit, with "
            "TransactionTestCase or @pytest.mark.django_db(transaction=True)."
        )


def fit_to_database(options: WorkerOptions) -> WorkerOptions:
    """Return the options with one slot if a database is in memory. Executor processes couldn't see it at all.

    The slot keeps the worker from renewing leases. If the queue itself is in memory, no other worker could take the
    job, so the lease is as long as possible.
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


def fork_zygote(options: WorkerOptions, lock: WorkerLock | None) -> Zygote | None:
    """Start the process that forks executors. Called before anything else is started.

    It and all executors hold the worker's lock too.
    """
    if options.processes == 0:
        return None
    backends.current()  # before the fork, so that loaded modules are shared
    connections.close_all()  # an application may have queried its database in ready()
    if threading.active_count() > 1:
        logger.warning(
            "Something in this project starts threads on import, so executors cannot be forked from this process: "
            "each one sets up Django itself and takes more memory."
        )
        return Zygote.start_bare(plan_of(options), lock.descriptor if lock else None)
    return Zygote.start(plan_of(options))


def check(*, quietly: bool) -> None:
    """Run the system checks, and write warnings to stderr. Raise SystemCheckError for errors."""
    json_functions.probe(conf.get("DATABASE"))
    BaseCommand(stderr=StringIO() if quietly else None).check(
        display_num_errors=False, databases=[conf.get("DATABASE")]
    )


def types_of(options: WorkerOptions) -> frozenset[str]:
    """Return the types that a worker takes, with their aliases: the given ones, by default all that have a handler."""
    asked = options.types or frozenset(kind.name for kind in registry)
    for name in (*asked, *options.excluded_types):
        if name not in registry.names:
            raise UnknownJobType(name, registry.names)
    excluded = {registry.get(name).name for name in options.excluded_types}
    wanted = {registry.get(name).name for name in asked} - excluded
    return frozenset(name for name in registry.names if registry.get(name).name in wanted)


def supervisor_of(options: WorkerOptions, zygote: Zygote | None, lock: WorkerLock | None = None) -> Supervisor:
    """Return the supervisor of a worker."""
    backend, alias, types, plan = backends.current(), conf.get("DATABASE"), types_of(options), plan_of(options)
    return Supervisor(backend, alias, options, types, plan, zygote, in_thread, lock)


def in_thread(channel: socket.socket, plan: Plan) -> Callable[[], None]:
    """Make an executor for ``--processes 0``, and return the function that its thread runs."""
    return Executor(channel, plan).serve


def known_queues(backend: Backend) -> list[str]:
    """Return the queues that handlers name, that contain jobs, or that are paused."""
    waiting = {one.queue for one in backend.jobs.stats()}
    paused = {one.name for one in backend.operator.pauses() if one.scope == "queue"}
    return sorted({kind.options.queue for kind in registry} | waiting | paused)


def banner(options: WorkerOptions, supervisor: Supervisor) -> Iterator[str]:
    """Yield the lines that a worker prints at its start."""
    alias = conf.get("DATABASE")
    settings = connections[alias].settings_dict
    types = sorted(types_of(options))
    where = f"{options.processes} executor" + ("s" if options.processes != 1 else "")
    yield f"jobqueue {__version__}, worker {supervisor.context.events.worker}"
    yield f"  database  {alias} ({connections[alias].vendor}, {settings['NAME']})"
    yield f"  queues    {', '.join(sorted(options.queues)) if options.queues else 'all'}"
    yield f"  types     {', '.join(types) or 'none: no handler is registered'}"
    yield f"  slots     {options.concurrency} in {where if options.processes else 'this process'}"
    yield f"  limits    lease {options.lease:g} s, shutdown grace {options.shutdown_grace:g} s"
