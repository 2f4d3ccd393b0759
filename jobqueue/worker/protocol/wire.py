"""The wire format between supervisor and executors: JSON text after its length, with many facts in one message.

JSON is used because the supervisor must not execute what a handler's process wrote. Payloads and results pass through
as text. ``jobqueue.worker.protocol.testimony`` validates what executors send.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from enum import StrEnum
from struct import Struct
from typing import Any

from jobqueue import foreign_json
from jobqueue.clock import to_text
from jobqueue.durations import in_seconds
from jobqueue.records import Assignment, Claim, ClaimKey, Draft, Followed, Settlement

#: How much is read at once. For larger buffers the C library asks the system for memory each time, at ten times the
#: cost.
AT_ONCE = 1 << 16

#: The longest message of an executor. A larger outcome is refused before it is sent.
LONGEST = 256 * 1024 * 1024

_LENGTH = Struct("!I")
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode
#: The fields of a draft that are sent as text and as seconds.
MOMENTS = ("scheduled_at", "expires_at")
LENGTHS = ("delay", "timeout", "debounce", "max_wait", "throttle")

#: The approximate size of a follow-up job in characters, without payload and context.
_DRAFT = 600
#: The fields that a claim and an assignment have in common.
_ASSIGNED = Assignment._fields.index("due_at")

Row = Sequence[Any]


class Word(StrEnum):
    """The subject of a message."""

    READY = "ready"  # executor: it reads its channel; whether signals have receivers, and whether it traces jobs
    ASSIGN = "assign"  # supervisor: run these jobs
    OUTCOMES = "outcomes"  # executor: these attempts ended, each as an OutcomeKind
    PROGRESS = "progress"  # executor: the progress of these jobs
    STOP = "stop"  # supervisor: ask these jobs to stop, each for its reason
    DRAIN = "drain"  # supervisor: the worker stops; handlers may end early
    EVENTS = "events"  # supervisor: send signals for these events
    SETTLED = "settled"  # supervisor, if jobs are traced: these outcomes were stored, each after so many seconds
    EXIT = "exit"  # supervisor: there is nothing left to do


class OutcomeKind(StrEnum):
    """The first item of an outcome's row. The claim's id and fence follow, then the values of that kind."""

    COMPLETED = "completed"  # by far the most frequent: only the result
    SETTLED = "settled"  # a whole settlement
    STORED = "stored"  # stored by the handler's own transaction: the follow-up jobs
    LOST = "lost"  # the claim is no longer this worker's


def pack(word: Word, content: object) -> bytes:
    """Return a message as bytes."""
    body = _encode([word, content]).encode("utf-8", "surrogatepass")
    return _LENGTH.pack(len(body)) + body


class BadMessage(Exception):
    """A message can't be understood. The text says why, and quotes nothing that may be secret."""


class Inbox:
    """Assembles messages from the bytes that arrive."""

    def __init__(self, longest: int | None = None) -> None:
        """With ``longest``, the sender is an executor, and invalid messages raise BadMessage."""
        self._bytes = bytearray()
        self._longest = longest

    @property
    def is_midway(self) -> bool:
        """Return whether a message has begun but not ended."""
        return bool(self._bytes)

    def feed(self, data: bytes) -> Iterator[tuple[Word, Any]]:
        """Add bytes, and yield the messages that are now complete."""
        self._bytes += data
        while len(self._bytes) >= _LENGTH.size:
            length = _LENGTH.unpack_from(self._bytes)[0]
            if self._longest is not None and length > self._longest:
                raise BadMessage(f"a message of {length:,} bytes, above the limit of {self._longest:,}")
            end = _LENGTH.size + length
            if len(self._bytes) < end:
                return
            body = self._bytes[_LENGTH.size : end]
            del self._bytes[:end]
            yield _trusted(body) if self._longest is None else _judged(body)


def _trusted(body: bytearray) -> tuple[Word, Any]:
    word, content = json.loads(body.decode("utf-8", "surrogatepass"))
    return Word(word), content


def _judged(body: bytearray) -> tuple[Word, Any]:
    try:
        text = body.decode("utf-8", "surrogatepass")
        word, content = foreign_json.decoded_quickly(text)
        return Word(word), content
    except (ValueError, TypeError) as error:
        raise BadMessage(f"text that is not a message ({type(error).__name__})") from error


def assignment_row(claim: Claim) -> Row:
    """Return the part of a claim that its executor gets."""
    return claim[:_ASSIGNED]


def traced_assignment_row(claim: Claim) -> Row:
    """Return the part of a claim that an executor gets if it traces jobs."""
    return (*claim[:_ASSIGNED], claim.scheduled_at.timestamp())


def assignments(rows: list[Row]) -> list[Assignment]:
    """Parse the rows that ``assignment_row`` made."""
    return [Assignment(*row) for row in rows]


def settlement_row(one: Settlement) -> Row:
    """Return a settlement as a row. A plain completion, by far the most frequent, is short."""
    if one.is_plain_completion:
        return [OutcomeKind.COMPLETED, one.id, one.fence, one.result]
    failure = one.failure and {
        **asdict(one.failure),
        "duration": in_seconds(one.failure.duration),
    }
    children = [_draft_values(child) for child in one.children]
    decided = [one.result, one.move, in_seconds(one.delay), one.end_reason]
    row = [OutcomeKind.SETTLED, one.id, one.fence, *decided, failure, children, one.progress]
    return row if one.context is None else [*row, one.context]


def size_of(one: Settlement) -> int:
    """Return the number of characters in the parts of a settlement that may be large."""
    size = len(one.result or "") + len(one.progress or "")
    if one.children:
        size += sum(_DRAFT + len(child.payload) + len(child.context or "") for child in one.children)
    return size


def is_too_long(one: Settlement, size: int) -> bool:
    """Return whether a settlement of this size exceeds a message. A character takes at most four bytes."""
    return size >= LONGEST // 4 and len(pack(Word.OUTCOMES, [settlement_row(one)])) - _LENGTH.size > LONGEST


def stored_row(claim: ClaimKey, followed: Iterable[Followed]) -> Row:
    """Return the row of a claim that its handler's own transaction completed, with its follow-up jobs."""
    return [OutcomeKind.STORED, *claim, [[*one.names, one.refusal] for one in followed if one.is_news]]


def lost_row(claim: ClaimKey) -> Row:
    """Return the row of a lost claim."""
    return [OutcomeKind.LOST, *claim]


def _draft_values(draft: Draft) -> dict[str, Any]:
    values = asdict(draft)
    for name in MOMENTS:
        values[name] = values[name] and to_text(values[name])
    for name in LENGTHS:
        values[name] = in_seconds(values[name])
    return values
