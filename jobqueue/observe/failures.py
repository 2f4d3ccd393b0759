"""The description of an error for the history: class, message and traceback, redacted."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from pydantic import ValidationError

from jobqueue import foreign_json
from jobqueue.errors import PayloadInvalid, Verdict
from jobqueue.policy.fingerprint import with_fingerprint
from jobqueue.policy.redaction import redact_beginning, redact_text, secret_values
from jobqueue.records import Ending, Failure
from jobqueue.records.outcome import MESSAGE_LIMIT, TRACEBACK_LIMIT

T = TypeVar("T")

_LONGEST_CHAIN = 10
#: The limits of a deep traceback: frames from its beginning and its end, and characters of each frame, since generated
#: code may have lines of a megabyte.
_FIRST_FRAMES = 20
_LAST_FRAMES = 200
_FRAME_LIMIT = 1_000
_CLASS_LIMIT = 255
_MOST_COMPLAINTS = 1_000


def failure_of(
    error: BaseException, ending: Ending, *, job_type: str, payload: str = "null", duration: timedelta | None = None
) -> Failure:
    """Describe an error for the history. This succeeds even if the error's own methods fail.

    Texts are cut before they are redacted: redacting a megabyte takes 0.4 s, during which it holds the GIL.
    """
    secrets = _secrets_in(payload)
    expected = isinstance(error, (Verdict, PayloadInvalid))  # raised on purpose: a traceback adds nothing
    failure = Failure.of(
        ending,
        error_class=class_of(error),
        # With an empty message, the job would keep the error of an earlier attempt.
        message=redact_text(message_of(error, secrets) or ("" if expected else class_of(error)), secrets),
        traceback="" if expected else redact_text(traceback_of(error, secrets), secrets),
        duration=duration,
    )
    return with_fingerprint(job_type, failure)


def _secrets_in(payload: str) -> tuple[str, ...]:
    """Find the secrets in a payload."""
    return secret_values(foreign_json.read(payload))


def class_of(error: BaseException) -> str:
    """Return the name of an error's class, with its module unless it is a built-in."""
    kind = type(error)
    try:
        name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    except BaseException:  # a class body can set __module__ to anything
        name = kind.__qualname__
    return name[:_CLASS_LIMIT]


def message_of(error: BaseException, secrets: Iterable[str] = ()) -> str:
    """Return an error's message without the input values that pydantic quotes, or a placeholder if ``__str__`` fails.

    A long message is cut, but never in the middle of a secret, because redaction would not recognize the rest.
    """
    try:
        words = _without_values(error) if isinstance(error, ValidationError) else str(error)
    except BaseException as another:
        return f"(no message: __str__ raised {type(another).__name__})"
    return _cut(words, MESSAGE_LIMIT, secrets)


def _cut(text: str, limit: int, secrets: Iterable[str]) -> str:
    return text if len(text) <= limit else f"{redact_beginning(text, limit, secrets)[0]}…"


def _without_values(error: ValidationError) -> str:
    heading = f"{error.error_count()} validation errors for {error.title}"
    if error.error_count() > _MOST_COMPLAINTS:
        return heading
    wrong = error.errors(include_input=False, include_url=False, include_context=False)
    # Only the first element is certainly a field of the model. Deeper ones may be keys of a dict, which are values.
    is_model = error.title.isidentifier()
    lines = [f"{one['loc'][0] if is_model and one['loc'] else 'value'}: {one['type']}" for one in wrong]
    return f"{heading}\n" + "\n".join(lines)


def traceback_of(error: BaseException, secrets: Iterable[str] = ()) -> str:
    """Format an error and its causes, oldest first, like Python but with the messages of ``message_of``.

    If they are too long, the oldest are left out.
    """
    parts: list[str] = []
    seen: BaseException | None = error
    room = TRACEBACK_LIMIT
    while seen is not None and len(parts) < _LONGEST_CHAIN and room > 0:
        parts.append(_one(seen, secrets))
        room -= len(parts[-1])
        seen = _read(partial(_led_to, seen), None)
    return "\nThis led to another error:\n\n".join(reversed(parts))


def _read(look: Callable[[], T], otherwise: T) -> T:
    """Read an attribute of an error, which may fail in an unusual class."""
    try:
        return look()
    except BaseException:
        return otherwise


def _led_to(error: BaseException) -> BaseException | None:
    if error.__cause__ is not None:
        return error.__cause__
    return None if error.__suppress_context__ else error.__context__


def _one(error: BaseException, secrets: Iterable[str]) -> str:
    nothing: list[str] = []
    lines = ["Traceback (most recent call last):\n", *_read(lambda: _frames(error, secrets), nothing)]
    words = message_of(error, secrets)
    lines.append(f"{class_of(error)}: {words}\n" if words else f"{class_of(error)}\n")
    lines += [f"{_cut(note, MESSAGE_LIMIT, secrets)}\n" for note in _read(lambda: _notes(error), nothing)]
    if isinstance(error, BaseExceptionGroup):
        no_members: tuple[BaseException, ...] = ()
        members = _read(lambda: error.exceptions[:_LONGEST_CHAIN], no_members)
        lines += [f"  with {class_of(one)}: {message_of(one, secrets)}\n" for one in members]
    return "".join(lines)


def _notes(error: BaseException) -> list[str]:
    notes = getattr(error, "__notes__", ())
    return [note for note in islice(notes, _LONGEST_CHAIN) if isinstance(note, str)]


def _frames(error: BaseException, secrets: Iterable[str]) -> list[str]:
    """Format the frames of an error, without this package's frames before the handler's."""
    links = _outside(list(_links(error)))
    left_out = len(links) - _FIRST_FRAMES - _LAST_FRAMES
    if left_out > 0:
        first = traceback.format_list(traceback.extract_tb(links[0], limit=_FIRST_FRAMES))
        lines = [*first, f"  … {left_out} more\n", *traceback.format_tb(links[-_LAST_FRAMES])]
    else:
        lines = traceback.format_tb(links[0] if links else None)
    return [line if len(line) <= _FRAME_LIMIT else f"{_cut(line, _FRAME_LIMIT, secrets)}\n" for line in lines]


def _links(error: BaseException) -> Iterator[TracebackType]:
    link = error.__traceback__
    while link is not None:
        yield link
        link = link.tb_next


def _outside(links: list[TracebackType]) -> list[TracebackType]:
    """Leave out leading frames of this package, unless all frames are of this package."""
    ours = str(Path(__file__).resolve().parents[1]) + os.sep
    names = (link.tb_frame.f_code.co_filename for link in links)
    return links[next((place for place, name in enumerate(names) if not name.startswith(ours)), 0) :]
