"""The options of a queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class WhenFull(StrEnum):
    """What happens to a job that is enqueued while its queue is full."""

    ACCEPT = "accept"
    SHED = "shed"
    BLOCK = "block"
    RAISE = "raise"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """The options that ``JOBQUEUE["QUEUES"]`` sets for a queue.

    ``capacity`` is how many jobs may wait in the queue; ``None`` doesn't limit them. ``when_full`` says what happens to
    further ones: they are stored all the same, dropped unless they are urgent, or refused, at once or after the
    producer has waited for ``block_for`` seconds. ``limits`` are declared limits of the jobs of each queue that the
    entry applies to.

    ``ordered`` has the jobs run first in, first out: in one lane if it is true, or in a lane for each value of the
    payload's field that it names, or of the tenant. In a ``strict`` lane, the jobs wait also for an earlier one that
    is due later or is a dead letter.

    ``fair`` has the values of a field of the payload, or of the tenant, take turns; ``weights`` gives some of them more
    than one job in a turn.
    """

    capacity: int | None = None
    when_full: WhenFull = WhenFull.ACCEPT
    block_for: float = 30.0
    limits: tuple[Any, ...] = ()
    ordered: bool | str = False
    strict: bool = False
    fair: str | None = None
    weights: Mapping[str, float] = field(default_factory=dict)

    @property
    def has_keys(self) -> bool:
        """Return whether jobs of a queue are stored with values of fields of their payloads."""
        return bool(self.limits or self.fair)

    @property
    def has_own_order(self) -> bool:
        """Return whether the jobs of a queue are not taken in the common order of claims."""
        return bool(self.ordered or self.fair)
