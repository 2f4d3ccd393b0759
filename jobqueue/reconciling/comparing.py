"""Goes through the completed jobs whose handlers offer a comparison, and compares the last one of each subject."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobqueue import backends
from jobqueue.errors import JobQueueError
from jobqueue.handlers.reconciler import Reconciler
from jobqueue.handlers.registry import registry
from jobqueue.observe.failures import class_of, message_of
from jobqueue.policy.redaction import redact_text, secret_values
from jobqueue.reconciling.newest import Newest
from jobqueue.records import Filter, JobRecord
from jobqueue.states import JobStatus

PAGE = 100

Step = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """What a completed job left, and is not so any more. ``failed`` where the comparison itself did not succeed."""

    job_id: str
    job_type: str
    completed_at: datetime | None
    text: str
    failed: bool = False


@dataclass(slots=True)
class Summary:
    """How much was compared, and what of it was found to differ."""

    compared: int = 0
    differing: int = 0
    failed: int = 0

    def count(self, found: Discrepancy | None) -> None:
        """Count one comparison."""
        self.compared += 1
        self.failed += found is not None and found.failed
        self.differing += found is not None and not found.failed


def reconcile(
    tell: Callable[[Discrepancy], None], types: Iterable[str] = (), step: Step = lambda done, total: None
) -> Summary:
    """Compare completed jobs with the world, and tell each discrepancy as it is found.

    ``types`` narrows which types' jobs are compared; a later job of another type still counts as later. What a job
    works on just now, or has tried to, is in motion and left out. Raises UnknownJobType for a type that is unknown,
    and JobQueueError for one that offers no comparison.
    """
    asked = _asked(types)
    summary = Summary()
    with Newest() as newest:
        for job, subject in _subjects(_jobs(JobStatus.COMPLETED)):
            newest.note(subject, job.id, job.completed_at)
        for subject in _in_motion():
            newest.leave_out(subject)
        total, seen = len(newest), 0
        for ids in newest.pages(PAGE):
            for job in backends.current().find(Filter(ids=frozenset(ids)), PAGE):
                if job.type in asked and job.status is JobStatus.COMPLETED:
                    found = _compared(job, registry.reconcilers[job.type])
                    summary.count(found)
                    if found:
                        tell(found)
            seen += len(ids)
            step(seen, total)
    return summary


def _asked(types: Iterable[str]) -> frozenset[str]:
    """Read which types are meant, by whatever names their rows may carry; all that offer a comparison by default."""
    offered = registry.reconcilers
    for name in types:
        if name not in offered:
            kind = registry.get(name)
            others = f"these do: {', '.join(sorted(offered))}" if offered else "none does"
            raise JobQueueError(f"The job type {kind.name!r} offers no comparison; {others}. Nothing was compared.")
    wanted = {registry.get(name).name for name in types}
    return frozenset(name for name in offered if not wanted or registry.get(name).name in wanted)


def _jobs(status: JobStatus) -> Iterator[JobRecord]:
    """Read jobs page by page, in order of id."""
    types, after = frozenset(registry.reconcilers), None
    while types:
        page = backends.current().find(Filter(statuses=frozenset({status}), types=types), PAGE, after)
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1].id


def _in_motion() -> Iterator[str]:
    """Name what is worked on, or was by an attempt that may have done its work before it failed."""
    for status in (JobStatus.IN_PROGRESS, JobStatus.QUEUED):
        for job, subject in _subjects(_jobs(status)):
            if job.fence:
                yield subject


def _subjects(jobs: Iterable[JobRecord]) -> Iterator[tuple[JobRecord, str]]:
    """Say what each job is about; one whose payload cannot be read any more is about itself."""
    for job in jobs:
        yield job, _subject(job) or f"job:{job.id}"


def _subject(job: JobRecord) -> str:
    name = registry.reconcilers[job.type].subject
    try:
        return name(_payload(job)) if name else ""
    except Exception:  # whatever an application's function stumbles over; the comparison will tell of it
        return ""


def _payload(job: JobRecord) -> Any:
    return registry.get(job.type).payload.load(json.dumps(job.payload), job.payload_version)


def _compared(job: JobRecord, reconciler: Reconciler) -> Discrepancy | None:
    try:
        text, failed = reconciler.compare(_payload(job), job.result), False
    except Exception as error:  # one comparison that cannot be made is no reason to miss the others
        text, failed = f"The comparison failed: {class_of(error)}: {message_of(error)}", True
    if text is None:
        return None
    return Discrepancy(job.id, job.type, job.completed_at, redact_text(text, secret_values(job.payload)), failed)
