"""The processes that enqueue into a full queue, each at its share of a pace, and print what became of their jobs."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections import Counter
from importlib import import_module
from typing import Any

from django.db import connections, transaction

from benchmarks.databases import Place
from jobqueue import QueueFull
from jobqueue.clock import SYSTEM

#: Of five jobs, one is urgent, and one is enqueued inside a transaction.
_TURNS = 5


def main() -> None:
    """Fork the producers, and wait for them."""
    asked = json.loads(sys.argv[1])
    Place(**asked["place"]).configure()
    import_module("benchmarks.jobs")
    logging.getLogger("jobqueue").setLevel(logging.ERROR)
    children = []
    for place in range(asked["producers"]):
        pid = os.fork()
        if not pid:
            _produce(place, asked)
            os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)


def _produce(place: int, asked: dict[str, Any]) -> None:
    every, counts, longest = asked["producers"] / asked["pace"], Counter[str](), 0.0
    start = SYSTEM.monotonic() + every * place / asked["producers"]
    turn = 0
    while (now := SYSTEM.monotonic()) < start + asked["seconds"]:
        time.sleep(max(0.0, start + turn * every - now))
        longest = max(longest, _enqueue(turn + place, asked["work"], counts))
        turn = max(turn + 1, int((SYSTEM.monotonic() - start) / every))  # a producer that waited doesn't catch up
    names = ("stored", "shed", "refused", "urgent_stored", "urgent_shed")
    told = {name: counts[name] for name in names} | {"longest_held": longest}
    os.write(1, f"{json.dumps(told)}\n".encode())
    connections.close_all()


def _enqueue(turn: int, work: float, counts: Counter[str]) -> float:
    """Enqueue one job. Return how long a transaction was open for it."""
    nap = import_module("benchmarks.jobs").nap
    is_urgent, in_transaction = turn % _TURNS == 0, turn % _TURNS == 1
    handler, began = nap.using(priority=1 if is_urgent else 8), SYSTEM.monotonic()
    try:
        if in_transaction:
            with transaction.atomic():
                receipt = handler.enqueue(seconds=work)
        else:
            receipt = handler.enqueue(seconds=work)
    except QueueFull:
        counts["refused"] += 1
    else:
        outcome = "shed" if receipt.is_shed else "stored"
        counts[outcome] += 1
        counts[f"urgent_{outcome}"] += is_urgent
    return SYSTEM.monotonic() - began if in_transaction else 0.0


if __name__ == "__main__":
    main()
