"""How a handler offers to compare what its completed jobs did with what is there now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: Takes the payload and the stored result of a completed job; says what differs, or ``None`` where all is as it was
#: left. It only looks: whatever it finds, it mends nothing.
Compare = Callable[[Any, Any], str | None]
#: Names the part of the world that a job is about, such as a path.
Subject = Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Compares one job with the world.

    Of all completed jobs with one subject, whatever their types, only the last one is compared: what came later had a
    right to change what was there. Without ``subject`` a job is about nothing but itself.
    """

    compare: Compare
    subject: Subject | None = None
