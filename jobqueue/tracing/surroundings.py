"""The trace around a call, which jobs continue even where only OpenTelemetry's API is in use."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module

from jobqueue.tracing import headers
from jobqueue.tracing.tracer import harmless

_LIBRARY, _ROOM = "opentelemetry", "jobqueue.tracing.opentelemetry.surroundings"


def headers_of_caller() -> dict[str, str]:
    """Return the headers that continue the caller's trace."""
    if _LIBRARY not in sys.modules:
        return {}
    return headers.valid(harmless(lambda: import_module(_ROOM).headers()) or {})


def continued(found: Mapping[str, object]) -> AbstractContextManager[None]:
    """Continue the trace of a job's context."""
    if _LIBRARY not in sys.modules:
        return nullcontext()
    return harmless(lambda: import_module(_ROOM).continued(headers.valid(found))) or nullcontext()
