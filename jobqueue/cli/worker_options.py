"""The options of a worker, from the command line or from environment variables."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from django.core.management.base import CommandError

from jobqueue.policy.nearest import did_you_mean
from jobqueue.worker.options import WorkerOptions
from jobqueue.worker.start import can_fork

PREFIX = "JOBQUEUE_WORKER_"
_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
#: Variables that Kubernetes sets in each container if a service is named jobqueue-worker.
_OF_KUBERNETES = re.compile(rf"{PREFIX}(SERVICE_.+|PORT|PORT_.+)")

EPILOG = f"""\
Each option can also be set in the environment: --max-jobs as {PREFIX}MAX_JOBS, --queue as
{PREFIX}QUEUE (several separated by commas), --drain as {PREFIX}DRAIN=1. The command line wins.

signals:
  SIGTERM, SIGINT (Ctrl-C)  take no more jobs, give running jobs --shutdown-grace to end, release the rest, exit
  a second one              release the running jobs at once, and exit

exit codes:
  0  all outcomes were stored, and unfinished jobs were released
  1  the worker could not start (as "jobqueue worker": 3), or could not store all outcomes; a message says which
  2  invalid arguments

examples:
  manage.py runworker                                        all queues, 10 slots in one process
  manage.py runworker --queue mail --queue sms -c 50         two queues, 50 slots
  manage.py runworker --processes 4 --concurrency 2          four processes, for CPU-bound handlers
  manage.py runworker --drain                                run the due jobs, then end
"""


class Option(NamedTuple):
    """One option of a worker that takes a value."""

    name: str
    kind: Callable[[str], Any]
    unit: str
    default: Any
    help: str
    short: str = ""

    @property
    def destination(self) -> str:
        """The name of the field of ``WorkerOptions``."""
        return self.name.replace("-", "_")


def _port(text: str) -> int | None:
    """Read a port. Kubernetes sets such a variable to an address if a service is named jobqueue-worker-metrics."""
    return None if text.startswith("tcp://") else int(text)


_DEFAULT = WorkerOptions()
LISTS = (
    ("queue", "Serve only this queue; may be repeated."),
    ("type", "Run only this job type; may be repeated."),
    ("exclude-type", "Do not run this job type; may be repeated."),
)
OPTIONS = (
    Option(
        "processes",
        int,
        "N",
        _DEFAULT.processes,
        "Processes that run handlers; 0 runs them in the worker's own process.",
        "-p",
    ),
    Option("concurrency", int, "N", _DEFAULT.concurrency, "How many jobs each process runs at a time.", "-c"),
    Option("max-jobs", int, "N", None, "End after N jobs."),
    Option("max-jobs-per-process", int, "N", None, "Replace a process after N jobs."),
    Option("max-rss", int, "MB", None, "Replace a process that uses more memory than this."),
    Option("poll-interval", float, "SECONDS", _DEFAULT.poll_interval, "How often to poll for jobs."),
    Option(
        "lease",
        float,
        "SECONDS",
        _DEFAULT.lease,
        "How long a job stays claimed after its worker stops renewing its lease.",
    ),
    Option(
        "shutdown-grace",
        float,
        "SECONDS",
        _DEFAULT.shutdown_grace,
        "How long running jobs may take to end at a shutdown.",
    ),
    Option(
        "stop-grace", float, "SECONDS", _DEFAULT.stop_grace, "How long a job may take to stop after it was asked to."
    ),
    Option("metrics-port", _port, "PORT", None, "Serve metrics of this process to Prometheus."),
    Option("metrics-host", str, "ADDRESS", "", "The address of --metrics-port. Default: 127.0.0.1."),
    Option("name", str, "NAME", "", "The worker's name. Default: its host and process."),
    Option("heartbeat", str, "PATH", "", "Keep this file young while the worker is alive, for probes."),
)
FLAGS = (
    ("drain", "End once no job is running or due, and no attempted job waits for a retry."),
    ("stop-at-eof", "Stop as with SIGTERM when stdin is closed; for programs that start a worker as a child process."),
    ("reload", "Restart when the code changes; for development."),
    ("skip-checks", "Skip the system checks."),
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add a worker's options to a command."""
    for name, what in LISTS:
        parser.add_argument(f"--{name}", action="append", metavar="NAME", help=what)
    for option in OPTIONS:
        shown = "" if option.default in (None, "") else f" Default: {option.default:g}."
        names = filter(None, (option.short, f"--{option.name}"))
        parser.add_argument(*names, type=option.kind, metavar=option.unit, help=option.help + shown)
    for name, what in FLAGS:
        parser.add_argument(f"--{name}", action="store_true", help=what)


def read(given: dict[str, Any]) -> WorkerOptions:
    """Combine the command line, the environment and the defaults."""
    _refuse_unknown_variables()
    flags = {name: is_set(given, name) for name, _ in FLAGS}
    lists = {name: _several(given, name) for name, _ in LISTS}
    single = {option.destination: _single(given, option) for option in OPTIONS}
    if not can_fork():
        single["processes"] = 0
    return WorkerOptions(
        queues=lists["queue"] or None,
        types=lists["type"] or None,
        excluded_types=lists["exclude-type"],
        drain=flags["drain"],
        stop_at_eof=flags["stop-at-eof"],
        **single,
    )


def is_set(given: dict[str, Any], flag: str) -> bool:
    """Return whether a flag is set."""
    told = _environment(flag).strip().lower()
    if told not in (*_YES, *_NO, ""):
        raise CommandError(f"{_variable(flag)} is {told!r}; write {_YES[0]} for yes or {_NO[0]} for no.")
    return bool(given.get(flag.replace("-", "_"))) or told in _YES


def _refuse_unknown_variables() -> None:
    """Reject a misspelt variable; otherwise its option would silently keep the default."""
    known = {_variable(name) for name in (*(one.name for one in OPTIONS), *(name for name, _ in (*LISTS, *FLAGS)))}
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name not in known and not _OF_KUBERNETES.fullmatch(name):
            raise CommandError(
                f"The environment variable {name} does not name an option of a worker. {did_you_mean(name, known)}"
            )


def _several(given: dict[str, Any], name: str) -> frozenset[str]:
    asked = given.get(name.replace("-", "_"))
    told = _environment(name)
    names = [one.strip() for one in (asked if asked is not None else filter(str.strip, told.split(",")))]
    if "" in names or (told and not names):
        where = f"--{name}" if asked is not None else _variable(name)
        raise CommandError(f"{where} is empty: give a name or leave it out.")
    return frozenset(names)


def _single(given: dict[str, Any], option: Option) -> Any:
    value = given.get(option.destination)
    if value is not None:
        return value
    text = _environment(option.name)
    try:
        return option.kind(text) if text else option.default
    except ValueError as error:
        raise CommandError(
            f"{_variable(option.name)} is {text!r}, which is not a valid {option.kind.__name__}."
        ) from error


def _environment(name: str) -> str:
    return os.environ.get(_variable(name), "")


def _variable(name: str) -> str:
    return PREFIX + name.replace("-", "_").upper()
