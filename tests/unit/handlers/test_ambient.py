"""Tests of the context that travels with a job: the caller's language and trace."""

from __future__ import annotations

import json

import pytest
from django.utils import translation
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from jobqueue.handlers.ambient import capture, restore

TRACER = TracerProvider().get_tracer("tests")


def test_the_usual_surroundings_are_not_worth_a_word():
    assert capture() is None


def test_the_language_travels():
    with translation.override("de"):
        carried = capture()
    assert json.loads(carried) == {"language": "de"}
    with restore(carried):
        assert translation.get_language() == "de"
    assert translation.get_language() == "en-us"


def test_the_trace_travels():
    with TRACER.start_as_current_span("request") as span:
        carried = capture()
    with restore(carried):
        inside = trace.get_current_span().get_span_context()
    assert inside.trace_id == span.get_span_context().trace_id
    assert not trace.get_current_span().get_span_context().is_valid


@pytest.mark.parametrize("carried", [None, "null", "[]", '"text"', '{"language": 7, "traceparent": "nonsense"}'])
def test_what_a_foreign_program_wrote_harms_nothing(carried):
    with restore(carried):
        assert translation.get_language() == "en-us"
