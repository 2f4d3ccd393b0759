"""The context that travels with a job beside its payload: language, trace, request and user."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils import translation

from jobqueue import foreign_json
from jobqueue.handlers import origin

try:
    from opentelemetry import context as otel
    from opentelemetry import propagate
except ImportError:  # an extra; without it there is no tracing
    otel = propagate = None  # type: ignore[assignment]
_CAN_TRACE = otel is not None


#: The key under which a debounced job keeps how long it may be moved, in seconds.
MAX_WAIT = "max_wait"


def capture(max_wait: timedelta | None = None) -> str | None:
    """Return the caller's context as JSON text, or ``None`` if there is nothing special about it.

    With ``max_wait``, the job is debounced, and its context says how long it may be moved.
    """
    found: dict[str, Any] = {**origin.found()}
    if max_wait is not None:
        found[MAX_WAIT] = max_wait.total_seconds()
    if settings.USE_I18N and (language := translation.get_language()) not in (None, settings.LANGUAGE_CODE):
        found["language"] = language
    if _CAN_TRACE and otel.get_current():  # empty without an active trace, which is usual
        propagate.inject(found)
    return json.dumps(found) if found else None


@contextmanager
def restore(carried: str | None) -> Iterator[None]:
    """Run a handler in the context of its job."""
    found = foreign_json.read(carried) if carried else None
    if not isinstance(found, dict):
        yield  # no context, or one that another program wrote
        return
    with ExitStack() as surroundings:
        surroundings.enter_context(origin.of_job(found))
        if isinstance(found.get("language"), str):
            surroundings.enter_context(translation.override(found["language"]))
        if otel is not None:
            token = otel.attach(propagate.extract({key: str(value) for key, value in found.items()}))
            surroundings.callback(otel.detach, token)
        yield
