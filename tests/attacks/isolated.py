"""Work in a forked process, so that deaths, hangs and changes are noticed and contained."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import logging
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.core.management import CommandError, call_command
from django.db import connections

from jobqueue.clock import SYSTEM

#: The child's ending by itself, and by a traceback.
ENDED, BROKEN = 0, 70


@dataclass(frozen=True)
class Result:
    """How such a process ended: its exit status, negative for a signal; what it told, and all that it wrote."""

    status: int
    told: list[Any]
    output: str
    hung: bool

    @property
    def trouble(self) -> str:
        """Say what is wrong with its end, in a line."""
        if self.hung:
            return f"hangs: {_last_frame(self.output)}"
        if self.status < 0:
            return f"died of {signal.Signals(-self.status).name}"
        return f"raised {last_line(self.output)}" if self.status == BROKEN else ""


def isolated(work: Callable[[Callable[[Any], None]], None], seconds: float) -> Result:
    """Do work, which is given a function to tell things with, in a fork that gets so many seconds."""
    connections.close_all()
    with tempfile.TemporaryDirectory() as folder:
        told, output = Path(folder, "told"), Path(folder, "output")
        told.touch()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of threads that forks do not have
            child = os.fork()
        if not child:
            _be_the_child(work, told, output, seconds)
        status = _wait_for(child, seconds + 5)
        text = output.read_text(errors="replace")
        lines = told.read_text(encoding="utf-8").splitlines()
        hung = status is None or "Timeout (" in text
        return Result(BROKEN if status is None else status, [json.loads(line) for line in lines], text, hung)


def isolated_command(*words: str, seconds: float, prepare: Callable[[], None] = lambda: None) -> Result:
    """Run a management command in such a fork; the last thing that it tells is its exit status."""

    def work(tell: Callable[[Any], None]) -> None:
        prepare()
        try:
            call_command(*words)
            tell(0)
        except SystemExit as end:
            tell(end.code)
        except CommandError as error:
            print(f"CommandError: {error}")  # noqa: T201
            tell(error.returncode)

    return isolated(work, seconds)


def _wait_for(child: int, seconds: float) -> int | None:
    """Return its exit status; kill it where it takes too long, or nobody waits any longer."""
    end = SYSTEM.monotonic() + seconds
    try:
        while SYSTEM.monotonic() < end:
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                child = 0
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.005)
    finally:
        if child:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return None


def _be_the_child(work: Callable[[Callable[[Any], None]], None], told: Path, output: Path, seconds: float) -> None:
    """Never return."""
    status = BROKEN
    try:
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(file, 1)
        os.dup2(file, 2)
        sys.stdout = open(1, "w", errors="backslashreplace", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", errors="backslashreplace", closefd=False)  # noqa: SIM115
        logging.getLogger().handlers.clear()
        logging.getLogger("jobqueue").handlers.clear()
        warnings.resetwarnings()
        warnings.simplefilter("ignore")
        faulthandler.dump_traceback_later(seconds, exit=True, file=file)
        with told.open("a", encoding="utf-8") as lines:

            def tell(what: Any) -> None:
                lines.write(json.dumps(what, default=repr) + "\n")
                lines.flush()

            work(tell)
        status = ENDED
    except BaseException:
        with contextlib.suppress(BaseException):
            traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def last_line(output: str) -> str:
    """Take the last line of a traceback, with the place in the product that it comes from."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    places = [line for line in lines if line.startswith("File ") and "/jobqueue/" in line]
    place = places[-1].replace('File "', "").replace('", line ', ":") if places else ""
    place = place[place.rfind("/jobqueue/") + 1 :] if place else ""
    return f"{lines[-1][:300] if lines else 'nothing'}" + (f" ({place})" if place else "")


def _last_frame(output: str) -> str:
    """Take the innermost of this project's frames of the main thread, which comes last."""
    main = output.rpartition("Thread 0x")[2]
    frames = [line.strip() for line in main.splitlines() if line.strip().startswith("File ")]
    own = [line for line in frames if "/jobqueue/" in line]
    return (own or frames or ["no frame"])[0]
