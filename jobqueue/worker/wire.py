"""What supervisor and executor say to each other: JSON text with its length before it, many facts in one message.

JSON, because the supervisor must not run what a handler's process wrote: payloads and results pass through as text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import timedelta
from enum import StrEnum
from struct import Struct
from typing import Any

from jobqueue.clock import from_text, to_text
from jobqueue.records import Assignment, Claim, Draft, Ending, Failure, Followed, Settlement
from jobqueue.states import Move

#: How much is read at once; for more, the C library asks the system for memory each time, at ten times the price.
AT_ONCE = 1 << 16

_LENGTH = Struct("!I")
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode
_MOMENTS = ("scheduled_at", "expires_at")
_LENGTHS = ("delay", "timeout")

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


def pack(word: Word, content: object) -> bytes:
    """Write one message."""
    body = _encode([word, content]).encode("utf-8", "surrogatepass")
    return _LENGTH.pack(len(body)) + body


class Inbox:
    """Puts messages together from what comes in, however it was cut."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[Word, Any]]:
        """Take bytes and give the messages that are now whole."""
        self._bytes += data
        while len(self._bytes) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._bytes)[0]
            if len(self._bytes) < end:
                return
            word, content = json.loads(self._bytes[_LENGTH.size : end].decode("utf-8", "surrogatepass"))
            del self._bytes[:end]
            yield Word(word), content


def assignment_row(claim: Claim) -> Row:
    """Spell out what an executor gets of a claim."""
    return claim[:_ASSIGNED]


def assignments(rows: list[Row]) -> list[Assignment]:
    """Read what ``assignment_row`` spelled out."""
    return [Assignment(*row) for row in rows]


def settlement_row(one: Settlement) -> Row:
    """Spell out a settlement; completion, by far the most frequent, is short."""
    if one.move is Move.COMPLETE and not one.children and one.progress is None:
        return [one.id, one.fence, one.result]
    failure = one.failure and {
        **asdict(one.failure),
        "duration": _seconds(one.failure.duration),
    }
    children = [_draft_values(child) for child in one.children]
    begun = [one.id, one.fence, one.result, one.move, _seconds(one.delay)]
    return [*begun, one.end_reason, failure, children, one.progress]


def stored_row(claim: tuple[str, int], followed: Iterable[Followed]) -> Row:
    """Spell out that a claim was completed in its handler's own transaction, and which jobs followed it.

    No other row is of this length.
    """
    return [*claim, "stored", [[*one.names, one.refusal] for one in followed if one.is_news]]


def settlement(row: Row, owner: str) -> Settlement:
    """Read what ``settlement_row`` spelled out."""
    if len(row) == 3:
        return Settlement(row[0], row[1], owner, Move.COMPLETE, row[2])
    job_id, fence, result, move, delay, end_reason, failure, children, progress = row
    return Settlement(
        job_id,
        fence,
        owner,
        Move(move),
        result,
        _length(delay),
        end_reason,
        failure
        and Failure(**{**failure, "ending": Ending(failure["ending"]), "duration": _length(failure["duration"])}),
        tuple(_draft(child) for child in children),
        progress,
    )


def _draft_values(draft: Draft) -> dict[str, Any]:
    values = asdict(draft)
    for name in _MOMENTS:
        values[name] = values[name] and to_text(values[name])
    for name in _LENGTHS:
        values[name] = _seconds(values[name])
    return values


def _draft(values: dict[str, Any]) -> Draft:
    for name in _MOMENTS:
        values[name] = values[name] and from_text(values[name])
    for name in _LENGTHS:
        values[name] = _length(values[name])
    return Draft(**values)


def _seconds(length: timedelta | None) -> float | None:
    return None if length is None else length.total_seconds()


def _length(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
