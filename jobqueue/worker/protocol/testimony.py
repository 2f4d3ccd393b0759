"""The validation of executors' messages.

A process that has run other people's code may send anything, so its messages are only data. Whatever an executor of
this release can't have sent raises BadMessage, and no other error. Follow-up jobs have the same bounds as enqueued
ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from jobqueue import conf, foreign_json
from jobqueue.clock import from_text
from jobqueue.errors import InvalidOption, duration
from jobqueue.handlers.options import KEY_LENGTH, NAME_LENGTH, Options, name
from jobqueue.handlers.payload import check_stored
from jobqueue.ids import is_ulid
from jobqueue.records import Assignment, Claim, ClaimKey, Draft, Ending, Failure, Settlement
from jobqueue.states import Move
from jobqueue.tracing.headers import LONGEST_CONTEXT
from jobqueue.worker.protocol import wire
from jobqueue.worker.protocol.wire import BadMessage, OutcomeKind

if TYPE_CHECKING:
    from jobqueue.worker.supervisor.claims import HeldClaim

#: A follow-up job of an atomic handler: its id, type and queue, and why it was refused.
Follower = tuple[str, str, str, str]
#: An attempt's outcome: a settlement to store, the follow-up jobs of a stored one, or None for a lost claim.
Said = Settlement | list[Follower] | None

#: The errors that code raises when a value has the wrong shape.
_MISSHAPEN = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)
#: The moves that an executor may make.
_OFFERED = frozenset((Move.COMPLETE, Move.RETRY, Move.SNOOZE, Move.RELEASE, Move.BURY, Move.CANCEL))
_FAILURE = frozenset(one.name for one in fields(Failure))
_DRAFT = frozenset(one.name for one in fields(Draft))
_OPTIONS = tuple(one.name for one in fields(Options))
#: Our own JSON has no escaped surrogates, neither single ones nor pairs. No column can store a single one.
_SURROGATE = re.compile(r"(?<!\\)(?:\\\\)*\\u[dD][89a-fA-F]")
_LONGEST_REASON = 100
_LONGEST_FINGERPRINT = 64
_NEWEST_VERSION = (1 << 31) - 1


def ready(content: Any) -> tuple[bool, bool]:
    """Return whether signals have receivers in an executor, and whether it traces jobs."""
    try:
        return bool(content["listening"]), bool(content.get("tracing"))
    except _MISSHAPEN as error:
        raise BadMessage("an invalid greeting") from error


def outcomes(content: Any, held: Mapping[ClaimKey, HeldClaim], owner: str) -> Iterator[tuple[HeldClaim, Said]]:
    """Yield outcomes one by one. The caller removes each claim from ``held``, so that no claim has two outcomes."""
    most = conf.get("MAX_RESULT_BYTES")
    for row in _rows(content):
        try:
            one = held.get((row[1], row[2]))
            if one is None:
                raise BadMessage("the outcome of a job that it does not run")
            said = _outcome(row, one, owner, most)
        except _MISSHAPEN as error:
            raise BadMessage(f"an invalid outcome ({_name_of(error)})") from error
        yield one, said


def reports(content: Any, held: Mapping[ClaimKey, HeldClaim]) -> Iterator[tuple[ClaimKey, str]]:
    """Yield progress reports. Reports arrive after outcomes, so those of ended jobs are left out."""
    for row in _rows(content):
        try:
            job_id, fence, text = row
            one = held.get((job_id, fence))
            if one is not None:
                yield one.key, _report(text)
        except _MISSHAPEN as error:
            raise BadMessage(f"an invalid progress report ({_name_of(error)})") from error


def _rows(content: Any) -> list[Any]:
    if type(content) is not list:
        raise BadMessage("a message without a list")
    return content


def _name_of(error: Exception) -> str:
    """Return the option or the class of an error, without the value, which may be secret."""
    return error.option if isinstance(error, InvalidOption) else type(error).__name__


def _outcome(row: wire.Row, held: HeldClaim, owner: str, most: int) -> Said:
    kind = row[0]
    if kind == OutcomeKind.COMPLETED:
        _, _, _, result = row
        return Settlement(*held.key, owner, Move.COMPLETE, _result(result, most))
    if kind == OutcomeKind.LOST:
        _, _, _ = row
        return None
    if kind == OutcomeKind.STORED:
        _, _, _, followed = row
        return [_follower(*one) for one in _rows(followed)]
    if kind != OutcomeKind.SETTLED:
        raise ValueError("kind")
    _, _, _, result, given, delay, reason, failure, children, progress, *traced = row
    move = Move(given)
    if move not in _OFFERED or (failure is None) is not (move is Move.COMPLETE) or (children and failure):
        raise ValueError(given)
    return Settlement(
        *held.key,
        owner,
        move,
        _result(result, most),
        None if delay is None else duration(delay, "delay"),
        None if reason is None else _text(reason, _LONGEST_REASON),
        None if failure is None else _failure(failure),
        tuple(_draft(child, held.claim) for child in _rows(children)),
        None if progress is None else _report(progress),
        _context(*traced),
    )


def _text(value: Any, longest: int | None = None) -> str:
    if type(value) is not str or (longest is not None and len(value) > longest):
        raise ValueError("text")
    if not value.isascii():
        value.encode()  # raises for half of a surrogate pair
    return value


def _result(value: Any, most: int) -> str | None:
    return None if value is None else _text(value, most)


def _json(text: Any, what: str) -> Any:
    """Parse JSON text that will be stored. Raise ValueError for text that can't be stored."""
    check_stored(_text(text), what)
    if "\\u" in text and _SURROGATE.search(text):
        raise ValueError(what)
    return foreign_json.decoded(text)


def _report(text: Any) -> str:
    if type(_json(text, "progress")) is not dict:
        raise ValueError("progress")
    return str(text)


def _context(text: Any = None) -> str | None:
    """Return the context of a traced job, unless it can't be stored: nothing else depends on it."""
    try:
        found = None if text is None else _json(_text(text, LONGEST_CONTEXT), "payload")
    except _MISSHAPEN:
        return None
    return str(text) if type(found) is dict else None


def _follower(*words: Any) -> Follower:
    child, kind, queue, refusal = map(_text, words)
    return (child, kind, queue, refusal)


def _failure(values: Any) -> Failure:
    if set(values) != _FAILURE:
        raise ValueError("failure")
    fingerprint, length = values["fingerprint"], values["duration"]
    return Failure.of(
        Ending(values["ending"]),
        error_class=_text(values["error_class"]),
        message=_text(values["message"]),
        traceback=_text(values["traceback"]),
        fingerprint=None if fingerprint is None else _text(fingerprint, _LONGEST_FINGERPRINT),
        duration=None if length is None else duration(length, "duration"),
    )


def _draft(given: Any, parent: Claim | Assignment) -> Draft:
    if set(given) != _DRAFT:
        raise ValueError("follow-up job")
    draft = Draft(**{**given, **_moments(given), **_lengths(given)})
    own = {one: getattr(draft, one) for one in _OPTIONS}
    for inherited in ("tenant", "workspace"):  # another program's row may have any value there
        value = getattr(draft, inherited)
        if value is not None and value == getattr(parent, inherited):
            own.pop(inherited, None)
        elif value is not None:
            _text(value, NAME_LENGTH)
    Options(**own)
    name("type", draft.type)
    if not is_ulid(draft.id) or draft.parent_id != parent.id:
        raise ValueError("id")
    if type(draft.payload_version) is not int or not 1 <= draft.payload_version <= _NEWEST_VERSION:
        raise ValueError("payload_version")
    _json(draft.payload, "payload")
    if draft.concurrency_key is not None:
        _text(draft.concurrency_key, KEY_LENGTH)
    if draft.lane is not None:
        _text(draft.lane, KEY_LENGTH)
    if draft.fair_key is not None:
        _text(draft.fair_key, KEY_LENGTH)
    if draft.context is not None:
        _json(draft.context, "payload")
    return draft


def _moments(given: dict[str, Any]) -> dict[str, Any]:
    return {one: given[one] and from_text(given[one]) for one in wire.MOMENTS}


def _lengths(given: dict[str, Any]) -> dict[str, timedelta | None]:
    return {one: None if given[one] is None else duration(given[one], one) for one in wire.LENGTHS}
