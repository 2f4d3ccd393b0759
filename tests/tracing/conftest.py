"""SDKs that record what they would send."""

from __future__ import annotations

import json

import pytest
import sentry_sdk
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from sentry_sdk.integrations.logging import LoggingIntegration
from sentry_sdk.transport import Transport

from jobqueue.tracing import tracer
from tests.worker.conftest import jobs, ledger, start_worker

__all__ = ["jobs", "ledger", "lifecycle", "meter", "mistakes", "sentry", "spans", "start_worker"]


@pytest.fixture(autouse=True)
def mistakes(monkeypatch):
    """The errors of tracing, which would only be logged. A test that expects some takes them away."""
    found = []
    monkeypatch.setattr(tracer, "_note", found.append)
    yield found
    assert found == []


class Recorded:
    """The spans that ended, by name."""

    def __init__(self, exporter):
        self._exporter = exporter

    def all(self):
        return self._exporter.get_finished_spans()

    def named(self, name):
        return [one for one in self.all() if one.name == name]

    def one(self, name):
        [found] = self.named(name)
        return found


@pytest.fixture
def spans(monkeypatch):
    """The spans of OpenTelemetry's SDK, which is set up for one test."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return Recorded(exporter)


@pytest.fixture
def meter(monkeypatch):
    """A function that returns the points of a metric."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: provider)

    def points(name):
        data = reader.get_metrics_data()
        found = [one for whole in data.resource_metrics for scope in whole.scope_metrics for one in scope.metrics]
        return [point for one in found if one.name == name for point in one.data.data_points]

    return points


class Envelopes(Transport):
    """A transport that records envelopes."""

    def __init__(self, options=None):
        super().__init__(options)
        self.items = []

    def capture_envelope(self, envelope):
        self.items += [(item.headers["type"], json.loads(item.get_bytes())) for item in envelope.items]

    def of_type(self, kind):
        return [content for found, content in self.items if found == kind]


@pytest.fixture(params=["static", "stream"], ids=["transactions", "streamed"])
def lifecycle(request):
    """Both modes of Sentry's SDK."""
    return request.param


class SentryRecord:
    """What Sentry's client has sent."""

    def __init__(self, transport, lifecycle):
        self._transport = transport
        self.is_streaming = lifecycle == "stream"

    @property
    def text(self):
        sentry_sdk.flush()
        return json.dumps(self._transport.items)

    @property
    def events(self):
        sentry_sdk.flush()
        return self._transport.of_type("event")

    @property
    def check_ins(self):
        sentry_sdk.flush()
        return self._transport.of_type("check_in")

    def spans(self, op):
        """The trace id, span id, parent, status and data of all spans of one kind, in both modes."""
        sentry_sdk.flush()
        if self.is_streaming:
            every = [span for batch in self._transport.of_type("span") for span in batch["items"]]
            found = [(one, {key: value["value"] for key, value in one["attributes"].items()}) for one in every]
            return [(one, data) for one, data in found if data.get("sentry.op") == op]
        every = []
        for one in self._transport.of_type("transaction"):
            every += [one["contexts"]["trace"], *one["spans"]]
        return [(one, one.get("data", {})) for one in every if one["op"] == op]

    def start(self, name):
        """Begin a trace as a web request does."""
        if self.is_streaming:
            return sentry_sdk.traces.start_span(name, parent_span=None)
        return sentry_sdk.start_transaction(name=name, op="http.server")


@pytest.fixture
def sentry(lifecycle):
    """What Sentry's SDK sends. It is initialised for one test, without patches but for the log."""
    transport = Envelopes()
    sentry_sdk.init(
        "http://key@127.0.0.1:1/1",
        transport=transport,
        traces_sample_rate=1.0,
        trace_lifecycle=lifecycle,
        default_integrations=False,
        integrations=[LoggingIntegration()],
        auto_enabling_integrations=False,
    )
    yield SentryRecord(transport, lifecycle)
    sentry_sdk.get_client().close()
    sentry_sdk.get_global_scope().set_client(None)
