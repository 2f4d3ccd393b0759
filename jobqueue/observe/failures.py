"""What is remembered of an error: its class, its words and its traceback, cleared of what they must not carry."""

from __future__ import annotations

import hashlib
import json
import os
import traceback
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from pydantic import ValidationError

from jobqueue.errors import PayloadInvalid, Verdict
from jobqueue.policy.redaction import redact_text, secret_values
from jobqueue.records import Ending, Failure

_LONGEST_CHAIN = 10


def failure_of(
    error: BaseException, ending: Ending, *, job_type: str, payload: str = "null", duration: timedelta | None = None
) -> Failure:
    """Describe an error for the history. Whatever the error does when it is asked for its words, this succeeds."""
    secrets = _secrets_in(payload)
    expected = isinstance(error, (Verdict, PayloadInvalid))  # said on purpose: where from is no news
    return Failure.of(
        ending,
        error_class=class_of(error),
        message=redact_text(message_of(error), secrets),
        traceback="" if expected else redact_text(traceback_of(error), secrets),
        fingerprint=fingerprint_of(error, job_type),
        duration=duration,
    )


def _secrets_in(payload: str) -> tuple[str, ...]:
    """Find a payload's secrets; a database takes JSON that Python will not read, as numbers of 5,000 digits."""
    try:
        return secret_values(json.loads(payload))
    except (ValueError, RecursionError):
        return ()


def class_of(error: BaseException) -> str:
    """Name an error's class, with its module unless it is a built-in one."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def message_of(error: BaseException) -> str:
    """Read an error's words: without the values pydantic would quote, and whatever its ``__str__`` does."""
    try:
        if isinstance(error, ValidationError):
            return _without_values(error)
        return str(error)
    except BaseException as another:
        return f"(its words cannot be read: __str__ raised {type(another).__name__})"


def _without_values(error: ValidationError) -> str:
    wrong = error.errors(include_input=False, include_url=False, include_context=False)
    # Only a model's own fields have names for sure; deeper, and in a dict, a place may be a key, and so a value.
    is_model = error.title.isidentifier()
    lines = [f"{one['loc'][0] if is_model and one['loc'] else 'value'}: {one['type']}" for one in wrong]
    return f"{error.error_count()} validation errors for {error.title}\n" + "\n".join(lines)


def traceback_of(error: BaseException) -> str:
    """Format an error and those that led to it, oldest first, like Python but in the words of ``message_of``."""
    parts: list[str] = []
    seen: BaseException | None = error
    while seen is not None and len(parts) < _LONGEST_CHAIN:
        parts.append(_one(seen))
        seen = _led_to(seen)
    return "\nThis led to another error:\n\n".join(reversed(parts))


def _led_to(error: BaseException) -> BaseException | None:
    if error.__cause__ is not None:
        return error.__cause__
    return None if error.__suppress_context__ else error.__context__


def _one(error: BaseException) -> str:
    lines = ["Traceback (most recent call last):\n", *_frames(error)]
    lines.append(f"{class_of(error)}: {message_of(error)}\n")
    if isinstance(error, BaseExceptionGroup):
        lines += [f"  with {class_of(one)}: {message_of(one)}\n" for one in error.exceptions[:_LONGEST_CHAIN]]
    return "".join(lines)


def _frames(error: BaseException) -> list[str]:
    return traceback.format_list(_outside(traceback.extract_tb(error.__traceback__)))


def _outside(frames: Sequence[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """Leave out the frames of this package that lead to the handler's own; all of them, if there are no others."""
    ours = str(Path(__file__).resolve().parents[1]) + os.sep
    first = next((place for place, frame in enumerate(frames) if not frame.filename.startswith(ours)), 0)
    return list(frames[first:])


def fingerprint_of(error: BaseException, job_type: str) -> str:
    """Name the kind of failure: one job type, one class of error, one function that raised. Numbers play no part."""
    frames = _outside(traceback.extract_tb(error.__traceback__))
    place = f"{Path(frames[-1].filename).name}:{frames[-1].name}" if frames else ""
    return hashlib.sha256(f"{job_type}\0{class_of(error)}\0{place}".encode("utf-8", "replace")).hexdigest()[:32]
