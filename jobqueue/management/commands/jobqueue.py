"""``manage.py jobqueue``: the operator's commands, which are in ``jobqueue.cli.commands``."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandParser
from django.core.management.color import color_style, no_style
from django.db.utils import Error as DatabaseError

from jobqueue.cli.arguments import Help, install
from jobqueue.cli.commands import (
    activity,
    alerts,
    archive,
    bulk,
    check_jobs,
    doctor,
    duplicates,
    durations,
    enqueue,
    failures,
    health,
    jobs,
    lanes,
    limits,
    metrics,
    pause,
    prune,
    reconcile,
    regroup,
    relay,
    schedules,
    status,
    stuck,
    top,
    why,
    worker,
    workers,
)
from jobqueue.cli.console import Console
from jobqueue.cli.exits import INTERRUPTED, OK, failure
from jobqueue.errors import JobQueueError

SUBCOMMANDS = (
    status.STATUS,
    health.HEALTH,
    metrics.METRICS,
    alerts.ALERTS,
    top.TOP,
    failures.FAILURES,
    stuck.STUCK,
    durations.DURATIONS,
    duplicates.DUPLICATES,
    activity.ACTIVITY,
    check_jobs.CHECK_JOBS,
    doctor.DOCTOR,
    jobs.LIST,
    jobs.SHOW,
    why.WHY,
    bulk.RETRY,
    bulk.RETRY_ALL,
    bulk.CANCEL,
    bulk.PURGE,
    pause.PAUSE,
    pause.RESUME,
    lanes.LANES,
    limits.LIMITS,
    workers.WORKERS,
    prune.PRUNE,
    archive.ARCHIVE,
    schedules.SCHEDULES,
    enqueue.ENQUEUE,
    regroup.REGROUP,
    reconcile.RECONCILE,
    relay.RELAY,
    worker.WORKER,
)

EPILOG = """\
exit codes:
  0    done; in "status": all is well
  1    some jobs were refused, or none matched; in "status": a warning; in "why": the job needs a person to act
  2    invalid arguments; in "status": an error
  3    nothing was done; one sentence on stderr says why
  130  interrupted

"manage.py jobqueue VERB --help" shows the options of a verb, with examples.
"""


class Command(BaseCommand):
    """Runs a verb. An error becomes one sentence and an exit code."""

    help = "Inspect and change the job queue: status, list, show, why, retry, cancel, purge, pause, enqueue and more."
    # An operator must be able to act even if a check fails.
    requires_system_checks = []

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        return super().create_parser(prog_name, subcommand, **{"formatter_class": Help, "epilog": EPILOG, **kwargs})

    def add_arguments(self, parser: CommandParser) -> None:
        subparsers = parser.add_subparsers(title="verbs", metavar="VERB", required=True, dest="verb")
        for one in SUBCOMMANDS:
            install(subparsers, one)

    def handle(self, *_: Any, **options: Any) -> None:
        code = self._code(options)
        if code != OK:
            raise SystemExit(code)

    def _code(self, options: dict[str, Any]) -> int:
        try:
            return int(options["run"](options, self._console(options)))
        except (JobQueueError, ImproperlyConfigured) as error:
            raise failure(str(error)) from error
        except DatabaseError as error:
            raise failure(f"The database did not answer: {error}") from error
        except RecursionError as error:
            raise failure("The data is nested too deeply to be shown.") from error
        except KeyboardInterrupt:
            self.stderr.write("\nInterrupted. Changes made so far are kept.")
            return INTERRUPTED
        except BrokenPipeError:
            # The reader has closed the pipe. The rest of the buffer is dropped.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return OK

    def _console(self, options: dict[str, Any]) -> Console:
        forced = bool(options.get("force_color"))
        plain = options.get("no_color") or (os.environ.get("NO_COLOR") and not forced)
        coloured = forced or (self.stdout.isatty() and not plain)
        style = color_style(force_color=forced) if coloured and not plain else no_style()
        if not coloured:
            self.stderr.style_func = None
        return Console(
            self.stdout, self.stderr, style, verbosity=options.get("verbosity", 1), as_json=options["as_json"]
        )
