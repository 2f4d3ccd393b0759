"""``worker``: ``runworker`` under another name, for projects where another app has a command ``runworker``."""

from __future__ import annotations

import errno
import logging
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import OperationalError

from jobqueue import backends, conf
from jobqueue.cli import worker_options
from jobqueue.cli.arguments import Subcommand
from jobqueue.cli.console import Console
from jobqueue.cli.hints import about_queue
from jobqueue.observe.logs import JsonFormatter, PlainFormatter
from jobqueue.relay.runner import runner_of
from jobqueue.version import __version__
from jobqueue.worker import heartbeat_file, worker_lock
from jobqueue.worker.options import WorkerOptions
from jobqueue.worker.process_metrics import served
from jobqueue.worker.reload import run_again_on_change
from jobqueue.worker.start import (
    banner,
    check,
    fit_to_database,
    fork_zygote,
    refuse_transaction,
    supervisor_of,
    types_of,
)

logger = logging.getLogger("jobqueue")

LINE = "%(asctime)s %(levelname)-7s %(message)s"


def run(given: dict[str, Any], console: Console) -> int:
    """Run a worker until it is told to stop. It forks first, before anything opens a connection."""
    options = worker_options.read(given)
    if worker_options.is_set(given, "reload"):
        return run_again_on_change()
    if conf.get("RELAY_TO") is not None:
        return relay(options, console)
    refuse_transaction()
    with _speaking(console):
        return _run(fit_to_database(options), console, skips_checks=worker_options.is_set(given, "skip-checks"))


def _run(options: WorkerOptions, console: Console, *, skips_checks: bool) -> int:
    types_of(options)
    if options.heartbeat:
        heartbeat_file.prepare(options.heartbeat)
    lock = worker_lock.locked()
    zygote = fork_zygote(options, lock)
    if not skips_checks:
        with _unheard():
            check(quietly=not console.verbosity)
    with _unheard():
        _mention_unknown_queues(options, console)
    supervisor = supervisor_of(options, zygote, lock)
    with _unheard():
        _introduce(banner(options, supervisor), console)
    with served(supervisor):
        status = supervisor.run()
    if options.heartbeat:
        heartbeat_file.remove(options.heartbeat)
    _drop_unsaid()
    return status


def relay(options: WorkerOptions, console: Console) -> int:
    """Relay jobs to the shared database until told to stop, instead of running them."""
    with _speaking(console):
        if options.heartbeat:
            heartbeat_file.prepare(options.heartbeat)
        relay_runner = runner_of(options)
        with _unheard():
            _introduce(
                [f"jobqueue {__version__}, relaying from {conf.get('DATABASE')} to {conf.get('RELAY_TO')}"], console
            )
        status = relay_runner.run()
        if options.heartbeat:
            heartbeat_file.remove(options.heartbeat)
        _drop_unsaid()
        return status


@contextmanager
def _unheard() -> Iterator[None]:
    """Ignore errors of a full disk: jobs are run even if messages can't be written."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
            raise


def _drop_unsaid() -> None:
    """Drop output that can't be written; otherwise the interpreter would replace the worker's exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, stream.fileno())
            os.close(nothing)


def _introduce(lines: Iterable[str], console: Console) -> None:
    if not console.verbosity:
        return
    if _is_json(console):
        logger.info("%s", "; ".join(" ".join(line.split()) for line in lines))
        return
    for line in lines:
        console.out.write(line)
    console.out.flush()


def _is_json(console: Console) -> bool:
    return console.as_json or conf.get("LOG_FORMAT") == "json"


def _mention_unknown_queues(options: WorkerOptions, console: Console) -> None:
    backend = backends.current()
    backend.operator.pauses()  # fails at once if there is no database, or no tables in it
    try:
        hints = [hint for name in sorted(options.queues or ()) for hint in about_queue(name)]
    except OperationalError:
        return  # only hints are lost, and the worker deals with unreadable rows itself
    for hint in hints:
        console.say(hint)


@contextmanager
def _speaking(console: Console) -> Iterator[None]:
    """Write the queue's log to stdout: nothing with -v 0, jobs that end with -v 1, also jobs that begin with -v 2.

    The logger is restored afterwards: a process may run several workers one after another, as tests do.
    """
    handler: logging.Handler = logging.NullHandler()
    level = logger.level
    if console.verbosity:
        handler = logging.StreamHandler(console.out)
        handler.setFormatter(JsonFormatter() if _is_json(console) else PlainFormatter(LINE))
        logger.setLevel(logging.DEBUG if console.verbosity > 1 else logging.INFO)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


WORKER = Subcommand(
    "worker",
    "run jobs until told to stop; the same as runworker",
    worker_options.EPILOG,
    worker_options.add,
    run,
)
