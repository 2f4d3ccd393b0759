"""What an attempt came to, and what is remembered of it if it did not succeed. As frequent as a claim: named tuples."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple

from jobqueue.records.draft import Draft, Receipt
from jobqueue.states import Move

MESSAGE_LIMIT = 4_000
TRACEBACK_LIMIT = 32_000


class Ending(StrEnum):
    """How an attempt that did not succeed came to its end."""

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
    """What is remembered of an attempt that did not succeed; ``of``() makes its texts fit for any database."""

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
        """Make a failure that can be stored whatever its texts hold."""
        return cls(
            ending,
            storable(error_class, 255),
            storable(message, MESSAGE_LIMIT),
            storable(traceback, TRACEBACK_LIMIT, keep_end=True),
            fingerprint,
            duration,
        )


def storable(text: str, limit: int, *, keep_end: bool = False) -> str:
    """Cut a text and replace what a database refuses (NUL, lone surrogates). A traceback's end says most."""
    text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    text = text.encode("utf-8", "replace").decode("utf-8")
    if len(text) <= limit:
        return text
    return "…" + text[1 - limit :] if keep_end else text[: limit - 1] + "…"


class Settlement(NamedTuple):
    """What an attempt came to, offered by the holder of its claim; stored only if the claim is still held.

    ``delay`` moves a job that goes back to its queue; ``None`` leaves it its place. ``failure`` becomes a row of
    history; ``children`` become jobs with the completion; ``progress`` is the attempt's last report, as JSON text. Made
    by the named constructors of ``policy.settling``.
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

    @property
    def claim(self) -> tuple[str, int]:
        """The claim it settles: no other one has this id and fence."""
        return (self.id, self.fence)


class Followed(NamedTuple):
    """What became of a follow-up job: a receipt, or why there is none (its key belongs to a job of another type)."""

    draft: Draft
    receipt: Receipt | None
    refusal: str = ""

    @property
    def is_news(self) -> bool:
        """Whether a job was stored, or none could be; a job that was there before is neither."""
        return bool(self.refusal) or (self.receipt is not None and self.receipt.created)

    @property
    def names(self) -> tuple[str, str, str]:
        """Which job it is: its id, type and queue."""
        return (self.draft.id, self.draft.type, self.draft.queue)


class Settled(NamedTuple):
    """What became of settlements: those that were refused, and the follow-up jobs of those that were not."""

    refused: tuple[Settlement, ...] = ()
    followed: tuple[Followed, ...] = ()
