"""What a handler may know of the attempt it is part of, and what it may ask of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from jobqueue.errors import Interrupted, InvalidOption, JobQueueError, StopReason
from jobqueue.handlers.payload import dump_report
from jobqueue.records import Draft


class Drafting(Protocol):
    """A handler, as far as a follow-up job needs it."""

    def draft(self, *args: Any, **kwargs: Any) -> Draft:
        """Decide a job without storing it."""
        ...


class Attending(Protocol):
    """Who attends the attempt while it runs: the worker, or a test."""

    def report(self, text: str) -> None:
        """Take a report of progress, as JSON text."""
        ...

    def stop_reason(self) -> StopReason | None:
        """Say why the handler shall stop, if it shall."""
        ...

    def follow(self, target: Drafting | str, args: tuple[Any, ...], fields: dict[str, Any]) -> Draft:
        """Decide a follow-up job and keep it until the attempt is completed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext:
    """The attempt a handler runs in. ``fence`` grows with each claim; outside systems can compare it."""

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
        """Tell how far the work is, from 0 to 100, with whatever else helps to see it.

        It is shown within about a second; of reports that follow each other closely, the last one is kept. The last one
        of all is stored with the end of the attempt, unless its process dies. Raises PayloadRefused for what no
        database can store, such as NaN, and for more than ``MAX_RESULT_BYTES``.
        """
        given: object = percent
        if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given <= 100:
            raise InvalidOption("percent", f"must be a number from 0 to 100, got {_shown(given)}")
        report = dump_report({**info, "percent": percent})
        if self.attendant:
            self.attendant.report(report)

    def should_stop(self) -> bool:
        """Whether the handler shall come to an end: its worker stops, its time is up, or an operator cancelled it."""
        return bool(self.attendant and self.attendant.stop_reason())

    def checkpoint(self) -> None:
        """End the attempt here if it shall stop: a moment at which nothing is lost.

        A job whose worker stops goes back to its queue and has its attempt back.
        """
        reason = self.attendant.stop_reason() if self.attendant else None
        if reason:
            raise Interrupted(reason)

    def enqueue(self, target: Drafting | str, /, *args: Any, **fields: Any) -> str:
        """Enqueue a follow-up job: it is stored with this attempt's completion, or not at all.

        Takes a handler, ``ctx.enqueue(resize, image_id=7)``, or ``using()`` of one, or a job type's name. The job knows
        this one as its parent and has its tenant and workspace, unless it is given others; with another tenant it has
        no workspace but its own. Returns the id that it will have, unless its key already belongs to an older job.
        Raises as ``enqueue`` does.
        """
        if self.attendant is None:
            raise JobQueueError("ctx.enqueue() needs a worker that completes the attempt; here there is none.")
        return self.attendant.follow(target, args, fields).id


def _shown(value: object) -> str:
    """Show a value in a few letters; of what may take long to write, or fail at that, the type."""
    if isinstance(value, (str, float)) or (isinstance(value, int) and abs(value) < 10**20):
        return f"{value!r:.20}"
    return "a larger number" if isinstance(value, int) else type(value).__name__
