"""A plain model of the queue, after docs/reference/statuses.md and the contract, independent of any backend."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from jobqueue.records import Claim, Draft, Settlement
from jobqueue.states import Move

#: Where each move leads, and whether its attempt was free.
ENDS = {
    Move.COMPLETE: ("completed", 0),
    Move.RETRY: ("queued", 0),
    Move.SNOOZE: ("queued", 1),
    Move.RELEASE: ("queued", 1),
    Move.QUARANTINE: ("queued", 1),
    Move.BURY: ("dead_letter", 0),
    Move.CANCEL: ("failed", 0),
}


class Mismatch(Exception):
    """A key belongs to a job of another type."""


@dataclass
class PlainJob:
    """One job."""

    draft: Draft
    due: datetime
    expires: datetime | None
    status: str = "queued"
    fence: int = 0
    attempts: int = 0
    crashes: int = 0
    owner: str | None = None
    until: datetime | None = None
    to_stop: bool = False
    reason: str | None = None
    ended: datetime | None = None
    result: Any = None
    progress: Any = None
    past: list[tuple[int, int, str, str]] = field(default_factory=list)

    def place(self) -> tuple[int, datetime, str]:
        return (self.draft.priority, self.due, self.draft.id)


@dataclass
class PlainQueue:
    """All jobs, by id; the moment is set from outside."""

    now: datetime
    jobs: dict[str, PlainJob] = field(default_factory=dict)
    paused: set[tuple[str, str]] = field(default_factory=set)

    def enqueue(self, drafts: list[Draft]) -> list[tuple[str, bool]]:
        """Say which job each draft came to, and whether it was made; all are stored, or none."""
        before = dict(self.jobs)
        try:
            return [self._admit(draft) for draft in drafts]
        except Mismatch:
            self.jobs = before
            raise

    def _admit(self, draft: Draft) -> tuple[str, bool]:
        holder = self._holder(draft)
        if holder is None:
            self.jobs[draft.id] = PlainJob(draft, self.now + draft.delay, draft.expires_at)
            return draft.id, True
        if holder.draft.type != draft.type:
            raise Mismatch
        return holder.draft.id, False

    def _holder(self, draft: Draft) -> PlainJob | None:
        for job in self.jobs.values():
            if draft.idempotency_key and job.draft.idempotency_key == draft.idempotency_key:
                return job
            if draft.unique_key and self._has_unique(job, draft.unique_key):
                return job
        return self.jobs.get(draft.id)

    @staticmethod
    def _has_unique(job: PlainJob, key: str) -> bool:
        return job.draft.unique_key == key and job.status in {"queued", "in_progress"}

    def claim(self, owner: str, limit: int, types: frozenset[str], queues: Any, lease: timedelta) -> list[PlainJob]:
        taken: list[PlainJob] = []
        for job in sorted(self.jobs.values(), key=PlainJob.place):
            kind, queue = job.draft.type, job.draft.queue
            open_to_it = kind in types and (queues is None or queue in queues)
            stands_still = {("type", kind), ("queue", queue)} & self.paused
            if job.status != "queued" or job.due > self.now or not open_to_it or stands_still or len(taken) == limit:
                continue
            if not self._expire(job):
                job.status, job.owner, job.until = "in_progress", owner, self.now + lease
                job.attempts, job.fence = job.attempts + 1, job.fence + 1
                job.to_stop, job.reason = False, None
                taken.append(replace(job))
        return taken

    def _expire(self, job: PlainJob) -> bool:
        if job.expires is None or job.expires > self.now:
            return False
        job.status, job.reason, job.ended = "failed", "expired", self.now
        return True

    def held(self, one: Any) -> PlainJob | None:
        """The job, if the claim is its newest one and still its own."""
        job = self.jobs.get(one.id)
        is_held = job and (job.status, job.fence, job.owner) == ("in_progress", one.fence, one.owner)
        return job if is_held else None

    def settle(self, offer: Settlement) -> bool:
        job = self.held(offer)
        if job is None:
            return False
        status, free = ENDS[offer.move]
        if offer.failure:
            job.past.append((job.fence, job.attempts, offer.owner, offer.failure.ending.value))
        job.attempts -= free
        job.crashes += offer.move is Move.QUARANTINE
        job.owner = job.until = None
        job.result = None if offer.result is None else 1
        if status == "queued" and not job.to_stop:
            job.status, job.reason, job.ended = "queued", None, None
            job.due = job.due if offer.delay is None else self.now + offer.delay
            return True
        job.status, job.reason = ("failed", "cancelled") if status == "queued" else (status, offer.end_reason)
        job.ended = self.now
        for child in offer.children if status == "completed" else ():
            try:
                self._admit(child)
            except Mismatch:
                continue
        return True

    def extend(self, claim: Claim, lease: timedelta) -> str:
        job = self.held(claim)
        if job is None:
            return "lost"
        job.until = self.now + lease
        return "to stop" if job.to_stop else "kept"

    def sweep(self) -> tuple[set[tuple[str, int]], set[str]]:
        """End leases that ran out; a job in company is not to blame, and one whose attempts are used up is given up."""
        late = {job.draft.id for job in self.jobs.values() if job.status == "queued" and self._expire(job)}
        running = [job for job in self.jobs.values() if job.status == "in_progress"]
        company = [job.owner for job in running]
        ended = set()
        for job in running:
            if job.until is not None and job.until < self.now:
                ended.add((job.draft.id, job.fence))
                self._end_lease(job, in_company=company.count(job.owner) > 1)
        return ended, late

    def _end_lease(self, job: PlainJob, *, in_company: bool) -> None:
        job.past.append((job.fence, job.attempts, str(job.owner), "lease_lost"))
        job.owner = job.until = job.result = None
        spared = in_company and not job.crashes
        given_up = not spared and job.attempts >= job.draft.max_retries
        if spared:
            job.attempts, job.crashes = job.attempts - 1, 1
        if given_up:
            job.status, job.reason, job.ended = "dead_letter", "lease lost", self.now
        elif job.to_stop:
            job.status, job.reason, job.ended = "failed", "cancelled", self.now
        else:
            job.status, job.reason, job.ended = "queued", None, None
            job.due = job.due if spared else self.now

    def cancel(self, job_id: str) -> bool:
        job = self.jobs.get(job_id)
        if job is None or job.status not in {"queued", "in_progress"}:
            return False
        if job.status == "in_progress":
            job.to_stop = True
        else:
            job.status, job.reason, job.ended = "failed", "cancelled", self.now
        return True

    def retry(self, job_id: str) -> bool:
        job = self.jobs.get(job_id)
        if job is None or job.status not in {"failed", "dead_letter"}:
            return False
        key = job.draft.unique_key
        if key and any(self._has_unique(other, key) for other in self.jobs.values()):
            return False
        fresh = PlainJob(job.draft, self.now, None, fence=job.fence, past=job.past)
        self.jobs[job_id] = fresh
        return True

    def purge(self, job_id: str) -> bool:
        job = self.jobs.get(job_id)
        if job is None or job.status == "in_progress":
            return False
        del self.jobs[job_id]
        return True
