"""What a worker may be told: on the command line, or by environment variables of the same names."""

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
#: What Kubernetes sets in each container where a service is called jobqueue-worker.
_OF_KUBERNETES = re.compile(rf"{PREFIX}(SERVICE_.+|PORT|PORT_.+)")

EPILOG = f"""\
Every option may also come from the environment: --max-jobs from {PREFIX}MAX_JOBS, --queue from
{PREFIX}QUEUE (several with commas), --drain from {PREFIX}DRAIN=1. The command line wins.

signals:
  SIGTERM, SIGINT (Ctrl-C)  take nothing more, let what runs end within --shutdown-grace, give back the rest, exit
  a second one              give back what runs at once, and exit

exit codes:
  0  everything that was taken is stored or given back
  1  it could not start (3 under the name "jobqueue worker"), or not store everything before it ended; a sentence
     says which
  2  the command could not be read

examples:
  manage.py runworker                                        all queues, 10 slots in one process
  manage.py runworker --queue mail --queue sms -c 50         two queues, 50 slots
  manage.py runworker --processes 4 --concurrency 2          four processes, for handlers that compute
  manage.py runworker --drain                                run what is due, then end
"""


class Option(NamedTuple):
    """One value that a worker may be told."""

    name: str
    kind: Callable[[str], Any]
    unit: str
    default: Any
    help: str
    short: str = ""

    @property
    def destination(self) -> str:
        """What it is called in the code."""
        return self.name.replace("-", "_")


_DEFAULT = WorkerOptions()
LISTS = (
    ("queue", "Serve only this queue; may be repeated."),
    ("type", "Run only this job type; may be repeated."),
    ("exclude-type", "Do not run this job type; may be repeated."),
)
OPTIONS = (
    Option("processes", int, "N", _DEFAULT.processes, "Processes that run handlers; 0 runs them in this one.", "-p"),
    Option("concurrency", int, "N", _DEFAULT.concurrency, "Jobs that each process runs at a time.", "-c"),
    Option("max-jobs", int, "N", None, "End after N jobs."),
    Option("max-jobs-per-process", int, "N", None, "Replace a process after N jobs."),
    Option("max-rss", int, "MB", None, "Replace a process that takes more memory than this."),
    Option("poll-interval", float, "SECONDS", _DEFAULT.poll_interval, "Look for jobs that nobody announced so often."),
    Option("lease", float, "SECONDS", _DEFAULT.lease, "How long jobs stay with a worker that is not heard of."),
    Option("shutdown-grace", float, "SECONDS", _DEFAULT.shutdown_grace, "What running jobs get to end in."),
    Option("stop-grace", float, "SECONDS", _DEFAULT.stop_grace, "What a job gets to stop in once it is asked to."),
    Option("name", str, "NAME", "", "What to call this worker; its host and process by default."),
)
FLAGS = (
    ("drain", "End when nothing runs, nothing is due, and nothing that was attempted waits for a retry."),
    ("stop-at-eof", "Stop as at SIGTERM when standard input ends; for a program that starts a worker as its child."),
    ("reload", "Start anew when the code changes; for development."),
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
    """Put together what the command line, the environment and the defaults say."""
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
    """Say whether a flag is set."""
    told = _environment(flag).strip().lower()
    if told not in (*_YES, *_NO, ""):
        raise CommandError(f"{_variable(flag)} is {told!r}; write {_YES[0]} for yes or {_NO[0]} for no.")
    return bool(given.get(flag.replace("-", "_"))) or told in _YES


def _refuse_unknown_variables() -> None:
    """Refuse a misspelt variable: the option that it means would keep its default unseen."""
    known = {_variable(name) for name in (*(one.name for one in OPTIONS), *(name for name, _ in (*LISTS, *FLAGS)))}
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name not in known and not _OF_KUBERNETES.fullmatch(name):
            raise CommandError(f"The environment variable {name} is no option of a worker. {did_you_mean(name, known)}")


def _several(given: dict[str, Any], name: str) -> frozenset[str]:
    asked = given.get(name.replace("-", "_"))
    told = _environment(name)
    names = [one.strip() for one in (asked if asked is not None else filter(str.strip, told.split(",")))]
    if "" in names or (told and not names):
        where = f"--{name}" if asked is not None else _variable(name)
        raise CommandError(f"{where} is empty: give a name, or leave it out.")
    return frozenset(names)


def _single(given: dict[str, Any], option: Option) -> Any:
    value = given.get(option.destination)
    if value is not None:
        return value
    text = _environment(option.name)
    try:
        return option.kind(text) if text else option.default
    except ValueError as error:
        raise CommandError(f"{_variable(option.name)} is {text!r}, which is no {option.kind.__name__}.") from error


def _environment(name: str) -> str:
    return os.environ.get(_variable(name), "")


def _variable(name: str) -> str:
    return PREFIX + name.replace("-", "_").upper()
