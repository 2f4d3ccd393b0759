"""``worker``: the same as ``manage.py runworker``, for projects in which another app has a command of that name."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from jobqueue import backends, conf
from jobqueue.cli import worker_options
from jobqueue.cli.arguments import Subcommand
from jobqueue.cli.console import Console
from jobqueue.observe.logs import JsonFormatter
from jobqueue.worker.options import WorkerOptions
from jobqueue.worker.reload import run_again_on_change
from jobqueue.worker.start import banner, check, fork_zygote, known_queues, supervisor_of, types_of

logger = logging.getLogger("jobqueue")

LINE = "%(asctime)s %(levelname)-7s %(message)s"


def run(given: dict[str, Any], console: Console) -> int:
    """Run a worker until it is told to stop: fork first, for until then nothing may have opened a connection."""
    options = worker_options.read(given)
    if worker_options.is_set(given, "reload"):
        return run_again_on_change()
    _speak(console)
    types_of(options)
    zygote = fork_zygote(options)
    if not worker_options.is_set(given, "skip-checks"):
        check(quietly=not console.verbosity)
    _mention_unknown_queues(options, console)
    supervisor = supervisor_of(options, zygote)
    _introduce(banner(options, supervisor), console)
    return supervisor.run()


def _introduce(lines: Iterable[str], console: Console) -> None:
    if not console.verbosity:
        return
    if _is_json(console):
        logger.info("%s", "; ".join(" ".join(line.split()) for line in lines))
        return
    for line in lines:
        console.out.write(line)
    console.out.flush()


def _is_json(console: Console) -> bool:
    return console.as_json or conf.get("LOG_FORMAT") == "json"


def _mention_unknown_queues(options: WorkerOptions, console: Console) -> None:
    known = known_queues(backends.current())
    for name in sorted((options.queues or set()) - set(known)):
        console.say(f"No handler names the queue {name!r}, and no job is in it. There are: {', '.join(known)}.")


def _speak(console: Console) -> None:
    """Write the log of the queue to stdout: nothing with -v 0, each job with -v 1, each beginning too with -v 2."""
    if not console.verbosity:
        logger.addHandler(logging.NullHandler())
        return
    handler = logging.StreamHandler(console.out)
    handler.setFormatter(JsonFormatter() if _is_json(console) else logging.Formatter(LINE))
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if console.verbosity > 1 else logging.INFO)


WORKER = Subcommand(
    "worker",
    "run the jobs of the queue until told to stop: the same as runworker",
    worker_options.EPILOG,
    worker_options.add,
    run,
)
