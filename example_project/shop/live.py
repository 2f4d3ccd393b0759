"""The progress of a run: one changing line on a terminal, occasional lines elsewhere."""

from __future__ import annotations

import os
import shutil

from django.core.management.base import OutputWrapper

from jobqueue import JobStatus
from jobqueue.clock import SYSTEM

_PLAIN_EVERY = 2.0
_BAR = 12


class Live:
    """Writes progress to a stream. ``note`` writes a line above the moving one."""

    def __init__(self, out: OutputWrapper) -> None:
        self._out = out
        self._moves = out.isatty() and os.environ.get("TERM") != "dumb"
        self._shown_at = float("-inf")

    def show(self, statuses: dict[JobStatus, int], extra: str = "", *, last: bool = False) -> None:
        """Show the numbers, if it is time."""
        now = SYSTEM.monotonic()
        if self._moves:
            line = f"{_bar(statuses)} {_numbers(statuses)}{extra}"
            self._write(f"\r\x1b[2K{line[: shutil.get_terminal_size().columns - 1]}" + "\n" * last)
        elif last or now - self._shown_at >= _PLAIN_EVERY:
            self._shown_at = now
            self._write(f"   {_numbers(statuses)}{extra}\n")

    def note(self, line: str) -> None:
        """Write a permanent line."""
        self._write(f"\r\x1b[2K{line}\n" if self._moves else f"{line}\n")

    def _write(self, text: str) -> None:
        self._out.write(text, ending="")
        self._out.flush()


def _bar(statuses: dict[JobStatus, int]) -> str:
    full = _BAR * _ended(statuses) // max(1, sum(statuses.values()))
    return f"   [{'#' * full}{'.' * (_BAR - full)}]"


def _ended(statuses: dict[JobStatus, int]) -> int:
    return sum(statuses.values()) - statuses[JobStatus.QUEUED] - statuses[JobStatus.IN_PROGRESS]


def _numbers(statuses: dict[JobStatus, int]) -> str:
    return (
        f"{_ended(statuses)} of {sum(statuses.values())} ended: {statuses[JobStatus.COMPLETED]} completed, "
        f"{statuses[JobStatus.DEAD_LETTER]} dead letters; {statuses[JobStatus.IN_PROGRESS]} run, "
        f"{statuses[JobStatus.QUEUED]} wait"
    )
