"""Retention: which jobs that have ended are deleted, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from jobqueue.states import JobStatus

#: The statuses of jobs that have ended.
ENDED = (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.DEAD_LETTER)
#: What the name of an archive begins with if it is in one of Django's storages, before the alias of that.
STORAGE = "storage:"


@dataclass(frozen=True, slots=True)
class Rule:
    """What is kept of the ended jobs of a status, or of a type or queue of that status.

    Jobs are deleted ``keep`` after their end, and if there are ``keep_last`` newer ones of the same rule. ``None`` sets
    no limit.
    """

    status: JobStatus
    keep: timedelta | None = None
    keep_last: int | None = None
    type: str | None = None
    queue: str | None = None
    #: The folder, or the storage, in which jobs are archived before they are deleted.
    archive: str | None = None

    def concerns(self, status: str, kind: str, queue: str) -> bool:
        """Return whether this rule applies to a job for which there is no more specific one."""
        return self.status == status and self.type in (None, kind) and self.queue in (None, queue)

    @property
    def weight(self) -> tuple[bool, bool]:
        """How specific the rule is: most for a type and a queue, then for a type, then for a queue."""
        return self.type is not None, self.queue is not None

    @property
    def deletes(self) -> bool:
        """Return whether the rule sets any limit."""
        return self.keep is not None or self.keep_last is not None


@dataclass(frozen=True, slots=True)
class EndedJob:
    """A job as retention sees it. ``key`` is its place in the table, and ``ended_at`` when it ended."""

    key: int | str
    id: str
    type: str
    queue: str
    status: str
    ended_at: datetime


def rule_for(rules: Sequence[Rule], status: str, kind: str, queue: str) -> Rule | None:
    """Return the rule that decides about a job: the most specific one."""
    concerned = (rule for rule in rules if rule.concerns(status, kind, queue))
    return max(concerned, key=lambda rule: rule.weight, default=None)


def is_over(rule: Rule, ended_at: datetime, now: datetime, newer: int) -> bool:
    """Return whether a job is to be deleted that has ``newer`` newer ones of the same rule."""
    is_old = rule.keep is not None and now - ended_at > rule.keep
    return is_old or (rule.keep_last is not None and newer >= rule.keep_last)


def youngest(rules: Sequence[Rule]) -> timedelta:
    """Return the age that a job has at least if it is deleted. It is zero if a rule counts jobs."""
    if any(rule.keep_last is not None for rule in rules):
        return timedelta(0)
    return min((rule.keep for rule in rules if rule.keep is not None), default=timedelta(0))
