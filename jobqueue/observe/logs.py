"""One log line per event, with facts as fields; never a payload. Nobody else words the log."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from jobqueue.clock import to_text
from jobqueue.observe.steering import harmless, one_line, spelled_out
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
    """Lets no value in a line write another one, whichever handler writes it: ids and types come from foreign rows."""

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
    except Exception as error:  # an error of a handler's own may have no words
        return f"({type(value).__name__}, whose __str__ raised {type(error).__name__})"


logger.addFilter(_OneLine())


def enqueued(drafts: Iterable[Draft]) -> None:
    """Write one line about each job that a caller has stored."""
    if is_heard():
        for draft in drafts:
            facts = {"job_id": draft.id, "job_type": draft.type, "queue": draft.queue}
            logger.info("Job enqueued: %s %s", draft.type, draft.id, extra=facts)


def is_heard() -> bool:
    """Whether anybody reads the lines of jobs that went well."""
    return logger.isEnabledFor(logging.INFO)


def is_debugging() -> bool:
    """Whether anybody reads the lines of jobs that begin."""
    return logger.isEnabledFor(logging.DEBUG)


def write(event: Event) -> None:
    """Write one line about one job."""
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
    """Writes tracebacks without secrets: a database quotes the row that it refuses."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the name is logging's
        return redact_text(super().formatException(ei))


class PlainFormatter(_Formatter):
    """A line for people; what errors and foreign rows hold cannot steer the terminal it is read on."""

    def format(self, record: logging.LogRecord) -> str:
        return harmless(super().format(record))


class JsonFormatter(_Formatter):
    """One JSON object per line: moment, level, message, and every fact that the line carries."""

    #: What every record has, and what other formatters leave on it.
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
        return text.encode("utf-8", "backslashreplace").decode()  # half of a surrogate pair is no text
