"""The exit codes of the subcommands."""

from __future__ import annotations

from django.core.management.base import CommandError

from jobqueue.observe.terminal_safe import one_line

OK = 0
WARNING = 1
#: Also argparse's exit code for invalid arguments.
ERROR = 2
FAILED = 3
INTERRUPTED = 130


def failure(sentence: str) -> CommandError:
    """Make the error for a subcommand that did nothing: one sentence on stderr, exit code 3."""
    return CommandError(one_line(sentence), returncode=FAILED)
