"""The process that enqueues at a steady pace, and says when each of its jobs was committed."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from django.db import transaction

from benchmarks.databases import Place
from benchmarks.jobs import sign
from jobqueue.clock import SYSTEM
from jobqueue.handler import Handler


def committed(handler: Handler[..., Any, ...], **payload: Any) -> tuple[str, float]:
    """Enqueue a job in a transaction; return its id and the moment of the commit, before anybody is woken."""
    moments: list[float] = []
    with transaction.atomic():
        transaction.on_commit(lambda: moments.append(SYSTEM.monotonic()))
        receipt = handler.enqueue(**payload)
    return str(receipt.id), moments[0]


def main() -> None:
    """Read from standard input how fast and for how long to enqueue; write ids and moments when that is over."""
    asked = json.loads(sys.stdin.readline())
    Place(**asked["place"]).configure()
    start = SYSTEM.monotonic()
    found: list[tuple[str, float]] = []
    while (now := SYSTEM.monotonic()) < start + asked["seconds"]:
        time.sleep(max(0.0, start + len(found) / asked["rate"] - now))
        found.append(committed(sign, path=asked["path"]))
    for job_id, moment in found:
        print(job_id, repr(moment))


if __name__ == "__main__":
    main()
