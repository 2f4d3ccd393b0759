"""The set-up, before or after the fork of the executors, by the environment of the worker."""

from __future__ import annotations

import os
from pathlib import Path

from django.apps import AppConfig

from jobqueue import signals
from tests.app.ledger import PLACE

#: What the environment says: when OpenTelemetry is set up, and Sentry's DSN and mode.
OPENTELEMETRY, DSN, LIFECYCLE = "TRACED_BY_OPENTELEMETRY", "TRACED_BY_SENTRY", "SENTRY_LIFECYCLE"
BEFORE, AFTER = "before the fork", "after the fork"


class ObservedConfig(AppConfig):
    """Sets up what the environment says."""

    name = "tests.tracing.observed"

    def ready(self) -> None:
        if os.environ.get(OPENTELEMETRY) == BEFORE:
            set_up_opentelemetry()
        elif os.environ.get(OPENTELEMETRY) == AFTER:
            signals.executor_started.connect(set_up_opentelemetry)
        if dsn := os.environ.get(DSN):
            import sentry_sdk

            sentry_sdk.init(dsn, traces_sample_rate=1.0, trace_lifecycle=os.environ[LIFECYCLE])


def set_up_opentelemetry(**_signal: object) -> None:
    """Set up the SDK with a thread that exports, which writes to a file."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

    file = (Path(os.environ[PLACE]) / "spans").open("a")
    provider = TracerProvider(shutdown_on_exit=False)
    exporter = ConsoleSpanExporter(out=file, formatter=lambda span: span.to_json(indent=None) + "\n")
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=60_000))
    trace.set_tracer_provider(provider)
