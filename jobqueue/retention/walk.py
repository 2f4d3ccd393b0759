"""A walk over the table of jobs, from the newest to the oldest, that prunes what the rules don't keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from jobqueue.archive.pack import store
from jobqueue.archive.place import place_of
from jobqueue.backends.base import Backend
from jobqueue.backends.ports.retention import Place
from jobqueue.clock import SYSTEM
from jobqueue.ids import is_ulid, least_id
from jobqueue.policy.retention import EndedJob, Rule, is_over, rule_for, youngest

#: How long a step should take at most, in seconds: half of the time that another writer may wait for it.
STEP = 0.01
#: The bounds of the number of jobs that a step reads, and the number of the first step.
_FEWEST, _FIRST, _MOST = 10, 50, 2_000


class Group(NamedTuple):
    """The jobs of a status, type and queue."""

    status: str
    type: str
    queue: str


class Walk:
    """One pass over the table in short steps. With ``dry_run``, it counts what it would prune."""

    def __init__(self, backend: Backend, rules: Sequence[Rule], *, dry_run: bool = False) -> None:
        self._backend = backend
        self._rules = rules
        self._dry_run = dry_run
        self._now = backend.now()
        self._place: Place = None
        self._size = _FIRST
        self._met: Counter[Rule] = Counter()
        self._known: dict[Group, Rule | None] = {}
        self._skip_from = self._young(self._now)
        #: How many jobs were pruned, by group.
        self.pruned: Counter[Group] = Counter()
        self.is_over = not any(rule.deletes for rule in rules)

    def _young(self, now: datetime) -> str | None:
        """Return the least id of the jobs that are too young for all rules, or ``None`` if no age protects a job."""
        age = youngest(self._rules)
        return least_id(now - age) if age else None

    def step(self) -> int:
        """Read some jobs, and delete those that are over. Return how many were deleted."""
        began = SYSTEM.monotonic()
        found, place = self._backend.retention.walk(self._place, self._size)
        over = [job for job in found if self._is_over(job)]
        gone = over if self._dry_run or not over else self._prune(over)
        self.pruned.update(Group(job.status, job.type, job.queue) for job in gone)
        self._go_on(found, place)
        self._fit(SYSTEM.monotonic() - began)
        return len(gone)

    def _prune(self, over: Sequence[EndedJob]) -> list[EndedJob]:
        """Delete jobs. Those whose rule says so are archived first."""
        archives: dict[str, list[EndedJob]] = {}
        for job in over:
            rule = self._rule_of(Group(job.status, job.type, job.queue))
            if rule is not None and rule.archive:
                archives.setdefault(rule.archive, []).append(job)
        for archive, jobs in archives.items():
            statuses = {job.id: job.status for job in jobs}
            rows = self._backend.retention.rows(list(statuses))
            # A job that was retried meanwhile stays in the table.
            ended = [row for row in rows if row["status"] == statuses.get(row["id"], row["status"])]
            store(place_of(archive), ended)
        return self._backend.retention.prune(over)

    def _is_over(self, job: EndedJob) -> bool:
        rule = self._rule_of(Group(job.status, job.type, job.queue))
        if rule is None:
            return False
        newer = self._met[rule]
        self._met[rule] += 1
        return is_over(rule, job.ended_at, self._now, newer)

    def _rule_of(self, group: Group) -> Rule | None:
        if group not in self._known:
            self._known[group] = rule_for(self._rules, *group)
        return self._known[group]

    def _go_on(self, found: Sequence[EndedJob], place: Place) -> None:
        """Go on behind what was read. Skip the range of ids that are too young, which are those of most jobs."""
        if self._skip_from is not None and any(self._is_young(job.id) for job in found):
            place = self._backend.retention.before(self._skip_from)
            self._skip_from = None
        self._place, self.is_over = place, place is None

    def _is_young(self, job_id: str) -> bool:
        return is_ulid(job_id) and self._skip_from is not None and job_id >= self._skip_from

    def _fit(self, seconds: float) -> None:
        """Choose the size of the next step by the time that this one took."""
        if seconds > STEP:
            self._size = max(_FEWEST, self._size // 2)
        elif seconds < STEP / 2:
            self._size = min(_MOST, self._size * 2)
