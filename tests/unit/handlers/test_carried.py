"""What travels with a job: the caller's language and trace, and nothing where they are the usual ones."""

from __future__ import annotations

import json

import pytest
from django.utils import translation
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from jobqueue.handlers.carried import pick_up, set_down

TRACER = TracerProvider().get_tracer("tests")


def test_the_usual_surroundings_are_not_worth_a_word():
    assert pick_up() is None


def test_the_language_travels():
    with translation.override("de"):
        carried = pick_up()
    assert json.loads(carried) == {"language": "de"}
    with set_down(carried):
        assert translation.get_language() == "de"
    assert translation.get_language() == "en-us"


def test_the_trace_travels():
    with TRACER.start_as_current_span("request") as span:
        carried = pick_up()
    with set_down(carried):
        inside = trace.get_current_span().get_span_context()
    assert inside.trace_id == span.get_span_context().trace_id
    assert not trace.get_current_span().get_span_context().is_valid


@pytest.mark.parametrize("carried", [None, "null", "[]", '"text"', '{"language": 7, "traceparent": "nonsense"}'])
def test_what_a_foreign_program_wrote_harms_nothing(carried):
    with set_down(carried):
        assert translation.get_language() == "en-us"
