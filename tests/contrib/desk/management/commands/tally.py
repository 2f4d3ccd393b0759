"""A command that prints its arguments, and fails on request."""

from __future__ import annotations

import sys

from django.core.management.base import CommandError

from jobqueue.contrib.commands import AsyncCommand


class Command(AsyncCommand):
    """Tallies."""

    def add_arguments(self, parser):
        parser.add_argument("names", nargs="*")
        parser.add_argument("--times", type=int, default=1)
        parser.add_argument("--fail", default="")
        parser.add_argument("--exit", type=int, default=0)

    def handle(self, *names, **options):
        for _ in range(options["times"]):
            self.stdout.write(self.style.SUCCESS(" ".join(options["names"])))
        if options["fail"]:
            raise CommandError(options["fail"], returncode=4)
        if options["exit"]:
            sys.exit(options["exit"])
