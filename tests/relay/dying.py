"""A relay that is repeatedly killed at a given point, with its findings on stdout.

    python -m tests.relay.dying LOCAL SHARED

After each death the shared database loses all its jobs, as if they had run and been purged, before another relay is
sent. So a job that arrives again shows.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import django
from django.db import connections

POINTS = (
    "before Intake.receive",
    "before Outbox.take",
    "after Outbox._begin",  # marked, and not committed
    "after Outbox.take",
    "after Intake._store",  # stored, and not committed
    "after Intake.receive",
    "before Outbox.close",
    "in Outbox.close",  # deleted, and not committed
    "after Outbox.close",
)


def _dies(name: str, when: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def make(verb: Callable[..., Any]) -> Callable[..., Any]:
        def dying(*args: Any, **kwargs: Any) -> Any:
            if when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            if when == "in":
                args[0]._own = lambda: os.kill(os.getpid(), signal.SIGKILL)
            answer = verb(*args, **kwargs)
            if when == "after":
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        return dying

    return make


def _send(point: str = "") -> int:
    """Send a relay, in a process of its own; return how it ended."""
    connections.close_all()
    pid = os.fork()
    if pid == 0:
        _relay(point)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _relay(point: str) -> NoReturn:
    from jobqueue import backends
    from jobqueue.relay.intake import Intake
    from jobqueue.relay.outbox import Outbox
    from jobqueue.relay.runner import RelayRunner
    from jobqueue.worker.options import WorkerOptions

    if point:
        when, name = point.split()
        owner, verb = name.split(".")
        found = {"Intake": Intake, "Outbox": Outbox}[owner]
        setattr(found, verb, _dies(name, when)(getattr(found, verb)))
    status = 70
    try:
        status = RelayRunner(backends.current(), backends.shared(), WorkerOptions(drain=True)).run()
    finally:
        os._exit(status)


def main() -> None:
    """Try each point."""
    django.setup()
    from jobqueue.models import Job
    from tests.app.jobs import send_welcome

    told = {}
    for point in POINTS:
        ids = [send_welcome.enqueue(number).id for number in range(4)]
        death = _send(point)
        before = list(Job.objects.using("shared").order_by("pk").values_list("id", flat=True))
        Job.objects.using("shared").all().delete()
        end = _send()
        after = list(Job.objects.using("shared").order_by("scheduled_at", "pk").values_list("id", flat=True))
        told[point] = {"ids": ids, "death": death, "before": before, "end": end, "after": after}
        told[point]["left"] = Job.objects.count()
        Job.objects.using("shared").all().delete()
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
