"""One attempt of a handler with a real context, without a job in the database."""

from __future__ import annotations

from typing import Any

from jobqueue import backends
from jobqueue.api.functions import find
from jobqueue.api.handler import Handler
from jobqueue.handlers.registry import registry
from jobqueue.records import Assignment, Draft
from jobqueue.testing.attempts import AttemptReport, WatchedRun, settlement_of
from jobqueue.worker.executor.attempt import Outcome


def perform(handler: str | Handler[..., Any, ...], /, *args: Any, **payload: Any) -> AttemptReport:
    """Run one attempt of a handler, and return what it came to. Nothing is stored but what the handler writes.

    Takes the arguments of ``enqueue``, and validates them like ``enqueue``. The handler gets its payload as from a
    worker, back from JSON, and a context whose progress and follow-up jobs are in the report.
    """
    running = RunWithoutJob(assignment_of(find(handler).draft(*args, **payload)))
    return running.report_of(settlement_of(running, running.outcome()))


class RunWithoutJob(WatchedRun):
    """An attempt whose outcome isn't stored, so that an atomic handler's transaction ends without it."""

    __slots__ = ()

    def run(self) -> Outcome:
        kind = registry.get(self.assignment.type)
        if not kind.atomic:
            return super().run()
        self.kind = kind
        with backends.current().atomic():
            self.is_at_work = True
            return Outcome(self.completed(kind, kind.call(self.assignment, self)))


def assignment_of(draft: Draft) -> Assignment:
    """Return the first attempt of a job that is not stored."""
    return Assignment(
        id=draft.id,
        type=draft.type,
        queue=draft.queue,
        payload=draft.payload,
        payload_version=draft.payload_version,
        attempt=1,
        max_retries=draft.max_retries,
        fence=1,
        owner="a test",
        tenant=draft.tenant,
        workspace=draft.workspace,
        parent_id=None,
        context=draft.context,
    )
