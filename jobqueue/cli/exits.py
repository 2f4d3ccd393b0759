"""The exit codes of every subcommand, in one place."""

from __future__ import annotations

from django.core.management.base import CommandError

from jobqueue.observe.steering import one_line

OK = 0
WARNING = 1
#: Also argparse's own code for a command that cannot be read.
ERROR = 2
FAILED = 3
INTERRUPTED = 130


def failure(sentence: str) -> CommandError:
    """Make the error that ends a subcommand which changed nothing: one sentence on stderr, exit code 3."""
    return CommandError(one_line(sentence), returncode=FAILED)
