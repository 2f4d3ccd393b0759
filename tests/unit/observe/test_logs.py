"""Tests of the log: one sentence or JSON object for each event, with facts as fields, and without payloads."""

from __future__ import annotations

import json
import logging
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobqueue.observe import logs
from jobqueue.records import Draft, Event, EventKind

CANARY = "canary-4711"
KINDS = list(EventKind)

texts = st.text(max_size=40)
seconds = st.none() | st.floats(0, 1e9)
events = st.builds(
    Event,
    kind=st.sampled_from(KINDS),
    job_id=st.text("0123456789ABC", min_size=1, max_size=26),
    job_type=st.text("abc_.", min_size=1, max_size=20),
    queue=texts,
    attempt=st.integers(0, 1_000),
    max_retries=st.integers(0, 1_000),
    worker=texts,
    duration=seconds,
    delay=seconds,
    reason=st.text("abc ", max_size=40),
    error_class=st.text("abc.", max_size=40),
    error=st.text(max_size=2_000),
    progress=st.just(CANARY),
)


class Lines(logging.Handler):
    """Keeps records, for a test to read."""

    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append(record)


@pytest.fixture
def lines():
    """The records that the logger of the queue gets, down to the least important."""
    handler, level = Lines(), logs.logger.level
    logs.logger.addHandler(handler)
    logs.logger.setLevel(logging.DEBUG)
    yield handler.records
    logs.logger.removeHandler(handler)
    logs.logger.setLevel(level)


def _written(event):
    handler, level = Lines(), logs.logger.level
    logs.logger.addHandler(handler)
    logs.logger.setLevel(logging.DEBUG)
    try:
        logs.write(event)
    finally:
        logs.logger.removeHandler(handler)
        logs.logger.setLevel(level)
    (record,) = handler.records
    return record


def _sentence(kind, **values):
    return _written(Event(kind, "01J", "resize", **values)).getMessage()


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        (Event(EventKind.STARTED, "01J", "resize", attempt=1, max_retries=1), "Job started: resize 01J"),
        (
            Event(EventKind.STARTED, "01J", "resize", attempt=2, max_retries=3),
            "Job started: resize 01J, attempt 2 of 3",
        ),
        (
            Event(EventKind.COMPLETED, "01J", "resize", attempt=2, max_retries=3, duration=0.0421),
            "Job completed: resize 01J, 42 ms",
        ),
        (
            Event(
                EventKind.RETRIED,
                "01J",
                "resize",
                attempt=1,
                max_retries=3,
                duration=1.26,
                delay=12.0,
                error_class="OSError",
                error="disk full",
            ),
            "Job retried: resize 01J, attempt 1 of 3, 1.3 s, again in 12.0 s (OSError: disk full)",
        ),
        (
            Event(EventKind.DEAD_LETTERED, "01J", "resize", attempt=3, max_retries=3, reason="attempts used up"),
            "Job dead-lettered: resize 01J, attempt 3 of 3 (attempts used up)",
        ),
        (Event(EventKind.FOLLOWED, "01J", "resize", attempt=1, max_retries=3), "Job enqueued: resize 01J"),
        (Event(EventKind.LEASE_LOST, "01J", "resize", max_retries=1), "Job lease lost: resize 01J"),
    ],
    ids=lambda value: value.kind.value if isinstance(value, Event) else "",
)
def test_an_event_is_told_in_a_sentence(event, sentence):
    assert _written(event).getMessage() == sentence


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_event_has_a_line(kind):
    record = _written(Event(kind, "01J", "resize", queue="images"))
    assert record.getMessage().startswith(f"Job {kind.value}: resize 01J")
    assert (record.event, record.job_id, record.job_type, record.queue) == (kind.value, "01J", "resize", "images")


@pytest.mark.parametrize(
    ("level", "kinds"),
    [
        (logging.DEBUG, {EventKind.STARTED, EventKind.PROGRESSED}),
        (logging.WARNING, {EventKind.RETRIED, EventKind.QUARANTINED, EventKind.LEASE_LOST}),
        (logging.ERROR, {EventKind.DEAD_LETTERED}),
        (
            logging.INFO,
            {EventKind.COMPLETED, EventKind.SNOOZED, EventKind.RELEASED, EventKind.CANCELLED, EventKind.FOLLOWED},
        ),
    ],
    ids=lambda value: logging.getLevelName(value) if isinstance(value, int) else "",
)
def test_what_goes_wrong_is_told_louder(level, kinds):
    assert {kind for kind in KINDS if _written(Event(kind, "01J")).levelno == level} == kinds


def test_a_follow_up_job_that_could_not_be_stored_is_an_error():
    assert _written(Event(EventKind.FOLLOWED, "01J", error="its key is taken")).levelno == logging.ERROR


def test_only_the_first_line_of_an_error_is_part_of_the_sentence():
    sentence = _sentence(EventKind.RETRIED, error_class="OSError", error="disk full\nand more\nof it")
    assert sentence == "Job retried: resize 01J (OSError: disk full)"


def test_a_long_error_is_cut():
    sentence = _sentence(EventKind.RETRIED, error="x" * 10_000)
    assert sentence == f"Job retried: resize 01J ({'x' * 200})"


@given(event=events)
def test_a_sentence_is_one_short_line(event):
    sentence = _written(event).getMessage()
    assert "\n" not in sentence
    assert len(sentence) < 500


def test_facts_that_are_not_known_are_left_out():
    known = set(vars(_written(Event(EventKind.COMPLETED, "01J", "resize", duration=0.5))))
    assert {"event", "job_id", "job_type", "duration"} <= known
    assert known.isdisjoint({"queue", "attempt", "delay", "reason", "error", "error_class", "worker"})


def test_nothing_is_written_that_nobody_reads(lines):
    logs.logger.setLevel(logging.WARNING)
    logs.write(Event(EventKind.COMPLETED, "01J"))
    assert (lines, logs.is_heard(), logs.is_debugging()) == ([], False, False)
    logs.logger.setLevel(logging.INFO)
    assert (logs.is_heard(), logs.is_debugging()) == (True, False)
    logs.logger.setLevel(logging.DEBUG)
    assert (logs.is_heard(), logs.is_debugging()) == (True, True)


# JSON


@given(event=events)
def test_a_json_line_is_one_line_with_every_fact(event):
    record = _written(event)
    text = logs.JsonFormatter().format(record)
    assert "\n" not in text
    line = json.loads(text)
    assert (line["event"], line["job_id"], line["job_type"]) == (event.kind.value, event.job_id, event.job_type)
    assert (line["message"], line["logger"]) == (record.getMessage(), "jobqueue")
    assert line["level"] == record.levelname.lower()
    for name in ("queue", "attempt", "max_retries", "worker", "duration", "delay", "reason", "error_class", "error"):
        value = getattr(event, name)
        assert line.get(name, value) == value
        assert (name in line) is (value not in (None, "", 0))


def test_the_moment_of_a_json_line_is_in_utc():
    record = _written(Event(EventKind.COMPLETED, "01J"))
    record.created = 1_768_564_800.25
    assert json.loads(logs.JsonFormatter().format(record))["time"] == "2026-01-16T12:00:00.250000Z"


def test_a_json_line_keeps_umlauts_as_they_are():
    assert "größer" in logs.JsonFormatter().format(_written(Event(EventKind.RETRIED, "01J", error="größer")))


def test_a_fact_that_json_does_not_know_is_written_as_text(lines):
    logs.logger.info("A line", extra={"place": object})
    assert json.loads(logs.JsonFormatter().format(lines[0]))["place"] == "<class 'object'>"


def test_a_json_line_of_an_exception_has_its_traceback_in_the_same_line(lines):
    try:
        raise OSError("disk full")
    except OSError:
        logs.logger.exception("It failed")
    text = logs.JsonFormatter().format(lines[0])
    assert "\n" not in text
    assert json.loads(text)["traceback"].endswith("OSError: disk full")
    assert sys.exc_info() == (None, None, None)


# Never a payload


def test_an_event_has_no_place_for_a_payload():
    assert {"payload", "result", "context"}.isdisjoint(Event._fields)


@given(event=events)
def test_what_a_handler_reported_of_its_progress_is_in_no_line(event):
    record = _written(event)
    assert CANARY not in logs.JsonFormatter().format(record)
    assert CANARY not in record.getMessage()


def test_the_line_of_an_enqueued_job_has_no_payload(lines):
    logs.enqueued([Draft(id="01J", type="resize", queue="images", payload=f'{{"secret":"{CANARY}"}}')])
    (record,) = lines
    assert record.getMessage() == "Job enqueued: resize 01J"
    assert (record.job_id, record.job_type, record.queue) == ("01J", "resize", "images")
    assert CANARY not in logs.JsonFormatter().format(record)


def test_nothing_is_written_of_enqueued_jobs_where_nobody_reads_it(lines):
    logs.logger.setLevel(logging.WARNING)
    logs.enqueued([Draft(id="01J", type="resize", payload="{}")])
    assert lines == []
