"""The metric families: the names, units and labels under which Prometheus keeps what a scrape has read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from jobqueue.observe.prometheus.names import label
from jobqueue.observe.prometheus.scrape import Scrape
from jobqueue.policy.histogram import up_to
from jobqueue.records import Lengths
from jobqueue.records.metric import ENDS

_KIND, _QUEUE = ("queue", "type"), ("queue",)
_LIMIT = ("scope", "name", "kind", "per_seconds", "key")
#: The bounds of the histograms. Each type has few, because it has all of its own series.
RUN_BOUNDS = (0.1, 1.0, 10.0, 60.0, 300.0)
WAIT_BOUNDS = (0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)
ATTEMPT_BOUNDS = (1, 2, 3, 5, 10, 25)

Buckets = list[tuple[str, float]]


def families(seen: Scrape) -> Iterator[Metric]:
    """Yield all families."""
    yield _attempts(seen)
    yield from _jobs(seen)
    yield from _histograms(seen)
    yield from _queues(seen)
    yield from _workers(seen)
    yield from _limits(seen)
    yield from _single(seen)


def _attempts(seen: Scrape) -> Metric:
    made = CounterMetricFamily(
        "jobqueue_attempts", "Attempts that ended, by what happened to the job.", labels=(*_KIND, "outcome")
    )
    for name, state in seen.kinds.items():
        for end in ENDS:
            made.add_metric([*name, end], getattr(state.tally, end))
    return made


def _jobs(seen: Scrape) -> Iterator[Metric]:
    """Yield what each queue and type has now, one value for each family."""
    for name, documentation, column in (
        ("jobqueue_jobs_waiting", "Jobs that are due, and wait for a worker.", "waiting"),
        ("jobqueue_jobs_delayed", "Queued jobs that are not due yet.", "delayed"),
        ("jobqueue_jobs_active", "Jobs that run.", "active"),
        ("jobqueue_dead_letters", "Jobs that were given up, and wait for an operator.", "dead_letters"),
        ("jobqueue_oldest_due_age_seconds", "How long the oldest due job has waited; 0 if none is due.", "oldest"),
    ):
        made = GaugeMetricFamily(name, documentation, labels=_KIND)
        for labels, state in seen.kinds.items():
            made.add_metric(labels, getattr(state, column))
        yield made


def _histograms(seen: Scrape) -> Iterator[Metric]:
    ran = HistogramMetricFamily("jobqueue_job_duration_seconds", "How long attempts ran.", labels=_KIND)
    for name, state in seen.kinds.items():
        ran.add_metric(name, _buckets(state.tally.ran, RUN_BOUNDS), state.tally.ran.total)
    waited = HistogramMetricFamily(
        "jobqueue_job_wait_seconds", "How long due jobs waited until an attempt began.", labels=_QUEUE
    )
    tries = HistogramMetricFamily("jobqueue_job_attempts", "How many attempts ended jobs took.", labels=_QUEUE)
    for queue, one in seen.queues.items():
        waited.add_metric([queue], _buckets(one.tally.waited, WAIT_BOUNDS), one.tally.waited.total)
        tries.add_metric([queue], _buckets_of_attempts(one.tally.attempts), one.tally.attempts.total)
    yield from (ran, waited, tries)


def _buckets(lengths: Lengths, bounds: tuple[float, ...]) -> Buckets:
    found: Buckets = [(str(bound), up_to(lengths.buckets, bound)) for bound in bounds]
    return [*found, ("+Inf", lengths.number)]


def _buckets_of_attempts(attempts: Lengths) -> Buckets:
    counts = [*accumulate(attempts.buckets.get(number, 0) for number in range(max(ATTEMPT_BOUNDS) + 1))]
    return [*((f"{bound}.0", counts[bound]) for bound in ATTEMPT_BOUNDS), ("+Inf", attempts.number)]


def _queues(seen: Scrape) -> Iterator[Metric]:
    paused = GaugeMetricFamily("jobqueue_queue_paused", "Whether the queue is paused: 1 or 0.", labels=_QUEUE)
    workers = GaugeMetricFamily("jobqueue_queue_workers", "Live workers that take jobs from it.", labels=_QUEUE)
    unserved = GaugeMetricFamily(
        "jobqueue_jobs_unserved", "Due jobs whose type no live worker takes, paused ones left out.", labels=_QUEUE
    )
    shed = CounterMetricFamily("jobqueue_jobs_shed", "Jobs not stored because the queue was full.", labels=_QUEUE)
    capacity = GaugeMetricFamily("jobqueue_queue_capacity", "The capacity, where the queue has one.", labels=_QUEUE)
    for queue, one in seen.queues.items():
        paused.add_metric([queue], one.paused)
        workers.add_metric([queue], one.workers)
        unserved.add_metric([queue], one.unserved)
        shed.add_metric([queue], one.shed)
        if one.capacity is not None:
            capacity.add_metric([queue], one.capacity)
    yield from (paused, workers, unserved, shed, capacity)


def _workers(seen: Scrape) -> Iterator[Metric]:
    made = GaugeMetricFamily(
        "jobqueue_workers", "Workers by state; silent ones ended without a word.", labels=["state"]
    )
    for state, number in seen.workers.items():
        made.add_metric([state], number)
    yield made
    yield GaugeMetricFamily("jobqueue_worker_slots", "Slots of live workers.", value=seen.slots)
    yield GaugeMetricFamily("jobqueue_worker_slots_busy", "Slots of live workers that run a job.", value=seen.busy)


def _limits(seen: Scrape) -> Iterator[Metric]:
    number = GaugeMetricFamily("jobqueue_limit", "The number of a limit of a type or queue.", labels=_LIMIT)
    in_use = GaugeMetricFamily(
        "jobqueue_limit_in_use", "How much of a limit is used, by the value of its key that uses most.", labels=_LIMIT
    )
    used_up = GaugeMetricFamily(
        "jobqueue_limit_values_used_up", "Values of a limit's key that use all of it.", labels=_LIMIT
    )
    found = {}
    for one in seen.limits:
        limit = one.limit
        found[limit.scope.value, label(limit.name), limit.kind.value, f"{limit.per:g}", limit.key] = one
    for labels, one in found.items():
        number.add_metric(labels, one.limit.number)
        in_use.add_metric(labels, one.in_use)
        used_up.add_metric(labels, one.used_up)
    yield from (number, in_use, used_up)


def _single(seen: Scrape) -> Iterator[Metric]:
    names = seen.names
    yield GaugeMetricFamily("jobqueue_schedules_late", "Schedules with an overdue slot.", value=seen.late_schedules)
    yield GaugeMetricFamily(
        "jobqueue_kinds_folded",
        'Pairs of queue and type that are part of the type "other", because there are too many.',
        value=names.folded_kinds,
    )
    yield GaugeMetricFamily(
        "jobqueue_queues_folded",
        'Queues that are part of the queue "other", because there are too many.',
        value=names.folded_queues,
    )
    yield GaugeMetricFamily(
        "jobqueue_kinds_capped", "Pairs of queue and type with more jobs than were counted.", value=seen.capped
    )
    if seen.outbox is not None:
        oldest = 0.0 if seen.outbox.oldest is None else (seen.now - seen.outbox.oldest).total_seconds()
        yield GaugeMetricFamily("jobqueue_outbox_jobs", "Jobs that wait to be relayed.", value=seen.outbox.count)
        yield GaugeMetricFamily(
            "jobqueue_outbox_oldest_age_seconds", "How long the oldest of them has waited.", value=max(oldest, 0.0)
        )
