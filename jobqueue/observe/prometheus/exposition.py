"""The exposition: what Prometheus gets, in the format that it accepts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client import generate_latest as plain_text
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import exposition as openmetrics

from jobqueue.backends.base import Backend
from jobqueue.observe.prometheus.families import families
from jobqueue.observe.prometheus.scrape import Scrape, scrape
from jobqueue.records.relay import Waiting

#: prometheus_client's own choice of a format fails for some values of the header.
_OPENMETRICS = "application/openmetrics-text"
_PLAIN = "text/plain; version=0.0.4; charset=utf-8"


class _Collector:
    """Yields what was read. The registry asks it once."""

    def __init__(self, seen: Scrape) -> None:
        self._seen = seen

    def collect(self) -> Iterator[Metric]:
        return families(self._seen)


def exposition(backend: Backend, outbox_of: Callable[[Backend], Waiting | None], accept: str) -> tuple[bytes, str]:
    """Return the metrics of this moment and their content type, for the value of an ``Accept`` header."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(scrape(backend, outbox_of)))
    if _OPENMETRICS in accept:
        text: bytes = openmetrics.generate_latest(registry)  # type: ignore[no-untyped-call]
        return text, openmetrics.CONTENT_TYPE_LATEST
    return plain_text(registry), _PLAIN
