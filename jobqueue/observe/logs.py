"""The log: one line per event, with details as fields, never with a payload."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from jobqueue.clock import to_text
from jobqueue.observe.terminal_safe import harmless, one_line, spelled_out
from jobqueue.policy.redaction import redact_text
from jobqueue.records import Draft, Event, EventKind

logger = logging.getLogger("jobqueue")

_LEVELS = {
    EventKind.STARTED: logging.DEBUG,
    EventKind.PROGRESSED: logging.DEBUG,
    EventKind.RETRIED: logging.WARNING,
    EventKind.QUARANTINED: logging.WARNING,
    EventKind.DEAD_LETTERED: logging.ERROR,
    EventKind.LEASE_LOST: logging.WARNING,
}
_FIELDS = ("queue", "attempt", "max_retries", "worker", "duration", "delay", "reason", "error_class", "error")
_WIDEST_ERROR = 200


class _OneLine(logging.Filter):
    """Removes line breaks from the arguments of records: ids and types may come from other programs."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, Mapping):
            record.args = {key: _in_line(value) for key, value in record.args.items()}
        elif record.args:
            record.args = tuple(map(_in_line, record.args))
        return True


def _in_line(value: object) -> object:
    if not isinstance(value, str | BaseException):
        return value
    try:
        return one_line(str(value))
    except Exception as error:  # __str__ of a handler's error may fail
        return f"({type(value).__name__}, whose __str__ raised {type(error).__name__})"


logger.addFilter(_OneLine())


def enqueued(drafts: Iterable[Draft]) -> None:
    """Log each newly stored job."""
    if is_heard():
        for draft in drafts:
            facts = {"job_id": draft.id, "job_type": draft.type, "queue": draft.queue}
            logger.info("Job enqueued: %s %s", draft.type, draft.id, extra=facts)


def is_heard() -> bool:
    """Return whether INFO is logged, the level of successful jobs."""
    return logger.isEnabledFor(logging.INFO)


def is_debugging() -> bool:
    """Return whether DEBUG is logged, the level of jobs that begin."""
    return logger.isEnabledFor(logging.DEBUG)


def write(event: Event) -> None:
    """Log one event."""
    level = logging.ERROR if event.kind is EventKind.FOLLOWED and event.error else _LEVELS.get(event.kind, logging.INFO)
    if not logger.isEnabledFor(level):
        return
    facts = {name: getattr(event, name) for name in _FIELDS if getattr(event, name) not in (None, "", 0)}
    extra = {"event": event.kind.value, "job_id": event.job_id, "job_type": event.job_type, **facts}
    logger.log(level, "%s", _sentence(event), extra=extra)


def _sentence(event: Event) -> str:
    what = "not enqueued" if event.kind is EventKind.FOLLOWED and event.error else event.kind.value
    words = f"Job {what}: {event.job_type} {event.job_id}"
    if event.max_retries > 1 and event.kind not in (EventKind.COMPLETED, EventKind.FOLLOWED):
        words += f", attempt {event.attempt} of {event.max_retries}"
    if event.duration is not None:
        words += f", {_length(event.duration)}"
    if event.delay is not None:
        words += f", again in {_length(event.delay)}"
    parts = (event.reason, event.error_class, "".join(event.error.splitlines()[:1]))
    why = ": ".join(part for part in dict.fromkeys(parts) if part)
    return words if not why else f"{words} ({why[:_WIDEST_ERROR]})"


def _length(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


class _Formatter(logging.Formatter):
    """Redacts tracebacks: a database error may quote the rejected row."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the name is logging's
        return redact_text(super().formatException(ei))


class PlainFormatter(_Formatter):
    """Formats records as text, without control characters that could change the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return harmless(super().format(record))


class JsonFormatter(_Formatter):
    """Formats records as one JSON object per line: time, level, message, and all fields."""

    #: The attributes of every record, and one that other formatters add.
    _own = frozenset({*vars(logging.makeLogRecord({})), "asctime"})

    def format(self, record: logging.LogRecord) -> str:
        facts = {key: value for key, value in vars(record).items() if key not in self._own}
        line: dict[str, Any] = {
            "time": to_text(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **facts,
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        text = spelled_out(json.dumps(line, default=str, ensure_ascii=False))
        return text.encode("utf-8", "backslashreplace").decode()  # escapes lone surrogates
