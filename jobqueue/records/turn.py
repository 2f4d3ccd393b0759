"""Turns: the jobs of a fair queue that have the same priority and the same value of the queue's field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class ServedTurn(NamedTuple):
    """What one claim took from a turn. Workers read it to know which turns were served least.

    ``finish`` is the virtual time of the turn after the claim, and ``clock`` that of its queue and priority.
    """

    queue: str
    priority: int
    key: str
    jobs: int
    finish: float
    clock: float


@dataclass(frozen=True, slots=True)
class TurnPlace:
    """How long a job of a fair queue has to wait: the turns due before its own, and the jobs of its own before it.

    ``field`` is the field whose values take turns. If there are more than were counted, ``is_capped`` is true.
    """

    field: str
    key: str
    turns: int
    jobs: int
    is_capped: bool = False


@dataclass(frozen=True, slots=True)
class TurnShare:
    """The due and running jobs of a value in a fair queue, and those served in the last minute.

    If more jobs are due than were counted, ``is_capped`` is true.
    """

    key: str
    weight: float
    waiting: int
    running: int
    served: int
    is_capped: bool = False
