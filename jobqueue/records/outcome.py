"""Outcomes of attempts: settlements and failures. Settlements are named tuples, because there are as many as claims."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple

from jobqueue.records.draft import Draft, DraftReceipt
from jobqueue.states import Move

MESSAGE_LIMIT = 4_000
TRACEBACK_LIMIT = 32_000


class Ending(StrEnum):
    """The way in which an unsuccessful attempt ended."""

    FAILED = "failed"
    TIMED_OUT = "timed_out"
    LEASE_LOST = "lease_lost"
    CRASHED = "crashed"
    RELEASED = "released"
    SNOOZED = "snoozed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Failure:
    """The record of an unsuccessful attempt. ``Failure.of()`` makes its texts fit for any database."""

    ending: Ending
    error_class: str = ""
    message: str = ""
    traceback: str = ""
    fingerprint: str | None = None
    duration: timedelta | None = None

    @classmethod
    def of(
        cls,
        ending: Ending,
        *,
        error_class: str = "",
        message: str = "",
        traceback: str = "",
        fingerprint: str | None = None,
        duration: timedelta | None = None,
    ) -> Failure:
        """Return a failure that can be stored, whatever its texts contain."""
        return cls(
            ending,
            storable(error_class, 255),
            storable(message, MESSAGE_LIMIT),
            storable(traceback, TRACEBACK_LIMIT, keep_end=True),
            fingerprint,
            duration,
        )


def storable(text: str, limit: int, *, keep_end: bool = False) -> str:
    """Truncate a text, and replace what databases refuse: NUL and lone surrogates. ``keep_end`` is for tracebacks."""
    text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    text = text.encode("utf-8", "replace").decode("utf-8")
    if len(text) <= limit:
        return text
    return "…" + text[1 - limit :] if keep_end else text[: limit - 1] + "…"


class Settlement(NamedTuple):
    """The outcome of an attempt, which is stored only if its claim is still held.

    ``delay`` moves a job that goes back to its queue; without it the job keeps its place. ``failure`` becomes a row of
    history, ``children`` become jobs with the completion, and ``progress`` is the attempt's last report as JSON text.
    ``context`` replaces the job's context for its next attempt, as JSON text.
    Made by the constructors in ``policy.settling``.
    """

    id: str
    fence: int
    owner: str
    move: Move
    result: str | None = None
    delay: timedelta | None = None
    end_reason: str | None = None
    failure: Failure | None = None
    children: tuple[Draft, ...] = ()
    progress: str | None = None
    context: str | None = None

    @property
    def claim(self) -> tuple[str, int]:
        """Return the key of the claim that it settles."""
        return (self.id, self.fence)

    @property
    def is_plain_completion(self) -> bool:
        """Return whether it completes the job with a result only, without follow-up jobs and progress."""
        return self.move is Move.COMPLETE and not self.children and self.progress is None


class Followed(NamedTuple):
    """The result of a follow-up job: a receipt, or a refusal because its key belongs to a job of another type."""

    draft: Draft
    receipt: DraftReceipt | None
    refusal: str = ""

    @property
    def is_news(self) -> bool:
        """Return whether the job was stored or refused, rather than a duplicate."""
        return bool(self.refusal) or (self.receipt is not None and self.receipt.created)

    @property
    def names(self) -> tuple[str, str, str]:
        """Return the job's id, type and queue."""
        return (self.draft.id, self.draft.type, self.draft.queue)


class Settled(NamedTuple):
    """The result of storing settlements: the refused settlements, and the follow-up jobs of the stored ones."""

    refused: tuple[Settlement, ...] = ()
    followed: tuple[Followed, ...] = ()
