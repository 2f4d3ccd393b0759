"""A producer that enqueues one job at a time at a steady pace, until its standard input ends."""

from __future__ import annotations

import json
import select
import sys
from random import Random

from benchmarks.databases import Place
from benchmarks.faults.enqueueing import enqueue
from benchmarks.faults.ledger import Ledger
from benchmarks.faults.place import APPS
from jobqueue.clock import SYSTEM


def main() -> None:
    """Enqueue what the first line of standard input requests."""
    asked = json.loads(sys.stdin.readline())
    Place(**asked["place"]).configure(APPS)
    ledger, rng = Ledger.of_this_process(), Random(asked["seed"])  # noqa: S311 - dice, no secrets
    kinds, weights = list(asked["mix"]), list(asked["mix"].values())
    print("up", flush=True)
    next_at = SYSTEM.monotonic()
    for _ in range(asked["count"]):
        if _told_to_end(next_at - SYSTEM.monotonic()):
            break
        enqueue(ledger, rng.choices(kinds, weights)[0], rng)
        next_at = max(next_at + 1 / asked["rate"], SYSTEM.monotonic() - 1)


def _told_to_end(seconds: float) -> bool:
    """Wait for the time of the next job, or the end of standard input."""
    return bool(select.select([sys.stdin], [], [], max(0.0, seconds))[0])


if __name__ == "__main__":
    main()
