"""The health report: whether the queue is healthy, degraded or unhealthy, and the checks that decide it.

It names queues and types, but no job, tenant or host, so that a monitor outside may read it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from django.db.utils import Error as DatabaseError

from jobqueue import conf
from jobqueue.backends.base import Backend
from jobqueue.clock import SYSTEM, to_text
from jobqueue.errors import JobQueueError
from jobqueue.observe.health.evaluation import findings
from jobqueue.observe.health.finding import Cause, Finding, Level
from jobqueue.observe.health.observation import look
from jobqueue.observe.health.reading import Reading
from jobqueue.records.relay import Waiting

#: A database that takes longer than this to say what time it is, in seconds, is slow.
SLOW = 0.1
#: How many seconds a database may be silent. A monitor gives up after ten.
PATIENCE = 5.0
#: How far the jobs of each queue and type are counted. A report says that jobs wait, and not how many.
COUNTED = 100
#: The causes that have checks of their own.
_CHECKED_APART = {Cause.NO_WORKER, Cause.DEAD_LETTERS, Cause.DIED_LATELY}


class State(StrEnum):
    """How the queue is. A degraded queue works, but somebody should look at it."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    UNHEALTHY = "unhealthy"


_ORDER = list(State)


class Check(NamedTuple):
    """One thing that was looked at, and the values that decided its state."""

    name: str
    state: State
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The checks and findings of one moment, which is ``None`` if the database did not answer."""

    now: datetime | None
    checks: tuple[Check, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def state(self) -> State:
        """Return the worst state of all checks."""
        return max((one.state for one in self.checks), key=_ORDER.index)

    def document(self) -> dict[str, Any]:
        """Return the report as JSON data."""
        return {
            "status": self.state.value,
            "now": None if self.now is None else to_text(self.now),
            "checks": {one.name: {"status": one.state.value, **one.values} for one in self.checks},
            "findings": [
                {"level": one.level.word, "cause": one.cause.value, "queues": one.queues, "types": one.types}
                for one in self.findings
            ],
        }


def report(backend: Backend, outbox_of: Callable[[Backend], Waiting | None]) -> Report:
    """Check the queue. A database that doesn't answer makes an unhealthy report, not an error."""
    began = SYSTEM.monotonic()
    try:
        with backend.answering_within(PATIENCE):
            backend.now()
            database = _database(SYSTEM.monotonic() - began)
            seen = look(backend, outbox_of(backend), cap=COUNTED, dead_cap=conf.get("MAX_DEAD_LETTERS"))
    except (DatabaseError, JobQueueError) as error:
        # The message may name hosts and users.
        return Report(now=None, checks=(Check("database", State.UNHEALTHY, {"error": type(error).__name__}),))
    found = tuple(findings(seen))
    checks = (database, _workers(seen), _queues(seen, found), _dead_letters(seen))
    return Report(now=seen.now, checks=checks, findings=found)


def _database(seconds: float) -> Check:
    state = State.DEGRADED if seconds > SLOW else State.HEALTHY
    return Check("database", state, {"latency_ms": round(seconds * 1000, 2)})


def _workers(seen: Reading) -> Check:
    """Compare the live workers with ``MIN_WORKERS``. Jobs that are relayed need none here."""
    least = conf.get("MIN_WORKERS") if seen.outbox is None else 0
    alive = len(seen.alive)
    state = State.HEALTHY if alive >= least else State.DEGRADED if alive else State.UNHEALTHY
    return Check("workers", state, {"alive": alive, "minimum": least})


def _queues(seen: Reading, found: tuple[Finding, ...]) -> Check:
    causes = [one.cause.value for one in found if one.level > Level.NOTICE and one.cause not in _CHECKED_APART]
    oldest = min((row.oldest_due_at for row in seen.depths if row.oldest_due_at), default=None)
    values = {
        "queues": len({row.queue for row in seen.depths}),
        "oldest_due_seconds": None if oldest is None else max((seen.now - oldest).total_seconds(), 0.0),
        "causes": causes,
    }
    return Check("queues", State.DEGRADED if causes else State.HEALTHY, values)


def _dead_letters(seen: Reading) -> Check:
    limit = conf.get("MAX_DEAD_LETTERS")
    count = sum(row.count for row in seen.dead_letters)
    state = State.UNHEALTHY if count >= limit else State.DEGRADED if count else State.HEALTHY
    return Check("dead_letters", state, {"count": min(count, limit), "limit": limit})
