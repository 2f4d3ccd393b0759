"""What supervisor and executor say to each other: JSON text with its length before it, many facts in one message.

JSON, because the supervisor must not run what a handler's process wrote: payloads and results pass through as text.
What an executor says is read in ``jobqueue.worker.protocol.testimony``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import timedelta
from enum import StrEnum
from struct import Struct
from typing import Any

from jobqueue import foreign_json
from jobqueue.clock import to_text
from jobqueue.records import Assignment, Claim, ClaimKey, Draft, Followed, Settlement
from jobqueue.states import Move

#: How much is read at once; for more, the C library asks the system for memory each time, at ten times the price.
AT_ONCE = 1 << 16

#: No executor sends more in one message: an outcome that is larger is refused before it is sent.
LONGEST = 256 * 1024 * 1024

_LENGTH = Struct("!I")
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode
#: The fields of a draft that travel as text and as seconds.
MOMENTS = ("scheduled_at", "expires_at")
LENGTHS = ("delay", "timeout")

#: About how many characters a follow-up job has, besides those of its payload and context.
_DRAFT = 600
_ASSIGNED = len(Assignment._fields)

Row = Sequence[Any]


class Word(StrEnum):
    """What a message is about."""

    READY = "ready"  # executor: I read my pipe, and whether somebody listens to signals
    ASSIGN = "assign"  # supervisor: run these
    OUTCOMES = "outcomes"  # executor: these are finished: a settlement each, or what was stored, or just a lost claim
    PROGRESS = "progress"  # executor: so far are these
    STOP = "stop"  # supervisor: ask these to stop, each for its reason
    DRAIN = "drain"  # supervisor: the worker stops; what can end early may
    EVENTS = "events"  # supervisor: this happened, tell those who listen
    EXIT = "exit"  # supervisor: nothing is left for you to do


class OutcomeKind(StrEnum):
    """What a row of outcomes begins with; the claim's id and fence come next, and then what the kind needs."""

    COMPLETED = "completed"  # by far the most frequent: the result alone
    SETTLED = "settled"  # a whole settlement
    STORED = "stored"  # the handler's own transaction stored it: the follow-up jobs it brought
    LOST = "lost"  # the claim is no longer this worker's


def pack(word: Word, content: object) -> bytes:
    """Write one message."""
    body = _encode([word, content]).encode("utf-8", "surrogatepass")
    return _LENGTH.pack(len(body)) + body


class BadMessage(Exception):
    """Somebody said what cannot be understood; the message says what, and quotes nothing that may be secret."""


class Inbox:
    """Puts messages together from what comes in, however it was cut."""

    def __init__(self, longest: int | None = None) -> None:
        """With ``longest`` the other side is an executor, and what it says is judged by BadMessage."""
        self._bytes = bytearray()
        self._longest = longest

    @property
    def is_midway(self) -> bool:
        """Whether a message has begun and not ended."""
        return bool(self._bytes)

    def feed(self, data: bytes) -> Iterator[tuple[Word, Any]]:
        """Take bytes and give the messages that are now whole."""
        self._bytes += data
        while len(self._bytes) >= _LENGTH.size:
            length = _LENGTH.unpack_from(self._bytes)[0]
            if self._longest is not None and length > self._longest:
                raise BadMessage(f"a message of {length:,} bytes, and the longest has {self._longest:,}")
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
        raise BadMessage(f"a message that is none ({type(error).__name__})") from error


def assignment_row(claim: Claim) -> Row:
    """Spell out what an executor gets of a claim."""
    return claim[:_ASSIGNED]


def assignments(rows: list[Row]) -> list[Assignment]:
    """Read what ``assignment_row`` spelled out."""
    return [Assignment(*row) for row in rows]


def settlement_row(one: Settlement) -> Row:
    """Spell out a settlement; completion, by far the most frequent, is short."""
    if one.move is Move.COMPLETE and not one.children and one.progress is None:
        return [OutcomeKind.COMPLETED, one.id, one.fence, one.result]
    failure = one.failure and {
        **asdict(one.failure),
        "duration": _seconds(one.failure.duration),
    }
    children = [_draft_values(child) for child in one.children]
    decided = [one.result, one.move, _seconds(one.delay), one.end_reason]
    return [OutcomeKind.SETTLED, one.id, one.fence, *decided, failure, children, one.progress]


def size_of(one: Settlement) -> int:
    """Count the characters of what may be large in a settlement."""
    size = len(one.result or "") + len(one.progress or "")
    if one.children:
        size += sum(_DRAFT + len(child.payload) + len(child.context or "") for child in one.children)
    return size


def is_too_long(one: Settlement, size: int) -> bool:
    """Whether no message may hold a settlement of this size; a character takes four bytes at the most."""
    return size >= LONGEST // 4 and len(pack(Word.OUTCOMES, [settlement_row(one)])) - _LENGTH.size > LONGEST


def stored_row(claim: ClaimKey, followed: Iterable[Followed]) -> Row:
    """Spell out that a claim was completed in its handler's own transaction, and which jobs followed it."""
    return [OutcomeKind.STORED, *claim, [[*one.names, one.refusal] for one in followed if one.is_news]]


def lost_row(claim: ClaimKey) -> Row:
    """Spell out that a claim was lost."""
    return [OutcomeKind.LOST, *claim]


def _draft_values(draft: Draft) -> dict[str, Any]:
    values = asdict(draft)
    for name in MOMENTS:
        values[name] = values[name] and to_text(values[name])
    for name in LENGTHS:
        values[name] = _seconds(values[name])
    return values


def _seconds(length: timedelta | None) -> float | None:
    return None if length is None else length.total_seconds()
