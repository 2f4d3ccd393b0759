"""A process that enqueues into a lane in transactions that commit late, or one that claims from it until it is killed.

Each line of the standard output has what happened, the job's id and the moment. A producer says "b" before a commit and
"c" after it; a worker says "+" after a claim and "-" before its settlement.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from datetime import timedelta

import django
from django.conf import settings

from jobqueue.clock import SYSTEM


def tell(what: str, job_id: str) -> None:
    """Write a line at once, so that a kill loses nothing."""
    os.write(1, f"{what} {job_id} {SYSTEM.monotonic():.6f}\n".encode())


def produce(count: int) -> None:
    """Enqueue jobs, each in a transaction that stays open for a while. Some are rolled back."""
    from django.db import transaction

    from jobqueue.backends import current
    from jobqueue.testing.contract.lanes import in_lane

    backend = current()
    for _ in range(count):
        draft = in_lane(parallel=random.random() < 0.7)
        with transaction.atomic(using=backend.alias):
            backend.enqueue([draft])
            time.sleep(random.uniform(0, 0.02))
            if random.random() < 0.15:
                transaction.set_rollback(True, using=backend.alias)
                continue
            tell("b", draft.id)
        tell("c", draft.id)
        time.sleep(random.uniform(0, 0.01))


def work() -> None:
    """Claim and settle until killed."""
    from jobqueue.backends import current
    from jobqueue.policy.leases import settle_overdue
    from jobqueue.policy.settling import completed
    from jobqueue.testing.contract.harness import request
    from jobqueue.testing.contract.lanes import ORDERED

    backend = current()
    backend.owns_session = True
    owner, held, swept = f"host:{os.getpid()}", [], 0.0
    while True:
        asked = request(4 - len(held), lease=timedelta(seconds=0.7), entries=tuple(ORDERED), queue_options=ORDERED)
        done = held[: len(held) // 2 + 1]
        for claim in done:
            tell("-", claim.id)
        cycle = backend.cycle(owner, [completed(one, "null") for one in done], asked if asked.limit else None)
        held = [*held[len(done) :], *cycle.claims]
        for claim in cycle.claims:
            tell("+", claim.id)
        time.sleep(0.003 if held else 0.01)
        if SYSTEM.monotonic() - swept > 0.3:
            swept = SYSTEM.monotonic()
            backend.sweep(settle_overdue)


if __name__ == "__main__":
    settings.configure(**json.loads(os.environ["COMMAND_SETTINGS"]))
    django.setup()
    produce(int(sys.argv[2])) if sys.argv[1] == "produce" else work()
