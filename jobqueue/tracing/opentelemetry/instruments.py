"""The metrics of this process: jobs sent and consumed, and how long the operations and handlers take."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from opentelemetry import metrics
from opentelemetry.metrics import Counter, Histogram, MeterProvider

from jobqueue.tracing.opentelemetry import names
from jobqueue.version import __version__

#: The bounds that the conventions advise, in seconds. Those of the SDK are made for milliseconds.
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)


@dataclass(frozen=True, slots=True)
class Instruments:
    """The instruments of one provider."""

    sent: Counter
    consumed: Counter
    operation: Histogram
    process: Histogram


def instruments() -> Instruments:
    """Return the instruments of the provider that is set."""
    return _of(metrics.get_meter_provider())


@lru_cache(maxsize=4)
def _of(provider: MeterProvider) -> Instruments:
    meter = provider.get_meter("jobqueue", __version__)

    def histogram(name: str, about: str) -> Histogram:
        return meter.create_histogram(name, "s", about, explicit_bucket_boundaries_advisory=_BOUNDS)

    return Instruments(
        sent=meter.create_counter(names.SENT, "{message}", "Jobs that this process enqueued."),
        consumed=meter.create_counter(names.CONSUMED, "{message}", "Jobs that this process began to run."),
        operation=histogram(names.OPERATION_DURATION, "How long enqueueing and settling take."),
        process=histogram(names.PROCESS_DURATION, "How long attempts take."),
    )
