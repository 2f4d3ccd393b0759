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
from jobqueue.tracing.surroundings import continued, headers_of_caller

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
    found.update(headers_of_caller())
    return json.dumps(found) if found else None


@contextmanager
def restore(carried: str | None, *, is_traced: bool = False) -> Iterator[None]:
    """Run a handler in the context of its job. With ``is_traced``, the attempt has a span, which is the context."""
    found = foreign_json.read(carried) if carried else None
    if not isinstance(found, dict):
        yield  # no context, or one that another program wrote
        return
    with ExitStack() as surroundings:
        surroundings.enter_context(origin.of_job(found))
        if isinstance(found.get("language"), str):
            surroundings.enter_context(translation.override(found["language"]))
        if not is_traced:
            surroundings.enter_context(continued(found))
        yield
