"""A process that claims jobs under limits, and says on its standard output what ran when. It is meant to be killed.

The ledger is outside the database. A line says "+" after a claim and "-" before its settlement, so that the time
between is never longer than the claim was held.
"""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import timedelta

import django
from django.conf import settings

from jobqueue.clock import SYSTEM

LEASE = timedelta(seconds=1)


def tell(sign: str, job_id: str, key: str | None) -> None:
    """Write a line of the ledger at once, so that a kill loses nothing."""
    os.write(1, f"{sign} {job_id} {SYSTEM.monotonic():.6f} {key or '-'}\n".encode())


def run(given: dict) -> None:
    """Claim and settle until killed."""
    from jobqueue.backends import current
    from jobqueue.policy.leases import settle_overdue
    from jobqueue.policy.settling import completed
    from jobqueue.records import ClaimRequest, Limit, LimitKind, QueueOptions, Scope

    backend = current()
    backend.owns_session = True
    limits = tuple(
        Limit(Scope(one["scope"]), one["name"], LimitKind(one["kind"]), one["number"], one["per"], one["key"])
        for one in given["limits"]
    )
    options = {"default": QueueOptions(fair="tenant")}
    fair = {"queue_options": options, "entries": ("default",)} if given["fair"] else {}
    owner = f"host:{os.getpid()}"
    held, swept = [], 0.0
    while True:
        request = ClaimRequest(
            limit=given["slots"] - len(held), types=frozenset({"resize"}), lease=LEASE, limits=limits, **fair
        )
        done = held if given["hold"] == 0 else held[: len(held) // 2 + 1]
        for claim in done:
            tell("-", claim.id, claim.tenant)
        cycle = backend.cycle(owner, [completed(one, "null") for one in done], request if request.limit else None)
        held = [*held[len(done) :], *cycle.claims]
        for claim in cycle.claims:
            tell("+", claim.id, claim.tenant)
        wait = 1.0 if cycle.next_due is None else cycle.next_due.total_seconds()
        time.sleep(min(given["hold"] if cycle.claims or held else wait, 0.05))
        if SYSTEM.monotonic() - swept > 0.5:
            swept = SYSTEM.monotonic()
            backend.sweep(settle_overdue)


if __name__ == "__main__":
    settings.configure(**json.loads(os.environ["COMMAND_SETTINGS"]))
    django.setup()
    run(json.loads(sys.argv[1]))
