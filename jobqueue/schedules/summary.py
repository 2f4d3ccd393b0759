"""What people see of a schedule: its state, its next slots, its last runs. Secrets are redacted here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice

from jobqueue import backends, foreign_json
from jobqueue.errors import InvalidOption
from jobqueue.policy.redaction import redact_data, redact_text, secret_values
from jobqueue.policy.schedules.plan import upcoming
from jobqueue.policy.schedules.rule import read_rule
from jobqueue.records import JobRecord
from jobqueue.records.schedule import ScheduleRecord
from jobqueue.schedules.sync import differences
from jobqueue.states import JobStatus

_COUNTED = (JobStatus.COMPLETED, JobStatus.DEAD_LETTER)


class ScheduleState(StrEnum):
    """The states of a schedule, the most urgent first."""

    TROUBLE = "trouble"
    UNKNOWN_TYPE = "unknown type"
    LEFT_CODE = "left the code"
    PAUSED = "paused"
    ENDED = "ended"
    ACTIVE = "active"


@dataclass(frozen=True)
class Run:
    """A job of a schedule. ``slot_at`` is ``None`` if an operator started it."""

    slot_at: datetime | None
    job: JobRecord

    @property
    def duration(self) -> timedelta | None:
        """Return how long its last attempt took."""
        if self.job.started_at is None or self.job.completed_at is None:
            return None
        return self.job.completed_at - self.job.started_at

    @property
    def error(self) -> str | None:
        """Return the error of its last attempt, redacted."""
        job = self.job
        return None if job.error is None else redact_text(job.error, secret_values([job.payload, job.context]))


def state_of(schedule: ScheduleRecord, known: frozenset[str] | None) -> ScheduleState:
    """Return a schedule's state. ``known`` are the types of live workers; ``None`` means that no worker is up."""
    if schedule.trouble:
        return ScheduleState.TROUBLE
    if schedule.left_code_at is not None:
        return ScheduleState.LEFT_CODE
    if schedule.paused_at is not None:
        return ScheduleState.PAUSED
    if schedule.next_at is None:
        return ScheduleState.ENDED
    if known is not None and schedule.type not in known:
        return ScheduleState.UNKNOWN_TYPE
    return ScheduleState.ACTIVE


def known_types() -> frozenset[str] | None:
    """Return the job types that live workers know, or ``None`` if no worker is up."""
    backend = backends.current()
    now = backend.now()
    alive = [one for one in backend.workers.all() if one.is_alive(now)]
    return frozenset(name for one in alive for name in one.types) if alive else None


def in_words(schedule: ScheduleRecord) -> str:
    """Return the rule in words, or an empty text for a rule that can't be read."""
    try:
        return read_rule(schedule.rule, schedule.zone).in_words()
    except InvalidOption:
        return ""


def payload_of(schedule: ScheduleRecord) -> str:
    """Return the payload as JSON, redacted."""
    read = foreign_json.read(schedule.payload)
    return redact_text(schedule.payload) if isinstance(read, foreign_json.Unreadable) else written(redact_data(read))


def written(value: object) -> str:
    """Return a value as text, or as JSON. JSON may spell halves of surrogate pairs, which no page can show."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode(errors="backslashreplace").decode()


def changes_of(schedule: ScheduleRecord) -> dict[str, tuple[object, object]]:
    """Return the fields that an operator changed, with the code's value and the operator's, redacted."""
    return {name: (redact_data(code), redact_data(now)) for name, (code, now) in differences(schedule).items()}


def next_slots(schedule: ScheduleRecord, count: int) -> list[datetime]:
    """Return the next slots after now, as if the schedule weren't paused."""
    now = backends.current().now()
    try:
        rule = read_rule(schedule.rule, schedule.zone, schedule.start_at)
    except InvalidOption:
        return []
    left = count if schedule.max_runs is None else min(count, max(0, schedule.max_runs - schedule.runs))
    return list(islice(upcoming(schedule, rule, max(now, schedule.last_slot_at)), left))


def runs_of(schedule: ScheduleRecord, limit: int = 50) -> list[Run]:
    """Return the newest runs, the newest first."""
    return [Run(slot, job) for slot, job in backends.current().schedules.jobs(schedule, limit)]


def success_rate(runs: Sequence[Run]) -> float | None:
    """Return which share of the finished runs completed. Cancelled runs don't count."""
    finished = [one for one in runs if one.job.status in _COUNTED]
    good = sum(one.job.status is JobStatus.COMPLETED for one in finished)
    return good / len(finished) if finished else None
