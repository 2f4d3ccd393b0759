"""The evaluation: from a reading to findings, one for each cause."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jobqueue.observe.health import duties, failures, flow, lanes, limits, schedules, storage, thresholds, workers
from jobqueue.observe.health.finding import Cause, Finding, Level, summed_up
from jobqueue.observe.health.reading import Reading

#: A cause finds its problems in a reading. To add one, write such a function, name its ``Cause``, and give it a
#: sentence in ``sentences``.
Find = Callable[[Reading], Iterator[Finding]]

#: The causes that any queue may have, and those of a queue whose jobs are relayed to another or run here.
_ANYWHERE: tuple[Find, ...] = (
    flow.queue_full,
    flow.pause_forgotten,
    flow.paused,
    storage.snapshot_held,
    storage.dead_rows_kept,
    storage.log_large,
    duties.duty_failing,
    schedules.schedule_late,
    schedules.schedule_in_trouble,
)
_RELAYED: tuple[Find, ...] = (flow.relay_lost, flow.relay_idle)
_RUN_HERE: tuple[Find, ...] = (
    workers.no_worker,
    workers.job_left_out,
    workers.queue_not_served,
    workers.type_not_served,
    workers.workers_stopping,
    workers.type_unknown,
    workers.held_by_dead,
    workers.worker_silent,
    workers.clocks_apart,
    failures.failing,
    failures.died_lately,
    thresholds.critical_dead,
    thresholds.success_low,
    thresholds.slow,
    thresholds.dead_letters,
    flow.queue_stalled,
    thresholds.queue_deep,
    flow.overdue,
    flow.progress_stuck,
    flow.tenant_flood,
    limits.limit_used_up,
    lanes.lane_stopped,
)
_ORDER = {cause: place for place, cause in enumerate(Cause)}


def findings(seen: Reading) -> list[Finding]:
    """Return what is wrong, one finding for each cause, the worst first."""
    causes = (*_ANYWHERE, *(_RUN_HERE if seen.outbox is None else _RELAYED))
    each = (tuple(one for part in find(seen) if (one := thresholds.judged(part, seen))) for find in causes)
    found = [summed_up(parts) for parts in each if parts]
    return sorted(found, key=lambda one: (-one.level, _ORDER[one.cause]))


def level_of(found: list[Finding]) -> Level:
    """Return the worst level of findings. Notices are no alarm."""
    return max((one.level for one in found if one.level > Level.NOTICE), default=Level.OK)
