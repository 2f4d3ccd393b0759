"""The ``--async`` option of management commands, which enqueues the call.

Only a command that was typed is enqueued. The worker runs it with ``call_command``, which skips ``run_from_argv``, so
it can't enqueue itself again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from enum import Enum, auto
from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobqueue import conf
from jobqueue.api import enqueue
from jobqueue.errors import JobQueueError
from jobqueue.handlers.typed_options import JobOptions

VARIABLE = "JOBQUEUE_ASYNC"
_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
_ASK, _REFUSE = "--async", "--no-async"


class Mode(Enum):
    """How a typed command is run."""

    NOW = auto()
    ENQUEUED = auto()
    ENQUEUED_SILENTLY = auto()


class AsyncCommand(BaseCommand):
    """A command that can be enqueued: with ``--async``, if the environment says so, or without a terminal.

    Derive from it instead of BaseCommand, or in addition to another command class, and list the command in
    ``JOBQUEUE["COMMANDS"]``. ``job_options`` are the options of its jobs, such as their queue.
    """

    job_options: ClassVar[JobOptions] = {}
    _typed: list[str] | None = None

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        how = parser.add_mutually_exclusive_group()
        how.add_argument(_ASK, action="store_true", dest="run_async", help="Enqueue this call as a job, and return.")
        how.add_argument(_REFUSE, action="store_true", dest="run_now", help=f"Run it here, even if {VARIABLE} is set.")
        return parser

    def run_from_argv(self, argv: list[str]) -> None:
        self._typed = argv[1:]
        super().run_from_argv(argv)

    def execute(self, *args: Any, **options: Any) -> Any:
        asked, refused = options.pop("run_async", False), options.pop("run_now", False)
        if self._typed is None:
            if asked:
                raise CommandError(f"{_ASK} is for the command line. In code, enqueue the job run_command.")
            return super().execute(*args, **options)
        mode = _mode(self._typed[0], asked=asked, refused=refused)
        if mode is Mode.NOW:
            return super().execute(*args, **options)
        job_id = self._enqueue(self._typed, asked=asked)
        if mode is Mode.ENQUEUED:
            self.stdout.write(f"Enqueued as job {job_id}.")
        return None

    def _enqueue(self, typed: Sequence[str], *, asked: bool) -> str:
        name, *words = typed
        if name not in conf.get("COMMANDS"):
            raise CommandError(
                f"{name} cannot be enqueued: JOBQUEUE['COMMANDS'] does not list it. Add {_REFUSE} to run it."
            )
        payload = {"command": name, "arguments": _without_flag(words, asked=asked)}
        try:
            return enqueue("run_command", payload, **self.job_options).id
        except JobQueueError as error:
            raise CommandError(f"{name} was not enqueued: {error}") from error


def _mode(name: str, *, asked: bool, refused: bool) -> Mode:
    """Return how to run: the options come first, then the environment, then the settings.

    Without a terminal, an allowed command is enqueued unless the settings turn that off.
    """
    if asked or refused:
        return Mode.ENQUEUED if asked else Mode.NOW
    told = os.environ.get(VARIABLE, "").strip().lower()
    if told in _YES:
        return Mode.ENQUEUED_SILENTLY
    if told and told not in _NO:
        raise CommandError(f"{VARIABLE} is {told!r}; write 1 or 0.")
    may_be = not told and conf.get("COMMANDS_UNATTENDED") and name in conf.get("COMMANDS")
    unattended = may_be and not _is_attended()
    return Mode.ENQUEUED_SILENTLY if unattended else Mode.NOW


def _is_attended() -> bool:
    """Return whether a terminal may be attached. With a pipe at one end, as in ``… | less``, the other ends count."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return any(stream is not None and not stream.closed and stream.isatty() for stream in streams)


def _without_flag(words: Sequence[str], *, asked: bool) -> list[str]:
    """Return the words without ``--async``. After ``--``, all words are arguments."""
    end = words.index("--") if "--" in words else len(words)
    if asked and _ASK not in words[:end]:
        raise CommandError(f"Write {_ASK} in full.")
    return [word for word in words[:end] if word != _ASK] + list(words[end:])
