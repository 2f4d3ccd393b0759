"""How long jobs wait and run, by type, from the stretches that workers store."""

from __future__ import annotations

from typing import NamedTuple

from jobqueue.backends.base import Backend
from jobqueue.observe.metrics import Times, Window
from jobqueue.policy.histogram import percentile
from jobqueue.policy.stretches import begin_of
from jobqueue.records import Lengths, MetricSum, Scope


class TypeDurations(NamedTuple):
    """The attempts of a type, and the percentiles of how long they waited and ran, in seconds within 10 %."""

    type: str
    attempts: int
    waited: Times
    ran: Times
    mean_ran: float | None


def durations(backend: Backend, window: Window, limit: int, job_type: str | None = None) -> list[TypeDurations]:
    """Return the durations of the types with the most attempts in a window that ends now, at most ``limit``."""
    span = int(window.span.total_seconds())
    since = begin_of(backend.now(), span) + window.span - window.length
    sums = backend.metrics.totals(Scope.TYPE, span, since, job_type=job_type or "")
    largest = sorted((one for one in sums if one.ran), key=lambda one: (-one.ran, one.name))[:limit]
    lengths = backend.metrics.lengths(span, since, [one.name for one in largest])
    return [_of_type(one, *lengths.get(one.name, (Lengths(), Lengths()))) for one in largest]


def _of_type(one: MetricSum, waited: Lengths, ran: Lengths) -> TypeDurations:
    return TypeDurations(one.name, one.ran, _times(waited), _times(ran), one.ran_for / one.ran)


def _times(lengths: Lengths) -> Times:
    return Times(*(percentile(lengths.buckets, share) for share in (0.5, 0.95, 0.99)))
