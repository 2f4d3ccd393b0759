"""Reconcilers, which compare what a handler's completed jobs did with the current state of the world."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: A function of a completed job's payload and stored result. It returns what differs, or ``None``, and changes nothing.
Compare = Callable[[Any, Any], str | None]
#: A function that names the part of the world that a job is about, such as a path.
Subject = Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class Reconciler:
    """A comparison of one job with the world.

    Of all completed jobs with the same subject, of any type, only the last is compared, because later jobs may change
    what earlier ones did. Without ``subject``, each job is a subject of its own.
    """

    compare: Compare
    subject: Subject | None = None
