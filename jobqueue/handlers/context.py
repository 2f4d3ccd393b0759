"""The context of a handler: facts about its attempt, and methods to report, stop and enqueue."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from jobqueue.errors import Interrupted, InvalidOption, JobQueueError, StopReason
from jobqueue.handlers.payload import dump_report
from jobqueue.records import Draft


class Drafting(Protocol):
    """A handler, as needed for a follow-up job."""

    def draft(self, *args: Any, **kwargs: Any) -> Draft:
        """Return a draft of a job without storing it."""
        ...


class Attending(Protocol):
    """The attendant of a running attempt: the worker, or a test."""

    def report(self, text: str) -> None:
        """Take a progress report, as JSON text."""
        ...

    def stop_reason(self) -> StopReason | None:
        """Return why the handler must stop, or ``None``."""
        ...

    def follow(self, target: Drafting | str, args: tuple[Any, ...], fields: dict[str, Any]) -> Draft:
        """Draft a follow-up job and keep it until the attempt is completed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext:
    """The attempt that a handler runs in. ``fence`` grows with each claim, so that other systems can compare it."""

    job_id: str
    job_type: str
    queue: str
    attempt: int
    max_retries: int
    fence: int
    tenant: str | None = None
    workspace: str | None = None
    parent_id: str | None = None
    request_id: str | None = None
    user: str | None = None
    attendant: Attending | None = field(default=None, repr=False, compare=False)

    def progress(self, percent: float, **info: Any) -> None:
        """Report the progress of the work, from 0 to 100, with any further information.

        It is shown within about a second; of several reports in that time, the last one is kept. The last report of an
        attempt is stored with its end, unless its process dies. Raises PayloadRefused for values that no database can
        store, such as NaN, and for more than ``MAX_RESULT_BYTES``.
        """
        given: object = percent
        if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given <= 100:
            raise InvalidOption("percent", f"must be a number from 0 to 100, got {_shown(given)}")
        report = dump_report({**info, "percent": percent})
        if self.attendant:
            self.attendant.report(report)

    def should_stop(self) -> bool:
        """Return whether the handler must stop: its worker stops, its time is up, or an operator cancelled it."""
        return bool(self.attendant and self.attendant.stop_reason())

    def checkpoint(self) -> None:
        """End the attempt here if it must stop. Call it where no work would be lost.

        A job whose worker stops goes back to its queue, and the attempt isn't counted.
        """
        reason = self.attendant.stop_reason() if self.attendant else None
        if reason:
            raise Interrupted(reason)

    def enqueue(self, target: Drafting | str, /, *args: Any, **fields: Any) -> str:
        """Enqueue a follow-up job, which is stored with this attempt's completion, or not at all.

        Takes a handler, as in ``ctx.enqueue(resize, image_id=7)``, a handler with ``using()`` options, or the name of a
        job type. This job becomes its parent. The new job inherits this job's tenant and workspace unless others are
        given. With another tenant, the workspace isn't inherited. Returns the id that it will have, unless its key
        already belongs to an older job. Raises the same errors as ``enqueue``.
        """
        if self.attendant is None:
            raise JobQueueError("ctx.enqueue() needs a worker that completes the attempt, and there is none here.")
        return self.attendant.follow(target, args, fields).id


def _shown(value: object) -> str:
    """Return a value in a few characters, or its type if writing it may be slow or fail."""
    if isinstance(value, (str, float)) or (isinstance(value, int) and abs(value) < 10**20):
        return f"{value!r:.20}"
    return "a larger number" if isinstance(value, int) else type(value).__name__
