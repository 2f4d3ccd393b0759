"""The observation of the queue: everything that an evaluation uses, read in bounded time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from jobqueue import conf, queues
from jobqueue.alert_settings import alert_settings
from jobqueue.backends.base import Backend
from jobqueue.handlers.registry import registry
from jobqueue.observe.health.failures import LATELY, PAST, WINDOWS
from jobqueue.observe.health.finding import Cause
from jobqueue.observe.health.flow import FLOOD_AT, FLOOD_FOR, STALLED_FOR, STUCK_FOR
from jobqueue.observe.health.kinds import critical_types, own_limits
from jobqueue.observe.health.lanes import strict_lanes
from jobqueue.observe.health.limits import withheld_jobs
from jobqueue.observe.health.reading import Reading
from jobqueue.observe.health.schedules import LATE
from jobqueue.observe.health.thresholds import SLOWEST
from jobqueue.observe.health.workers import RESTART
from jobqueue.policy.alerts.rules import RuleBook
from jobqueue.policy.histogram import ERROR
from jobqueue.policy.stretches import begin_of, together
from jobqueue.records import COUNTED_TO, MOST_GROUPS, Depth, Filter, Lengths, MetricSum, QueueOptions, Scope
from jobqueue.records.metric import ENDS
from jobqueue.records.relay import Waiting
from jobqueue.states import JobStatus

#: How far behind a renewal may be before its lease counts as ended.
GRACE = timedelta(seconds=5)
#: How many queues are counted up to their capacity, and of how many queues and types the tenants are sampled.
COUNTED_FURTHER, SAMPLED = 10, 5
#: Of how many types that may be slow the running times are read.
READ_FURTHER = 10
_MINUTE, _HOUR = timedelta(minutes=1), timedelta(hours=1)


def look(
    backend: Backend, outbox: Waiting | None = None, *, cap: int = COUNTED_TO, dead_cap: int = COUNTED_TO
) -> Reading:
    """Read everything. ``outbox`` says how the relay of its jobs fares, if they are relayed.

    Waiting jobs and dead letters are counted up to ``cap`` and ``dead_cap`` for each queue and type.
    """
    now, depths, capacity = backend.now(), backend.metrics.depths(cap), conf.get("CAPACITY")
    gauges = {one.queue: one for one in backend.gauges.all()}
    options = {name: queues.options_of(name) for name in {row.queue for row in depths} | gauges.keys()}
    dead_letters, attempts = backend.health.dead_letters(dead_cap), _attempts(backend, now)
    rules, critical = alert_settings().rules, critical_types()
    return Reading(
        now=now,
        depths=depths,
        in_part=len(depths) >= MOST_GROUPS,
        counts=dict(_counts(backend, depths, capacity, options)),
        pauses=backend.operator.pauses(),
        workers=backend.workers.all(),
        outbox=outbox,
        dead_letters=dead_letters,
        dead_in_part=len(dead_letters) >= MOST_GROUPS,
        lapsed=backend.health.lapsed_leases(GRACE),
        quiet=backend.health.quiet_jobs(STUCK_FOR),
        tenants=_tenants(backend, depths, now),
        withheld=withheld_jobs(backend, depths, now),
        lanes=strict_lanes(backend, depths, options, now),
        attempts=attempts,
        moving=_moving(backend, now),
        busy_at=_busy_at(backend, now),
        skew=backend.health.clock_skew(),
        known_types=registry.names,
        capacity=capacity,
        options=options,
        gauges=gauges,
        storage=backend.storage.read(),
        duties=backend.duties.all(),
        late_schedules=backend.schedules.late(LATE),
        rules=rules,
        critical=backend.health.critical_dead(critical) if critical else (),
        ran=_ran(backend, now, attempts[LATELY], rules),
        own_limits=own_limits(attempts[LATELY]),
    )


def _counts(
    backend: Backend, depths: Sequence[Depth], capacity: int, options: Mapping[str, QueueOptions]
) -> Iterator[tuple[str, int]]:
    """Count the queues up to their capacity whose depth was not counted that far."""
    counted: dict[str, int] = {}
    for row in depths:
        counted[row.queue] = counted.get(row.queue, 0) + row.queued
    most = {name: options[name].capacity or capacity for name in counted}
    capped = {row.queue for row in depths if row.capped and counted[row.queue] < most[row.queue]}
    for name in sorted(capped, key=lambda name: -counted[name])[:COUNTED_FURTHER]:
        queued = Filter(statuses=frozenset({JobStatus.QUEUED}), queues=frozenset({name}))
        yield name, backend.jobs.count(queued, most[name])


def _tenants(backend: Backend, depths: Sequence[Depth], now: datetime) -> Mapping[tuple[str, str], Mapping[str, int]]:
    """Sample the tenants of the largest backlogs that have lasted."""
    deep = filter(_is_deep, depths)
    lasting = [row for row in deep if row.oldest_due_at and now - row.oldest_due_at >= FLOOD_FOR]
    largest = sorted(lasting, key=lambda row: -row.due)[:SAMPLED]
    return {(row.queue, row.type): backend.health.tenants(row.queue, row.type) for row in largest}


def _is_deep(row: Depth) -> bool:
    """Return whether enough jobs are due for a flood, or as many as were counted."""
    return row.due >= FLOOD_AT or (row.capped and row.due >= row.queued)


def _attempts(backend: Backend, now: datetime) -> dict[timedelta, dict[str, MetricSum]]:
    """Sum up the attempts of each type, in each window and in the past."""
    spans = dict.fromkeys(WINDOWS, _MINUTE) | {PAST: _HOUR}
    found = {
        window: backend.metrics.totals(Scope.TYPE, int(span.total_seconds()), _begin(now, window, span))
        for window, span in spans.items()
    }
    return {window: {one.name: one for one in sums} for window, sums in found.items()}


def _ran(backend: Backend, now: datetime, sums: Mapping[str, MetricSum], rules: RuleBook) -> dict[str, Lengths]:
    """Read how long the jobs of types ran that may be slow, the slowest first.

    A type is slow only if a twentieth of its jobs ran for longer than the threshold. Their sum tells this of most
    types without a look at each.
    """
    means = {}
    for name, one in sums.items():
        rule = rules.rule(Cause.SLOW, type=name)
        if rule.threshold is not None and one.ran >= max(rule.least, 1):
            mean = one.ran_for / one.ran
            if mean >= (1 - SLOWEST) * rule.threshold / ERROR:
                means[name] = mean
    slowest = sorted(means, key=lambda name: -means[name])[:READ_FURTHER]
    since = _begin(now, LATELY, _MINUTE)
    return {
        name: together(one.tally for one in backend.metrics.stretches(60, since, job_type=name)).ran for name in slowest
    }


def _moving(backend: Backend, now: datetime) -> frozenset[str]:
    sums = backend.metrics.totals(Scope.QUEUE, 60, _begin(now, STALLED_FOR, _MINUTE))
    return frozenset(one.name for one in sums if any(getattr(one, end) for end in ENDS))


def _busy_at(backend: Backend, now: datetime) -> datetime | None:
    """Return the last minute in which a worker counted attempts, or the depth of the queue."""
    return max((one.begins_at for one in backend.metrics.stretches(60, now - RESTART)), default=None)


def _begin(now: datetime, window: timedelta, span: timedelta) -> datetime:
    """Return the beginning of the first stretch of a window, of which the last stretch isn't over yet."""
    return begin_of(now, int(span.total_seconds())) + span - window
