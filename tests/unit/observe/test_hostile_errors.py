"""Tests of odd errors and numbers: describing them never fails, and shows no values."""

from __future__ import annotations

import json
import logging
from random import Random

import pytest
from pydantic import TypeAdapter, ValidationError

from jobqueue.errors import InvalidOption, duration
from jobqueue.handlers.context import JobContext
from jobqueue.observe import failures, logs
from jobqueue.policy.retry import Exponential, RetryPolicy, decide_cut_short
from jobqueue.records import AttemptCount, Ending, Event, EventKind


class Falsy(Exception):
    def __len__(self):
        return 0


class Touchy(Exception):
    def __bool__(self):
        raise ZeroDivisionError


def _caused_by(cause):
    try:
        raise OSError("outer") from cause
    except OSError as error:
        return error


def test_a_cause_that_is_false_is_shown():
    assert "Falsy" in failures.traceback_of(_caused_by(Falsy("inner")))


def test_a_cause_that_will_not_say_whether_it_is_true_harms_nothing():
    assert failures.failure_of(_caused_by(Touchy("inner")), Ending.FAILED, job_type="x").message == "outer"


def test_the_keys_of_a_dict_that_does_not_validate_are_not_shown():
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(dict[str, int]).validate_python({"hunter2": "x"})
    assert "hunter" not in failures.message_of(raised.value)


def test_a_delay_of_the_applications_own_is_not_asked_where_no_code_of_it_may_run():
    class Mine(Exponential):
        def __call__(self, attempt, rng):
            raise AssertionError("asked")

    decide_cut_short(RetryPolicy(Mine()), AttemptCount(1, 3), "crashed", rng=Random(1))


def test_a_number_beyond_all_measure_is_refused():
    context = JobContext(job_id="1", job_type="x", queue="q", attempt=1, max_retries=1, fence=1)
    with pytest.raises(InvalidOption):
        context.progress(10**400)
    with pytest.raises(InvalidOption):
        duration(10**400, "delay")


def test_another_formatter_leaves_nothing_on_a_json_line():
    record = logging.makeLogRecord({"msg": "x", "name": "jobqueue"})
    logging.Formatter("%(asctime)s %(message)s").format(record)
    assert "asctime" not in json.loads(logs.JsonFormatter().format(record))


def test_an_error_cannot_write_a_line_of_its_own(caplog):
    with caplog.at_level("INFO", "jobqueue"):
        logs.write(Event(EventKind.RETRIED, "1", "x", error="a\rJob completed: x"))
    assert "\r" not in caplog.messages[0]


def test_half_a_surrogate_pair_can_be_logged():
    record = logging.makeLogRecord({"msg": "x \ud800", "name": "jobqueue"})
    assert json.loads(logs.JsonFormatter().format(record).encode())["message"] == "x \ud800"
