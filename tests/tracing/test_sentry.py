"""Tests of what Sentry gets, by recorded envelopes, in both modes of its SDK."""

from __future__ import annotations

import logging

import pytest
import sentry_sdk

from jobqueue import enqueue_many, tracing
from jobqueue.models import Job
from jobqueue.observe import logs
from jobqueue.records import Event, EventKind
from tests.app.worker_jobs_traced import traced_failure, traced_parent, traced_verdict, traced_wait, traced_work
from tests.conftest import ON_BOTH
from tests.tracing.attempts import attempt_all

SQLITE_ALONE = True


@ON_BOTH
@pytest.mark.parametrize("handler", [traced_work, traced_wait], ids=["thread", "coroutine"])
def test_publish_and_process_are_in_one_trace_with_all_attributes(queue, sentry, handler):
    with sentry.start("a view"):
        receipt = handler.enqueue(number=3)
    attempt_all(queue)
    [(publish, published)] = sentry.spans("queue.publish")
    [(process, processed)] = sentry.spans("queue.process")
    [(task, _)] = sentry.spans("queue.task.jobqueue")
    assert {one["trace_id"] for one in (publish, process, task)} == {publish["trace_id"]}
    assert task["parent_span_id"] == publish["span_id"]
    assert process["parent_span_id"] == task["span_id"]
    expected = {
        "messaging.system": "jobqueue",
        "messaging.message.id": receipt.id,
        "messaging.destination.name": "default",
    }
    assert expected.items() <= published.items()
    assert expected.items() <= processed.items()
    assert published["messaging.message.body.size"] == len('{"number":3}')
    assert processed["messaging.message.body.size"] in (12, 13)  # Postgres stores JSON with spaces
    assert processed["messaging.message.retry.count"] == 0
    assert 0 <= processed["messaging.message.receive.latency"] < 60_000
    assert processed["jobqueue.outcome"] == "completed"
    assert {one["status"] for one in (process, task)} == {"ok"}


def test_a_batch_is_one_span(queue, sentry):
    with sentry.start("a view"):
        enqueue_many([traced_work.draft(number=number) for number in range(3)])
    attempt_all(queue)
    [(publish, published)] = sentry.spans("queue.publish")
    assert published["messaging.batch.message_count"] == 3
    assert {one["trace_id"] for one, _ in sentry.spans("queue.process")} == {publish["trace_id"]}


def test_a_follow_up_job_continues_the_trace(queue, sentry):
    traced_parent.enqueue()
    attempt_all(queue)
    attempt_all(queue)
    assert len(sentry.spans("queue.process")) == 2
    assert len({one["trace_id"] for one, _ in sentry.spans("queue.process")}) == 1


def test_only_the_last_attempt_is_an_issue_and_it_has_no_payload(queue, sentry):
    receipt = traced_failure.enqueue(customer="ada lovelace", word="hunter22")
    attempt_all(queue)
    assert sentry.events == []
    attempt_all(queue)
    [event] = sentry.events
    assert event["tags"] == {
        "job.type": "traced_failure",
        "job.id": receipt.id,
        "job.queue": "default",
        "job.attempt": "2",
    }
    job = {"type": "traced_failure", "id": receipt.id, "queue": "default", "attempt": 2, "max_retries": 2}
    assert event["contexts"]["job"] == job | {"worker": "a worker"}
    [error] = event["exception"]["values"]
    assert error["type"] == "ValueError"
    assert error["value"].startswith("no way with password=[redacted]")
    assert error["mechanism"] == {"type": "jobqueue", "handled": False}
    assert error["stacktrace"]["frames"][-1]["function"] == "traced_failure"
    retried, last = sorted(sentry.spans("queue.process"), key=lambda one: one[1]["messaging.message.retry.count"])
    assert event["contexts"]["trace"]["span_id"] == last[0]["span_id"]
    assert [one["status"] for one, _ in (retried, last)] == ["error" if sentry.is_streaming else "internal_error"] * 2
    assert "ada lovelace" not in sentry.text
    assert "hunter22" not in sentry.text


def test_with_send_default_pii_the_variables_of_frames_are_sent(queue, sentry):
    sentry_sdk.get_client().options["send_default_pii"] = True
    traced_failure.using(max_retries=1).enqueue(customer="ada lovelace", word="hunter22")
    attempt_all(queue)
    [event] = sentry.events
    assert "ada lovelace" in event["exception"]["values"][0]["stacktrace"]["frames"][-1]["vars"]["customer"]


@pytest.mark.parametrize("which", ["retry", "snooze", "discard", "cancel"])
def test_what_a_handler_asks_for_is_no_issue(queue, sentry, which):
    traced_verdict.enqueue(which=which)
    attempt_all(queue)
    assert sentry.events == []
    assert [one["status"] for one, _ in sentry.spans("queue.process")] == ["ok"]


def test_a_retry_that_was_the_last_one_is_an_issue(queue, sentry):
    traced_verdict.using(max_retries=1).enqueue(which="retry")
    attempt_all(queue)
    assert [one["exception"]["values"][-1]["type"] for one in sentry.events] == ["Retry"]


def test_an_invalid_payload_is_an_issue(queue, sentry):
    receipt = traced_work.enqueue(number=1)
    Job.objects.filter(id=receipt.id).update(payload={"number": "secret text"})
    attempt_all(queue)
    assert [one["exception"]["values"][-1]["type"] for one in sentry.events] == ["PayloadInvalid"]
    assert "secret text" not in sentry.text


@pytest.mark.parametrize(("error_class", "count"), [("ValueError", 0), ("", 1)], ids=["an error", "a crash"])
def test_the_log_of_a_dead_letter_is_an_issue_only_if_its_executor_could_not_tell(queue, sentry, error_class, count):
    tracing.prepare()
    tracing.prepare()
    reason = "attempts used up" if error_class else "crashed"
    logs.write(
        Event(EventKind.DEAD_LETTERED, "01J", "traced_work", "default", 2, 2, reason=reason, error_class=error_class)
    )
    assert len(sentry.events) == count
    for event in sentry.events:
        assert event["fingerprint"] == ["jobqueue", "traced_work", "crashed"]
        assert event["tags"]["job.id"] == "01J"
        assert event["tags"]["job.attempt"] == "2"


@pytest.mark.parametrize(
    "carried",
    [
        {"sentry-trace": "nonsense", "baggage": "sentry-%ff=%ff,,=," * 400},
        {"sentry-trace": "f" * 100_000, "baggage": "sentry-trace_id=x"},
        {"sentry-trace": f"{'0' * 32}-{'0' * 16}-1", "baggage": "sentry-sample_rand=nan,sentry-sample_rate=1e999"},
        {"sentry-trace": ["x"], "baggage": {"sentry": 1}, "sentry-monitor": {"slug": "../x", "config": []}},
        {"sentry-trace": f"{'a' * 32}-{'b' * 16}-9\r\nX: y", "baggage": "\ud83d"},
        [1],
    ],
    ids=["nonsense", "long", "zeros and numbers", "other types", "line break", "a list"],
)
def test_headers_of_foreign_rows_harm_nothing(queue, sentry, carried):
    receipt = traced_work.enqueue()
    Job.objects.filter(id=receipt.id).update(context=carried)
    [(_, outcome)] = attempt_all(queue)
    assert outcome.settlement.is_plain_completion
    assert len(sentry.spans("queue.process")) == 1


def test_without_an_initialised_client_nothing_is_traced(queue):
    assert tracing.in_use() == []
    receipt = traced_work.enqueue()
    assert Job.objects.get(id=receipt.id).context is None


class Broken(Exception):
    """An error of an SDK."""


def broken(*_args, **_kwargs):
    raise Broken


@pytest.mark.parametrize("where", ["start_span", "isolation_scope", "get_traceparent", "flush"])
def test_an_sdk_that_raises_fails_neither_an_enqueue_nor_a_job(queue, sentry, spans, mistakes, monkeypatch, where):
    for module in (sentry_sdk, sentry_sdk.traces):
        if hasattr(module, where):
            monkeypatch.setattr(module, where, broken)
    receipt = traced_work.enqueue(number=5)
    [(_, outcome)] = attempt_all(queue)
    tracing.flush(0.1)
    monkeypatch.undo()
    assert outcome.settlement.result == "5"
    assert Job.objects.get(id=receipt.id).status == "completed"
    assert {type(one) for one in mistakes} <= {Broken}
    mistakes.clear()


def test_an_sdk_that_raises_while_an_error_is_reported_leaves_no_scope_open(queue, sentry, mistakes, monkeypatch):
    before = sentry_sdk.get_isolation_scope()
    monkeypatch.setattr(sentry_sdk, "capture_event", broken)
    traced_failure.using(max_retries=1).enqueue(customer="a", word="b")
    [(_, outcome)] = attempt_all(queue)
    assert outcome.settlement.end_reason == "attempts used up"
    assert sentry_sdk.get_isolation_scope() is before
    assert [type(one) for one in mistakes] == [Broken]
    mistakes.clear()


def test_a_failure_of_tracing_is_logged_once(caplog, monkeypatch):
    monkeypatch.undo()
    from jobqueue.tracing import tracer

    tracer._noted.discard(Broken)
    with caplog.at_level(logging.WARNING, "jobqueue"):
        assert tracer.harmless(broken) is None
        assert tracer.harmless(broken) is None
    assert [one.getMessage() for one in caplog.records] == ["A job could not be traced. Jobs run as usual."]
