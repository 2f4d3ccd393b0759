"""The statuses of a job, and the only table of moves between them.

                        ┌──────────── release · snooze · retry · quarantine ───────────┐
                        ▼                                                              │
enqueue ──────────▶ queued ──────────────── claim ────────────────────────────▶ in_progress
                     ▲  │                                                        │  │  │
                     │  │ cancel · expire                       cancel · expire  │  │  │ complete
                     │  └───────────────────────▶ failed ◀───────────────────────┘  │  └─────────▶ completed
                     │                              │                          bury │
                     └────────── revive ────────────┴───────── dead_letter ◀────────┘
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class JobStatus(StrEnum):
    """The five statuses of a job."""

    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    DEAD_LETTER = "dead_letter"


ACTIVE = frozenset({JobStatus.QUEUED, JobStatus.IN_PROGRESS})


class Move(StrEnum):
    """The reason for a change of status."""

    CLAIM = "claim"
    COMPLETE = "complete"
    RETRY = "retry"
    SNOOZE = "snooze"
    RELEASE = "release"
    QUARANTINE = "quarantine"
    BURY = "bury"
    CANCEL = "cancel"
    EXPIRE = "expire"
    REVIVE = "revive"


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of the table: a move's sources, its target, and whether the move gives the attempt back."""

    sources: frozenset[JobStatus]
    target: JobStatus
    refunds: bool = False


_HELD = frozenset({JobStatus.IN_PROGRESS})

MOVES: Mapping[Move, Rule] = {
    Move.CLAIM: Rule(frozenset({JobStatus.QUEUED}), JobStatus.IN_PROGRESS),
    Move.COMPLETE: Rule(_HELD, JobStatus.COMPLETED),
    Move.RETRY: Rule(_HELD, JobStatus.QUEUED),
    Move.SNOOZE: Rule(_HELD, JobStatus.QUEUED, refunds=True),
    Move.RELEASE: Rule(_HELD, JobStatus.QUEUED, refunds=True),
    Move.QUARANTINE: Rule(_HELD, JobStatus.QUEUED, refunds=True),
    Move.BURY: Rule(_HELD, JobStatus.DEAD_LETTER),
    Move.CANCEL: Rule(ACTIVE, JobStatus.FAILED),
    Move.EXPIRE: Rule(ACTIVE, JobStatus.FAILED),
    Move.REVIVE: Rule(frozenset({JobStatus.FAILED, JobStatus.DEAD_LETTER}), JobStatus.QUEUED),
}


def sources(move: Move) -> frozenset[JobStatus]:
    """Return the statuses that a move may start from."""
    return MOVES[move].sources


def target(move: Move) -> JobStatus:
    """Return the status that a move ends in."""
    return MOVES[move].target
