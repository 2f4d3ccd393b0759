"""Attempts of due jobs in the process of a test, by the code of a worker."""

from __future__ import annotations

import asyncio
import json

from jobqueue.handlers.registry import registry
from jobqueue.records import ClaimRequest
from jobqueue.worker.executor.attempt import Running, perform, perform_async
from jobqueue.worker.protocol import wire


def attempt_all(queue):
    """Run one attempt of each due job and store its outcome. Return the attempts and their outcomes."""
    request = ClaimRequest(limit=50, types=frozenset(registry.names))
    claims = queue.cycle("a worker", (), request).claims
    rows = json.loads(json.dumps([wire.traced_assignment_row(claim) for claim in claims]))
    return [(one, attempt(queue, one)) for one in wire.assignments(rows)]


def attempt(queue, assignment):
    """Run one attempt and store its outcome."""
    running = Running(assignment, lambda *_: None)
    is_async = registry.is_async(assignment.type)
    outcome = asyncio.run(perform_async(running)) if is_async else perform(running)
    if outcome.settlement is not None and not outcome.stored:
        queue.cycle("a worker", [outcome.settlement])
        if running.trace is not None:
            running.trace.settled(0.25)
    return outcome
