"""What Sentry gets: ``queue.publish`` and ``queue.process`` for its Queues page, errors, and check-ins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import timedelta
from types import MappingProxyType

import sentry_sdk

from jobqueue.clock import SYSTEM
from jobqueue.records import Assignment, Draft, DraftReceipt, Settlement
from jobqueue.records.schedule import ScheduleRecord
from jobqueue.tracing.attempt import is_failed, is_given_up, outcome_of
from jobqueue.tracing.sentry import check_ins, errors
from jobqueue.tracing.sentry.spans import begin_process, begin_publish

_SYSTEM = "messaging.system"
_ID = "messaging.message.id"
_QUEUE = "messaging.destination.name"
_SIZE = "messaging.message.body.size"
_LATENCY = "messaging.message.receive.latency"
_RETRIES = "messaging.message.retry.count"
_BATCH = "messaging.batch.message_count"


class Sentry:
    """The tracer of Sentry. It uses the client that the application has initialised."""

    def is_active(self) -> bool:
        return sentry_sdk.get_client().is_active()

    def prepare(self) -> None:
        errors.adopt_log_records()

    def publish(self, drafts: Sequence[Draft]) -> PublishSpan:
        return PublishSpan(drafts)

    def process(self, assignment: Assignment, headers: Mapping[str, str]) -> ProcessSpan:
        try:
            return ProcessSpan(assignment, headers)
        except Exception:
            if not headers:
                raise
            return ProcessSpan(assignment, {})  # the SDK fails for some headers, such as an infinite sample rate

    def of_slot(self, schedule: ScheduleRecord, longest: timedelta) -> Mapping[str, object]:
        monitor = check_ins.monitor_of(schedule, longest)
        return {} if monitor is None else {check_ins.KEY: monitor}

    def flush(self, seconds: float) -> None:
        sentry_sdk.flush(timeout=seconds)


class PublishSpan:
    """The span of a call that stores jobs."""

    def __init__(self, drafts: Sequence[Draft]) -> None:
        self._stack = ExitStack()
        queues, types = ({getattr(one, name) for one in drafts} for name in ("queue", "type"))
        self._span = begin_publish(self._stack, drafts[0].type if len(types) == 1 else f"{len(types)} types")
        self._span.set(
            {
                _SYSTEM: "jobqueue",
                _ID: drafts[0].id if len(drafts) == 1 else None,
                _QUEUE: drafts[0].queue if len(queues) == 1 else None,
                _SIZE: sum(size_of(one.payload) for one in drafts),
                _BATCH: len(drafts) if len(drafts) > 1 else None,
            }
        )
        found = {"sentry-trace": sentry_sdk.get_traceparent(), "baggage": sentry_sdk.get_baggage()}
        self.headers = {name: value for name, value in found.items() if value}

    def end(self, receipts: Sequence[DraftReceipt], error: BaseException | None) -> None:
        with self._stack:
            if len(receipts) == 1:  # the job that has the key, if it wasn't stored
                self._span.set({_ID: receipts[0].id})
            self._span.end_as(failed=error is not None)


class ProcessSpan:
    """The span of an attempt, in a scope of its own, with the error if the job is given up."""

    is_current = False
    link: Mapping[str, str] = MappingProxyType({})

    def __init__(self, assignment: Assignment, headers: Mapping[str, str]) -> None:
        self._job = assignment
        self._began = SYSTEM.monotonic()
        self._stack = ExitStack()
        with ExitStack() as undone:
            undone.callback(self._stack.close)
            scope = self._stack.enter_context(sentry_sdk.isolation_scope())
            scope.clear_breadcrumbs()
            errors.describe(scope, assignment)
            sampling = {"type": assignment.type, "queue": assignment.queue, "attempt": assignment.attempt}
            self._spans = begin_process(self._stack, assignment.type, headers, sampling)
            self._spans.set(
                {
                    _SYSTEM: "jobqueue",
                    _ID: assignment.id,
                    _QUEUE: assignment.queue,
                    _SIZE: size_of(assignment.payload),
                    _LATENCY: _latency(assignment),
                    _RETRIES: assignment.attempt - 1,
                }
            )
            self._monitor = check_ins.monitor_in(assignment.context)
            if self._monitor is not None:
                check_ins.send(self._monitor, assignment.id)
            undone.pop_all()

    def end(self, settlement: Settlement | None, error: BaseException | None) -> None:
        with self._stack:
            self._spans.set({"jobqueue.outcome": str(outcome_of(settlement))})
            self._spans.end_as(failed=is_failed(settlement, error))
            if settlement is not None and error is not None and is_given_up(settlement):
                errors.report(error, settlement)
            if self._monitor is not None:
                lasted = timedelta(seconds=SYSTEM.monotonic() - self._began)
                first = lasted if self._job.attempt == 1 else None
                check_ins.send(self._monitor, self._job.id, settlement, first)

    def settled(self, seconds: float) -> None:
        pass


def size_of(payload: str) -> int:
    """Return the bytes of a payload."""
    return len(payload.encode("utf-8", "surrogatepass"))


def _latency(assignment: Assignment) -> float | None:
    """Return for how many milliseconds the job has been due, if the supervisor said when it was."""
    if assignment.due_at is None:
        return None
    return max(0.0, (SYSTEM.now().timestamp() - assignment.due_at) * 1_000)


TRACER = Sentry()
