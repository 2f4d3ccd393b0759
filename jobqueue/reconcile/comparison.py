"""The comparison of the last completed job of each subject with the world."""

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
from jobqueue.reconcile.newest import Newest
from jobqueue.records import Filter, JobRecord
from jobqueue.states import JobStatus

PAGE = 100

Step = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """A difference between a completed job and the world. ``failed`` means that the comparison itself failed."""

    job_id: str
    job_type: str
    completed_at: datetime | None
    text: str
    failed: bool = False


@dataclass(slots=True)
class Summary:
    """The numbers of comparisons, differences and failures."""

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
    """Compare completed jobs with the world, and pass each discrepancy to ``tell`` as it is found.

    ``types`` limits the comparison to jobs of these types. A job isn't compared if a later job of any type has its
    subject. Subjects of running jobs, and of queued jobs with earlier attempts, are left out, because they may be
    changing. Raises UnknownJobType for an unknown type, and JobQueueError for one without a comparison.
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
            for job in backends.current().jobs.find(Filter(ids=frozenset(ids)), PAGE):
                if job.type in asked and job.status is JobStatus.COMPLETED:
                    found = _compared(job, registry.reconcilers[job.type])
                    summary.count(found)
                    if found:
                        tell(found)
            seen += len(ids)
            step(seen, total)
    return summary


def _asked(types: Iterable[str]) -> frozenset[str]:
    """Return the requested types with their aliases, by default all that have a comparison."""
    offered = registry.reconcilers
    for name in types:
        if name not in offered:
            kind = registry.get(name)
            others = f"these do: {', '.join(sorted(offered))}" if offered else "no type does"
            raise JobQueueError(f"The job type {kind.name!r} offers no comparison; {others}. Nothing was compared.")
    wanted = {registry.get(name).name for name in types}
    return frozenset(name for name in offered if not wanted or registry.get(name).name in wanted)


def _jobs(status: JobStatus) -> Iterator[JobRecord]:
    """Yield jobs in order of id, read page by page."""
    types, after = frozenset(registry.reconcilers), None
    while types:
        page = backends.current().jobs.find(Filter(statuses=frozenset({status}), types=types), PAGE, after)
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1].id


def _in_motion() -> Iterator[str]:
    """Yield the subjects of running jobs, and of queued jobs whose failed attempts may have changed something."""
    for status in (JobStatus.IN_PROGRESS, JobStatus.QUEUED):
        for job, subject in _subjects(_jobs(status)):
            if job.fence:
                yield subject


def _subjects(jobs: Iterable[JobRecord]) -> Iterator[tuple[JobRecord, str]]:
    """Yield each job with its subject. A job whose payload can't be read is a subject of its own."""
    for job in jobs:
        yield job, _subject(job) or f"job:{job.id}"


def _subject(job: JobRecord) -> str:
    name = registry.reconcilers[job.type].subject
    try:
        return name(_payload(job)) if name else ""
    except Exception:  # any error of an application's function; the comparison will report it
        return ""


def _payload(job: JobRecord) -> Any:
    return registry.get(job.type).payload.load(json.dumps(job.payload), job.payload_version)


def _compared(job: JobRecord, reconciler: Reconciler) -> Discrepancy | None:
    try:
        text, failed = reconciler.compare(_payload(job), job.result), False
    except Exception as error:  # one failed comparison must not prevent the others
        text, failed = f"The comparison failed: {class_of(error)}: {message_of(error)}", True
    if text is None:
        return None
    return Discrepancy(job.id, job.type, job.completed_at, redact_text(text, secret_values(job.payload)), failed)
