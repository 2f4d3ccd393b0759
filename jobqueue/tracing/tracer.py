"""Tracers: what this package needs of a tracing library, and which libraries are in use."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from importlib import import_module
from typing import Protocol, TypeVar

from jobqueue.records import Assignment, Draft, DraftReceipt, Settlement
from jobqueue.records.schedule import ScheduleRecord

R = TypeVar("R")

logger = logging.getLogger("jobqueue")

#: The libraries, and the modules here that use them. A library in use was imported by the application.
_ROOMS = {
    "opentelemetry": "jobqueue.tracing.opentelemetry.tracer",
    "sentry_sdk": "jobqueue.tracing.sentry.tracer",
}
_broken: set[str] = set()


class Publication(Protocol):
    """The trace of one call that stores jobs."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the headers that continue the trace, to be stored with the jobs."""
        ...

    def end(self, receipts: Sequence[DraftReceipt], error: BaseException | None) -> None:
        """End the trace, also if storing failed."""
        ...


class Process(Protocol):
    """The trace of one attempt, in one library. ``is_current`` says whether it set OpenTelemetry's context."""

    is_current: bool
    #: What the next attempt gets to know of this one, among the headers.
    link: Mapping[str, str]

    def end(self, settlement: Settlement | None, error: BaseException | None) -> None:
        """End the trace with the outcome. Without a settlement, the claim was lost."""
        ...

    def settled(self, seconds: float) -> None:
        """Record that the outcome was stored, so many seconds after the attempt's end."""
        ...


class Tracer(Protocol):
    """A tracing library."""

    def is_active(self) -> bool:
        """Return whether the application has set the library up."""
        ...

    def prepare(self) -> None:
        """Prepare the process of a worker's supervisor."""
        ...

    def publish(self, drafts: Sequence[Draft]) -> Publication:
        """Begin the trace of a call that stores jobs."""
        ...

    def process(self, assignment: Assignment, headers: Mapping[str, str]) -> Process:
        """Begin the trace of an attempt, which continues the trace of ``headers``."""
        ...

    def of_slot(self, schedule: ScheduleRecord, longest: timedelta) -> Mapping[str, object]:
        """Return what the jobs of a schedule need in their context."""
        ...

    def flush(self, seconds: float) -> None:
        """Send what waits to be sent, in at most so many seconds."""
        ...


def in_use() -> Sequence[Tracer]:
    """Return the tracers in use. Where no library was imported, this takes two lookups in a dictionary."""
    loaded = sys.modules
    if "opentelemetry" not in loaded and "sentry_sdk" not in loaded:
        return ()
    return [tracer for name in _ROOMS if name in loaded and (tracer := _active(name)) is not None]


def _active(library: str) -> Tracer | None:
    if library in _broken:
        return None
    try:
        tracer: Tracer = import_module(_ROOMS[library]).TRACER
        return tracer if tracer.is_active() else None
    except Exception as error:  # a version of the library that this package doesn't know
        _broken.add(library)
        _note(error)
        return None


def harmless(call: Callable[[], R]) -> R | None:
    """Call a tracing library, and return ``None`` if it fails."""
    try:
        return call()
    except Exception as error:
        _note(error)
        return None


def prepare() -> None:
    """Prepare the process of a worker's supervisor."""
    for tracer in in_use():
        harmless(tracer.prepare)


def flush(seconds: float) -> None:
    """Send what waits to be sent. Executors end without exit handlers, so nothing else does."""
    for tracer in in_use():
        harmless(lambda tracer=tracer: tracer.flush(seconds))  # type: ignore[misc]


_noted: set[type[Exception]] = set()


def _note(error: Exception) -> None:
    """Log a failure, once for each class of errors, because it may fail for each job."""
    if type(error) not in _noted:
        _noted.add(type(error))
        with contextlib.suppress(Exception):
            logger.warning("A job could not be traced. Jobs run as usual.", exc_info=error)
