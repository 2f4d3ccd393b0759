"""The spans of OpenTelemetry: ``create`` or ``send`` for jobs that are enqueued, ``process`` and ``settle``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import lru_cache

from opentelemetry import context as otel
from opentelemetry import metrics, propagate, trace
from opentelemetry.trace import Link, ProxyTracerProvider, Span, SpanKind, Status, StatusCode, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from jobqueue.clock import SYSTEM
from jobqueue.records import Assignment, Draft, DraftReceipt, Failure, Settlement
from jobqueue.records.schedule import ScheduleRecord
from jobqueue.tracing.attempt import is_failed, outcome_of
from jobqueue.tracing.headers import LAST_ATTEMPT
from jobqueue.tracing.opentelemetry import names
from jobqueue.tracing.opentelemetry.instruments import instruments
from jobqueue.version import __version__

_NANOSECONDS = 1_000_000_000
#: Links are stored in this form, whichever propagators the application uses.
_W3C, _TRACEPARENT = TraceContextTextMapPropagator(), "traceparent"


class OpenTelemetry:
    """The tracer of OpenTelemetry. It uses the providers that the application has set."""

    def is_active(self) -> bool:
        traces = not isinstance(trace.get_tracer_provider(), ProxyTracerProvider)
        return traces or "Proxy" not in type(metrics.get_meter_provider()).__name__

    def prepare(self) -> None:
        pass

    def publish(self, drafts: Sequence[Draft]) -> PublicationSpan:
        return PublicationSpan(drafts)

    def process(self, assignment: Assignment, headers: Mapping[str, str]) -> ProcessSpan:
        return ProcessSpan(assignment, headers)

    def of_slot(self, schedule: ScheduleRecord, longest: timedelta) -> Mapping[str, object]:
        return {}

    def flush(self, seconds: float) -> None:
        for provider in (trace.get_tracer_provider(), metrics.get_meter_provider()):
            # The API has no such method, but the SDK's providers have.
            if (flush := getattr(provider, "force_flush", None)) is not None:
                flush(int(seconds * 1_000))


class PublicationSpan:
    """The span of a call that stores jobs. The jobs continue it."""

    def __init__(self, drafts: Sequence[Draft]) -> None:
        self._drafts = drafts
        self._began = SYSTEM.monotonic()
        queues, types = {one.queue for one in drafts}, {one.type for one in drafts}
        self._queue = drafts[0].queue if len(queues) == 1 else None
        self._operation: names.Operation = "create" if len(drafts) == 1 else "send"
        attributes = names.of_operation(self._operation, self._queue)
        if len(types) == 1:
            attributes[names.JOB_TYPE] = drafts[0].type
        if len(drafts) == 1:
            attributes[names.MESSAGE_ID] = drafts[0].id
            attributes[names.BODY_SIZE] = len(drafts[0].payload.encode("utf-8", "replace"))
        else:
            attributes[names.BATCH_SIZE] = len(drafts)
        name = self._operation if self._queue is None else f"{self._operation} {self._queue}"
        self._span = _tracer().start_span(name, kind=SpanKind.PRODUCER, attributes=attributes)
        self._token = otel.attach(trace.set_span_in_context(self._span))
        self.headers: dict[str, str] = {}
        propagate.inject(self.headers)

    def end(self, receipts: Sequence[DraftReceipt], error: BaseException | None) -> None:
        otel.detach(self._token)
        if len(receipts) == 1:  # the job that has the key, if it wasn't stored
            self._span.set_attribute(names.MESSAGE_ID, str(receipts[0].id))
            self._span.set_attribute(names.ADMISSION, receipts[0].outcome.value)
        kind = type(error).__qualname__ if error is not None else ""
        if kind:
            self._span.set_attribute(names.ERROR_TYPE, kind)
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end()
        attributes = names.of_operation(self._operation, self._queue)
        if kind:
            attributes[names.ERROR_TYPE] = kind
        instruments().operation.record(SYSTEM.monotonic() - self._began, attributes)
        sent = sum(one.created for one in receipts) if not kind else len(self._drafts)
        if sent:
            instruments().sent.add(sent, attributes)


class ProcessSpan:
    """The span of an attempt, whose parent is the span that enqueued the job, and the span of its settlement."""

    is_current = True

    def __init__(self, assignment: Assignment, headers: Mapping[str, str]) -> None:
        self._assignment = assignment
        self._began = SYSTEM.monotonic()
        attributes = {
            **names.of_operation("process", assignment.queue),
            names.MESSAGE_ID: assignment.id,
            names.BODY_SIZE: len(assignment.payload.encode("utf-8", "replace")),
            names.CLIENT: assignment.owner,
            names.JOB_TYPE: assignment.type,
            names.ATTEMPT: assignment.attempt,
            names.MOST_ATTEMPTS: assignment.max_retries,
        }
        parent = propagate.extract(headers, context=otel.Context())
        self._span = _tracer().start_span(
            f"process {assignment.queue}",
            context=parent,
            kind=SpanKind.CONSUMER,
            attributes=attributes,
            links=_links(headers),
        )
        carrier: dict[str, str] = {}
        _W3C.inject(carrier, trace.set_span_in_context(self._span))
        self.link = {LAST_ATTEMPT: carrier[_TRACEPARENT]} if _TRACEPARENT in carrier else {}
        self._context = trace.set_span_in_context(self._span, parent)
        self._token = otel.attach(self._context)
        instruments().consumed.add(1, names.of_operation("process", assignment.queue))

    def end(self, settlement: Settlement | None, error: BaseException | None) -> None:
        otel.detach(self._token)
        attributes = names.of_operation("process", self._assignment.queue)
        self._span.set_attribute(names.OUTCOME, str(outcome_of(settlement)))
        failure = None if settlement is None else settlement.failure
        if failure is not None and is_failed(settlement, error):
            attributes[names.ERROR_TYPE] = failure.error_class or str(failure.ending)
            _record(self._span, failure)
        self._span.end()
        instruments().process.record(SYSTEM.monotonic() - self._began, attributes)

    def settled(self, seconds: float) -> None:
        attributes = names.of_operation("settle", self._assignment.queue)
        ended = int(SYSTEM.now().timestamp() * _NANOSECONDS)
        span = _tracer().start_span(
            f"settle {self._assignment.queue}",
            context=self._context,
            kind=SpanKind.CLIENT,
            attributes={**attributes, names.MESSAGE_ID: self._assignment.id, names.JOB_TYPE: self._assignment.type},
            start_time=ended - int(seconds * _NANOSECONDS),
        )
        span.end(ended)
        instruments().operation.record(seconds, attributes)


def _links(headers: Mapping[str, str]) -> list[Link]:
    """Return a link to the span of the last attempt, if that was traced."""
    found = _W3C.extract({_TRACEPARENT: headers.get(LAST_ATTEMPT, "")}, otel.Context())
    last = trace.get_current_span(found).get_span_context()
    return [Link(last)] if last.is_valid else []


def _record(span: Span, failure: Failure) -> None:
    """Record an error as the job's history does: redacted, of limited length, and without values."""
    kind = failure.error_class or str(failure.ending)
    span.set_attribute(names.ERROR_TYPE, kind)
    span.set_status(Status(StatusCode.ERROR, failure.message))
    told = {
        "exception.type": kind,
        "exception.message": failure.message,
        "exception.stacktrace": failure.traceback,
    }
    span.add_event("exception", {name: text for name, text in told.items() if text})


def _tracer() -> trace.Tracer:
    return _of(trace.get_tracer_provider())


@lru_cache(maxsize=4)
def _of(provider: TracerProvider) -> trace.Tracer:
    return provider.get_tracer("jobqueue", __version__)


TRACER = OpenTelemetry()
