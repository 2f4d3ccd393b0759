"""``manage.py runworker``: a worker that runs until it is told to stop."""

from __future__ import annotations

import sys
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from jobqueue.cli import worker_options
from jobqueue.cli.arguments import Help
from jobqueue.cli.commands.worker import run
from jobqueue.cli.console import Console
from jobqueue.errors import JobQueueError
from jobqueue.observe.terminal_safe import one_line


class Command(BaseCommand):
    """Runs a worker. System checks run after the fork, which must come first."""

    help = "Run jobs until told to stop."
    requires_system_checks = []

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        known = {"formatter_class": Help, "epilog": worker_options.EPILOG}
        return super().create_parser(prog_name, subcommand, **{**known, **kwargs})

    def add_arguments(self, parser: CommandParser) -> None:
        worker_options.add(parser)
        parser.add_argument(
            "--json", action="store_true", dest="as_json", help="Write the log as JSON, one object per line."
        )

    def handle(self, *_: Any, **given: Any) -> None:
        console = Console(
            self.stdout, self.stderr, self.style, verbosity=given["verbosity"], as_json=bool(given.get("as_json"))
        )
        try:
            status = run(given, console)
        except (JobQueueError, ImproperlyConfigured) as error:
            raise CommandError(one_line(str(error))) from error
        except DatabaseError as error:
            raise CommandError(one_line(f"The database did not answer: {error}")) from error
        if status:
            sys.exit(status)
