"""Spans in both modes of Sentry's SDK: transactions, and streamed spans (``trace_lifecycle="stream"``)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import sentry_sdk

_ORIGIN = "auto.queue.jobqueue"
_PUBLISH, _TASK, _PROCESS = "queue.publish", "queue.task.jobqueue", "queue.process"


def is_streaming() -> bool:
    """Return whether spans are sent one by one. Then the functions for transactions do nothing, and the reverse."""
    options = sentry_sdk.get_client().options
    lifecycle = options.get("trace_lifecycle") or (options.get("_experiments") or {}).get("trace_lifecycle")
    return lifecycle == "stream" and hasattr(sentry_sdk, "traces")


def begin_publish(stack: ExitStack, name: str) -> Spans:
    """Begin the span of a call that stores jobs, inside the current span."""
    if not is_streaming():
        return Spans(stack.enter_context(sentry_sdk.start_span(op=_PUBLISH, name=name, origin=_ORIGIN)))
    if sentry_sdk.traces.get_current_span() is None:
        return Spans()  # it would be a trace of its own
    return Spans(stack.enter_context(sentry_sdk.traces.start_span(name, _attributes(_PUBLISH))))


def begin_process(stack: ExitStack, name: str, headers: Mapping[str, str], sampling: Mapping[str, object]) -> Spans:
    """Begin a transaction that continues the trace of ``headers``, and the span of an attempt inside it."""
    given = {"job": dict(sampling)}
    if is_streaming():
        sentry_sdk.traces.continue_trace(dict(headers))
        sentry_sdk.Scope.set_custom_sampling_context(given)
        attributes = {**_attributes(_TASK), "sentry.segment.name.source": "task"}
        whole: Any = stack.enter_context(sentry_sdk.traces.start_span(name, attributes, parent_span=None))
        return Spans(whole, stack.enter_context(sentry_sdk.traces.start_span(name, _attributes(_PROCESS))))
    made = sentry_sdk.continue_trace(dict(headers), op=_TASK, name=name, source="task", origin=_ORIGIN)
    whole = stack.enter_context(sentry_sdk.start_transaction(made, custom_sampling_context=given))
    return Spans(whole, stack.enter_context(sentry_sdk.start_span(op=_PROCESS, name=name, origin=_ORIGIN)))


def _attributes(op: str) -> dict[str, Any]:
    return {"sentry.op": op, "sentry.origin": _ORIGIN}


class Spans:
    """The open spans of one call or attempt. The last one has the attributes of the job."""

    def __init__(self, *spans: Any) -> None:
        self._spans = spans

    def set(self, attributes: Mapping[str, str | int | float | None]) -> None:
        """Set attributes, without those that are ``None``."""
        for span in self._spans[-1:]:
            put = span.set_attribute if hasattr(span, "set_attribute") else span.set_data
            for name, value in attributes.items():
                if value is not None:
                    put(name, value)

    def end_as(self, *, failed: bool) -> None:
        """Set whether the attempt or call failed."""
        for span in self._spans:
            if hasattr(span, "set_attribute"):
                span.status = "error" if failed else "ok"
            else:
                span.set_status("internal_error" if failed else "ok")
