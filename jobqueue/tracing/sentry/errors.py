"""The errors of jobs that were given up, as Sentry gets them: without payloads and other values."""

from __future__ import annotations

import logging
from typing import Any

import sentry_sdk
from sentry_sdk.scope import should_send_default_pii
from sentry_sdk.utils import event_from_exception

from jobqueue.policy.redaction import redact_text
from jobqueue.records import Assignment, EventKind, Settlement

_MECHANISM = {"type": "jobqueue", "handled": False}
_LEFT_OUT = "(the message quotes values)"
_LONGEST_MESSAGE = 4_000
#: The scopes whose log records are looked at already. A process can start several workers.
_adopting: list[Any] = []


def describe(scope: Any, assignment: Assignment) -> None:
    """Add the job to the events of a scope."""
    facts = {"type": assignment.type, "id": assignment.id, "queue": assignment.queue, "attempt": assignment.attempt}
    for name, value in facts.items():
        scope.set_tag(f"job.{name}", str(value))
    scope.set_context("job", {**facts, "max_retries": assignment.max_retries, "worker": assignment.owner})


def report(error: BaseException, settlement: Settlement) -> None:
    """Report the error of a job that was given up.

    A payload is in the local variables of most frames, so these are sent only with ``send_default_pii``. Messages are
    redacted as in the job's history.
    """
    options = sentry_sdk.get_client().options
    sends_values = options.get("include_local_variables") and should_send_default_pii()
    event, hint = event_from_exception(
        error, client_options={**options, "include_local_variables": bool(sends_values)}, mechanism=_MECHANISM
    )
    values = event["exception"]["values"]
    for one in values:
        one["value"] = _redacted(one)
    if values and settlement.failure is not None:
        values[-1]["value"] = settlement.failure.message
    event["extra"] = {"reason": settlement.end_reason}
    sentry_sdk.capture_event(event, hint=hint)


def _redacted(value: Any) -> str:
    is_of_pydantic = value.get("type") == "ValidationError" and str(value.get("module")).startswith("pydantic")
    return _LEFT_OUT if is_of_pydantic else redact_text(str(value.get("value") or "")[:_LONGEST_MESSAGE])


def adopt_log_records() -> None:
    """Let the log records of dead letters be events of their job, unless their executor has reported the error.

    Sentry makes an event of each record at ERROR. The records of dead letters come from the supervisor, and all of them
    have the same template, so Sentry would group them as one issue.
    """
    scope = sentry_sdk.get_global_scope()
    if not any(one is scope for one in _adopting):
        _adopting.append(scope)
        scope.add_event_processor(_adopt)


def _adopt(event: Any, hint: Any) -> Any:
    record = hint.get("log_record")
    if not isinstance(record, logging.LogRecord) or getattr(record, "event", "") != EventKind.DEAD_LETTERED:
        return event
    if getattr(record, "error_class", ""):
        return None
    found = vars(record)
    event["fingerprint"] = ["jobqueue", str(found.get("job_type")), str(found.get("reason"))]
    names = {"job_type": "type", "job_id": "id", "queue": "queue", "attempt": "attempt"}
    facts = {name: str(found[key]) for key, name in names.items() if key in found}
    event["tags"] = {**(event.get("tags") or {}), **{f"job.{name}": value for name, value in facts.items()}}
    return event
