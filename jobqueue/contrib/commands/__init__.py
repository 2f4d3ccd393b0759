"""Management commands in the background: the job ``run_command``, and ``--async`` for commands that support it."""

from __future__ import annotations

from jobqueue.contrib.commands.command import AsyncCommand

__all__ = ["AsyncCommand"]
