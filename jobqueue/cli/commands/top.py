"""``top``: a live view of queues, workers and running jobs in a terminal."""

from __future__ import annotations

import argparse
import signal
import threading
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

from django.db import DatabaseError

from jobqueue.backends import current
from jobqueue.cli.arguments import Subcommand
from jobqueue.cli.commands.status import EXIT_CODES
from jobqueue.cli.console import Console
from jobqueue.cli.exits import OK, failure
from jobqueue.cli.tables import cell
from jobqueue.cli.top.snapshot import QUEUES, RUNNING, WORKERS, Row, Snapshot, snapshot
from jobqueue.errors import JobQueueError
from jobqueue.observe.health import Level

#: ``rich`` is an extra, and takes long to import, so only this command loads the module that uses it.
_SCREEN = "jobqueue.cli.top.screen"


def _interval(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 3_600:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0.1 to 3,600")
    return seconds


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--interval", type=_interval, default=2.0, metavar="SECONDS", help="How often to look again. Default: 2."
    )
    parser.add_argument("--once", action="store_true", help="Write the view once and end, as in a pipe.")


def _run(options: dict[str, Any], console: Console) -> int:
    if console.as_json:
        seen = snapshot(current())
        console.document(_document(seen))
        return EXIT_CODES[seen.level]
    screen = _screen(console)
    if options["once"] or not console.out.isatty():
        seen = snapshot(current())
        screen.once(seen)
        return EXIT_CODES[seen.level]
    _watch(screen, options["interval"])
    return OK


def _screen(console: Console) -> Any:
    try:
        module = import_module(_SCREEN)
    except ImportError as error:
        raise failure("jobqueue top needs the package rich: pip install 'django-jobqueue[top]'.") from error
    coloured = console.style.ERROR("x") != "x"
    return module.Screen(console.out._out, width=None, coloured=coloured)


def _watch(screen: Any, interval: float) -> None:
    """Draw until Ctrl-C or SIGTERM. Both restore the terminal."""
    end = threading.Event()

    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        with suppress(KeyboardInterrupt):
            screen.live(_read, lambda: end.wait(interval))
    finally:
        signal.signal(signal.SIGTERM, before)


def _read() -> Snapshot:
    """Read a snapshot. If the database doesn't answer, say so instead of showing old figures."""
    try:
        return snapshot(current())
    except (DatabaseError, JobQueueError) as error:
        return Snapshot(Level.ERROR, cell(f"The database did not answer: {error}"), "")


def _document(seen: Snapshot) -> dict[str, Any]:
    def named(heads: tuple[str, ...], rows: tuple[tuple[Level, Row], ...]) -> list[dict[str, str]]:
        return [dict(zip(heads, row, strict=True)) for _level, row in rows]

    return {
        "level": seen.level.word,
        "now": seen.at,
        "summary": seen.summary,
        "findings": [{"level": level.word, "text": text} for level, text in seen.findings],
        "queues": named(QUEUES, seen.queues),
        "workers": named(WORKERS, seen.workers),
        "running": named(RUNNING, seen.running),
    }


TOP = Subcommand(
    "top",
    "watch queues, workers and running jobs in a terminal",
    """\
The view needs the package rich: pip install 'django-jobqueue[top]'. Ctrl-C ends it. The first line sums up the queue,
and problems follow as in "jobqueue status". Of the running jobs, those that run longest come first. In a pipe, or with
--once, the view is written once, and the exit code is that of status. Programs should use "jobqueue status --json".

examples:
  manage.py jobqueue top
  manage.py jobqueue top --interval 0.5
  manage.py jobqueue top --once | head

exit codes:
  0  ended by Ctrl-C; in a pipe or with --once: ok
  1  in a pipe or with --once: a warning
  2  in a pipe or with --once: an error
  3  rich is missing, or the database doesn't answer
""",
    _add,
    _run,
)
