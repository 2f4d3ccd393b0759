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
    return committed_together(handler, [payload])[0]


def committed_together(handler: Handler[..., Any, ...], payloads: list[dict[str, Any]]) -> list[tuple[str, float]]:
    """Enqueue jobs in one transaction. Return their ids, each with the moment of the commit."""
    moments: list[float] = []
    with transaction.atomic():
        transaction.on_commit(lambda: moments.append(SYSTEM.monotonic()))
        receipts = [handler.enqueue(**payloads[0])] if len(payloads) == 1 else handler.enqueue_many(payloads)
    return [(str(receipt.id), moments[0]) for receipt in receipts]


def main() -> None:
    """Read the rate and duration from standard input, enqueue, and write ids and moments at the end.

    ``together`` is how many jobs a transaction has. With one each, this process does about 1,000 a second.
    """
    asked = json.loads(sys.stdin.readline())
    Place(**asked["place"]).configure()
    start = SYSTEM.monotonic()
    found: list[tuple[str, float]] = []
    while (now := SYSTEM.monotonic()) < start + asked["seconds"]:
        time.sleep(max(0.0, start + len(found) / asked["rate"] - now))
        found += committed_together(sign, [{"path": asked["path"]}] * asked.get("together", 1))
    for job_id, moment in found:
        print(job_id, repr(moment))


if __name__ == "__main__":
    main()
