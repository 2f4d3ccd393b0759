"""The heartbeat file of a worker, by which a probe tells whether the worker is alive and ready.

The file's age tells whether the worker is alive: its loop writes the time every few seconds. The first word of the
content tells whether it is ready: ``ready``, or ``not ready`` with the reason. A file that is missing or old belongs to
a worker that has ended, was killed or hangs.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from jobqueue.clock import SYSTEM
from jobqueue.errors import InvalidOption

logger = logging.getLogger("jobqueue")

#: Seconds from one beat to the next.
EVERY = 5.0


class HeartbeatFile:
    """Keeps a heartbeat file young. ``obstacle`` returns why the worker isn't ready, or an empty string."""

    def __init__(self, path: str, obstacle: Callable[[], str]) -> None:
        self._path = Path(path)
        self._obstacle = obstacle
        self._told: str | None = None
        self._failed = False
        self.due = 0.0

    def act(self) -> None:
        """Write what has changed, at once. If nothing has, only set the file's time, and only if it is due."""
        obstacle, now = self._obstacle(), SYSTEM.monotonic()
        if obstacle == self._told and now < self.due:
            return
        self.due = now + EVERY
        try:
            self._beat(obstacle)
        except OSError as error:
            self._told = None
            if not self._failed:
                logger.error("The heartbeat file %s can't be written, so probes will fail: %s", self._path, error)
            self._failed = True
        else:
            self._failed = False

    def _beat(self, obstacle: str) -> None:
        if obstacle == self._told:
            with suppress(FileNotFoundError):
                os.utime(self._path)
                return
        _write(self._path, f"not ready: {obstacle}\n" if obstacle else "ready\n")
        self._told = obstacle


def kept(path: str, obstacle: Callable[[], str]) -> tuple[HeartbeatFile, ...]:
    """Return the heartbeat file that a worker keeps, or nothing without a path."""
    return (HeartbeatFile(path, obstacle),) if path else ()


def prepare(path: str) -> None:
    """Remove the file of a worker that was killed, and check that a new one can be written. Raise InvalidOption."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise InvalidOption("--heartbeat", f"must be the path of a file; {path!r} is something else")
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        raise InvalidOption("--heartbeat", f"cannot be {path!r}: {error}") from error
    try:
        _write(Path(path), "not ready: starting\n")
        Path(path).unlink()
    except OSError as error:
        raise InvalidOption("--heartbeat", f"cannot be written: {error}") from error


def remove(path: str) -> None:
    """Remove the file at the end of its worker."""
    with suppress(OSError):
        Path(path).unlink()


def _write(path: Path, text: str) -> None:
    """Write a file whole: a probe reads the old content or the new one."""
    new = path.with_name(f"{path.name}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
    new.replace(path)
