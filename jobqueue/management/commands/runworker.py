"""``manage.py runworker``: reads what a worker is told, says what it will do, and runs it until it is told to stop."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobqueue import backends, conf
from jobqueue.cli.arguments import Help
from jobqueue.errors import JobQueueError
from jobqueue.observe.logs import JsonFormatter
from jobqueue.worker.options import WorkerOptions
from jobqueue.worker.start import banner, can_fork, fork_zygote, known_queues, supervisor_of, types_of

LINE = "%(asctime)s %(levelname)-7s %(message)s"
PREFIX = "JOBQUEUE_WORKER_"

EPILOG = f"""\
Every option may also come from the environment: --max-jobs from {PREFIX}MAX_JOBS, --queue from
{PREFIX}QUEUE (several with commas), --drain from {PREFIX}DRAIN=1. The command line wins.

signals:
  SIGTERM, SIGINT (Ctrl-C)  take nothing more, let what runs end within --shutdown-grace, give back the rest, exit
  a second one              give back what runs at once, and exit

exit codes:
  0  everything that was taken is stored or given back
  1  it could not start, or could not store everything before it ended; a sentence says which

examples:
  manage.py runworker                                        all queues, 10 slots in one process
  manage.py runworker --queue mail --queue sms -c 50         two queues, 50 slots
  manage.py runworker --processes 4 --concurrency 2          four processes, for handlers that compute
  manage.py runworker --drain                                run what is due, then end
"""


class Option(NamedTuple):
    """One number that a worker may be told."""

    name: str
    kind: Callable[[str], Any]
    unit: str
    default: Any
    help: str
    short: str = ""


_DEFAULT = WorkerOptions()
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


class Command(BaseCommand):
    """Forks first: until then nothing may have opened a connection, so the checks come after."""

    help = "Run the jobs of the queue, under leases, until told to stop."
    requires_system_checks = []

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        return super().create_parser(prog_name, subcommand, **{"formatter_class": Help, "epilog": EPILOG, **kwargs})

    def add_arguments(self, parser: CommandParser) -> None:
        for name, what in (
            ("queue", "Serve only this queue; may be repeated."),
            ("type", "Run only this job type; may be repeated."),
            ("exclude-type", "Do not run this job type; may be repeated."),
        ):
            default = list(filter(None, _environment(name, "").split(",")))
            parser.add_argument(f"--{name}", action="append", metavar="NAME", default=None, help=what)
            parser.set_defaults(**{f"{name.replace('-', '_')}_default": default})
        for option in OPTIONS:
            shown = "" if option.default in (None, "") else f" Default: {option.default:g}."
            parser.add_argument(
                *filter(None, (option.short, f"--{option.name}")),
                type=option.kind,
                metavar=option.unit,
                default=_read(option),
                help=option.help + shown,
            )
        parser.add_argument("--skip-checks", action="store_true", help="Skip the system checks.")
        parser.add_argument(
            "--drain",
            action="store_true",
            default=_environment("drain", "").lower() in ("1", "true", "yes"),
            help="End when nothing runs, nothing is due, and nothing that was attempted waits for a retry.",
        )

    def handle(self, *_: Any, **given: Any) -> None:
        try:
            status = self._work(given)
        except (JobQueueError, ImproperlyConfigured) as error:
            raise CommandError(str(error)) from error
        if status:
            sys.exit(status)

    def _work(self, given: dict[str, Any]) -> int:
        options = _options(given)
        self._speak(given["verbosity"])
        types_of(options)
        zygote = fork_zygote(options)
        if not given["skip_checks"]:
            self.check()
        backend = backends.current()
        known = known_queues(backend)
        for name in sorted((options.queues or set()) - set(known)):
            self.stderr.write(
                self.style.WARNING(
                    f"No handler names the queue {name!r}, and no job is in it yet. There are: {', '.join(known)}."
                )
            )
        supervisor = supervisor_of(options, zygote)
        if given["verbosity"]:
            for line in banner(options, supervisor):
                self.stdout.write(line)
            self.stdout.flush()
        return supervisor.run()

    def _speak(self, verbosity: int) -> None:
        """Write the log of the queue to stdout: nothing with -v 0, each job with -v 1, each start too with -v 2."""
        logger = logging.getLogger("jobqueue")
        if not verbosity:
            logger.addHandler(logging.NullHandler())
            return
        handler = logging.StreamHandler(self.stdout)
        handler.setFormatter(JsonFormatter() if conf.get("LOG_FORMAT") == "json" else logging.Formatter(LINE))
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG if verbosity > 1 else logging.INFO)


def _environment(name: str, default: str) -> str:
    return os.environ.get(PREFIX + name.replace("-", "_").upper(), default)


def _read(option: Option) -> Any:
    """Read an option's default from the environment."""
    text = _environment(option.name, "")
    if not text:
        return option.default
    try:
        return option.kind(text)
    except ValueError as error:
        raise CommandError(f"{PREFIX}{option.name.replace('-', '_').upper()} is {text!r}: {error}") from error


def _options(given: dict[str, Any]) -> WorkerOptions:
    several = {name: frozenset(given[name] or given[f"{name}_default"]) for name in ("queue", "type", "exclude_type")}
    single = {option.name.replace("-", "_"): given[option.name.replace("-", "_")] for option in OPTIONS}
    if not can_fork():
        single["processes"] = 0
    return WorkerOptions(
        queues=several["queue"] or None,
        types=several["type"] or None,
        excluded_types=several["exclude_type"],
        drain=given["drain"],
        **single,
    )
