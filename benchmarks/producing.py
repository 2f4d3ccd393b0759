"""The process that enqueues at a steady pace, and prints when each job was committed."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from django.db import transaction

from benchmarks.databases import Place
from benchmarks.jobs import sign
from jobqueue.api.handler import Handler
from jobqueue.clock import SYSTEM


def committed(handler: Handler[..., Any, ...], **payload: Any) -> tuple[str, float]:
    """Enqueue a job in a transaction. Return its id and the moment of the commit, before the wake-up."""
    moments: list[float] = []
    with transaction.atomic():
        transaction.on_commit(lambda: moments.append(SYSTEM.monotonic()))
        receipt = handler.enqueue(**payload)
    return str(receipt.id), moments[0]


def main() -> None:
    """Read the rate and duration from standard input, enqueue, and write ids and moments at the end."""
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
