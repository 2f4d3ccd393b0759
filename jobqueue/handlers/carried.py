"""What travels with a job beside its payload: language, trace, and the request and user it comes from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from django.conf import settings
from django.utils import translation

from jobqueue import foreign_json
from jobqueue.handlers import origin

try:
    from opentelemetry import context as otel
    from opentelemetry import propagate
except ImportError:  # an extra; without it nothing is traced
    otel = propagate = None  # type: ignore[assignment]
_CAN_TRACE = otel is not None


def pick_up() -> str | None:
    """Write down what the caller's surroundings are, as JSON text; ``None`` where they are the usual ones."""
    found: dict[str, Any] = {**origin.found()}
    if settings.USE_I18N and (language := translation.get_language()) not in (None, settings.LANGUAGE_CODE):
        found["language"] = language
    if _CAN_TRACE and otel.get_current():  # empty where nothing is traced, and mostly nothing is
        propagate.inject(found)
    return json.dumps(found) if found else None


@contextmanager
def set_down(carried: str | None) -> Iterator[None]:
    """Surround a handler with what its job carries."""
    found = foreign_json.read(carried) if carried else None
    if not isinstance(found, dict):
        yield  # nothing, or something of a foreign program's
        return
    with ExitStack() as surroundings:
        surroundings.enter_context(origin.of_job(found))
        if isinstance(found.get("language"), str):
            surroundings.enter_context(translation.override(found["language"]))
        if otel is not None:
            token = otel.attach(propagate.extract({key: str(value) for key, value in found.items()}))
            surroundings.callback(otel.detach, token)
        yield
