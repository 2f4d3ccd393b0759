"""Tests of the spans and metrics of OpenTelemetry."""

from __future__ import annotations

import json

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.trace import SpanKind, StatusCode

from jobqueue import enqueue_many
from jobqueue.models import Job
from tests.app.worker_jobs_traced import traced_failure, traced_parent, traced_verdict, traced_wait, traced_work
from tests.conftest import ON_BOTH
from tests.tracing.attempts import attempt_all

SQLITE_ALONE = True


@ON_BOTH
@pytest.mark.parametrize("handler", [traced_work, traced_wait], ids=["thread", "coroutine"])
def test_a_job_is_one_trace_from_its_caller_to_its_settlement(queue, spans, handler):
    with trace.get_tracer("a view").start_as_current_span("request") as request:
        receipt = handler.enqueue(number=3)
    attempt_all(queue)
    create, process = spans.one("create default"), spans.one("process default")
    inside, settle = spans.one("inside"), spans.one("settle default")
    assert {one.context.trace_id for one in spans.all()} == {request.get_span_context().trace_id}
    assert create.parent.span_id == request.get_span_context().span_id
    assert process.parent.span_id == create.context.span_id
    assert [one.parent.span_id for one in (inside, settle)] == [process.context.span_id] * 2
    assert [one.kind for one in (create, process, settle)] == [SpanKind.PRODUCER, SpanKind.CONSUMER, SpanKind.CLIENT]
    assert settle.end_time - settle.start_time == 250_000_000
    assert dict(create.attributes) == {
        "messaging.system": "jobqueue",
        "messaging.operation.name": "create",
        "messaging.operation.type": "create",
        "messaging.destination.name": "default",
        "messaging.message.id": receipt.id,
        "messaging.message.body.size": len('{"number":3}'),
        "jobqueue.job.type": handler.name,
        "jobqueue.admission": "created",
    }
    assert process.attributes["messaging.message.id"] == receipt.id
    assert process.attributes["messaging.operation.type"] == "process"
    assert (process.attributes["jobqueue.attempt"], process.attributes["jobqueue.outcome"]) == (1, "completed")
    assert process.status.status_code is StatusCode.UNSET


def test_a_batch_is_one_span_that_its_jobs_continue(queue, spans):
    enqueue_many([traced_work.draft(number=number) for number in range(3)])
    attempt_all(queue)
    send = spans.one("send default")
    assert send.attributes["messaging.batch.message_count"] == 3
    assert {one.parent.span_id for one in spans.named("process default")} == {send.context.span_id}


def test_a_follow_up_job_continues_the_trace_of_its_parent(queue, spans):
    traced_parent.enqueue()
    attempt_all(queue)
    attempt_all(queue)
    _, second = spans.named("create default")
    parent, child = spans.named("process default")
    assert second.parent.span_id == parent.context.span_id
    assert child.parent.span_id == second.context.span_id
    assert len({one.context.trace_id for one in spans.all()}) == 1


def test_an_error_is_recorded_without_the_payload(queue, spans):
    traced_failure.enqueue(customer="ada lovelace", word="hunter22")
    attempt_all(queue)
    attempt_all(queue)
    first, last = spans.named("process default")
    assert [one.attributes["jobqueue.outcome"] for one in (first, last)] == ["retried", "dead-lettered"]
    for one in (first, last):
        assert one.status.status_code is StatusCode.ERROR
        assert one.attributes["error.type"] == "ValueError"
        [event] = one.events
        assert event.attributes["exception.type"] == "ValueError"
        assert "traced_failure" in event.attributes["exception.stacktrace"]
        assert "hunter22" not in one.to_json()
        assert "ada" not in one.to_json()


@ON_BOTH
def test_each_attempt_has_a_link_to_the_one_before(queue, spans):
    traced_verdict.using(max_retries=3).enqueue(which="retry")
    for _ in range(3):
        attempt_all(queue)
    first, second, third = spans.named("process default")
    assert [len(one.links) for one in (first, second, third)] == [0, 1, 1]
    assert second.links[0].context.span_id == first.context.span_id
    assert third.links[0].context.span_id == second.context.span_id
    create = spans.one("create default").context
    assert {one.parent.span_id for one in (first, second, third)} == {create.span_id}
    assert (
        Job.objects.using(queue.alias).get().context["last_attempt"].split("-")[2] == f"{second.context.span_id:016x}"
    )


@pytest.mark.parametrize("context", [None, "{}", {"last_attempt": 7}, {"last_attempt": "00-x"}, {"long": "x" * 40_000}])
def test_a_job_that_others_stored_is_linked_if_its_context_can_be_kept(queue, spans, context):
    receipt = traced_verdict.enqueue(which="retry")
    Job.objects.filter(id=receipt.id).update(context=context)
    attempt_all(queue)
    stored = Job.objects.get(id=receipt.id).context
    attempt_all(queue)
    first, second = spans.named("process default")
    is_kept = context is None or (isinstance(context, dict) and "long" not in context)
    assert [one.context.span_id for one in second.links] == ([first.context.span_id] if is_kept else [])
    assert is_kept or stored == context


@pytest.mark.parametrize(
    ("which", "outcome"),
    [("retry", "retried"), ("snooze", "snoozed"), ("discard", "dead-lettered"), ("cancel", "cancelled")],
)
def test_what_a_handler_asks_for_is_no_error(queue, spans, which, outcome):
    traced_verdict.enqueue(which=which)
    attempt_all(queue)
    process = spans.one("process default")
    assert process.attributes["jobqueue.outcome"] == outcome
    assert process.status.status_code is StatusCode.UNSET


def test_a_duplicate_names_the_job_that_has_the_key(queue, spans):
    first = traced_work.using(idempotency_key="once").enqueue()
    traced_work.using(idempotency_key="once").enqueue()
    _, create = spans.named("create default")
    assert create.attributes["messaging.message.id"] == first.id
    assert create.attributes["jobqueue.admission"] == "existing"


def test_a_refused_job_is_an_error_of_its_span(queue, spans):
    traced_work.using(idempotency_key="once").enqueue()
    with pytest.raises(Exception, match="once") as refused:
        traced_wait.using(idempotency_key="once").enqueue()
    _, create = spans.named("create default")
    assert create.attributes["error.type"] == type(refused.value).__qualname__
    assert not trace.get_current_span().get_span_context().is_valid


def test_baggage_reaches_the_handler_s_context(queue, spans):
    token = context.attach(baggage.set_baggage("shop", "north"))
    receipt = traced_work.enqueue()
    context.detach(token)
    carried = Job.objects.get(id=receipt.id).context
    assert carried["baggage"] == "shop=north"
    assert carried["traceparent"].startswith("00-")


@pytest.mark.parametrize(
    "carried",
    [
        {"traceparent": "nonsense", "baggage": "=;,=" * 2_000},
        {"traceparent": "00-" + "0" * 32 + "-" + "0" * 16 + "-01", "tracestate": "x" * 100_000},
        {"traceparent": ["00"], "baggage": {"a": 1}, "tracestate": "a=b\r\nX-Evil: 1", "\0": "\0"},
        {f"key-{number}": "v" * 100 for number in range(2_000)},
        [1],
    ],
    ids=["nonsense", "zeros and a long state", "other types", "many", "a list"],
)
def test_headers_of_foreign_rows_harm_nothing(queue, spans, carried):
    receipt = traced_work.enqueue()
    Job.objects.filter(id=receipt.id).update(context=carried)
    [(_, outcome)] = attempt_all(queue)
    assert outcome.settlement.is_plain_completion
    assert spans.one("process default").context.is_valid


def test_the_context_of_a_job_keeps_its_other_values_and_its_bounds(queue, spans):
    token = context.attach(baggage.set_baggage("long", "x" * 9_000))
    receipt = traced_work.using(unique_key="k", debounce=1, max_wait=5).enqueue()
    context.detach(token)
    carried = Job.objects.get(id=receipt.id).context
    assert carried["max_wait"] == 5
    assert len(json.dumps(carried)) < 9_000


def test_the_metrics_count_and_measure(queue, meter):
    traced_work.enqueue()
    traced_failure.enqueue(customer="a", word="b")
    attempt_all(queue)
    [sent] = meter("messaging.client.sent.messages")
    assert (sent.value, dict(sent.attributes)) == (
        2,
        {
            "messaging.system": "jobqueue",
            "messaging.operation.name": "create",
            "messaging.operation.type": "create",
            "messaging.destination.name": "default",
        },
    )
    assert [one.value for one in meter("messaging.client.consumed.messages")] == [2]
    assert {one.attributes.get("error.type") for one in meter("messaging.process.duration")} == {None, "ValueError"}
    operations = {
        one.attributes["messaging.operation.name"]: one for one in meter("messaging.client.operation.duration")
    }
    assert set(operations) == {"create", "settle"}
    assert operations["settle"].sum == 0.5
    assert operations["settle"].explicit_bounds[0] == 0.005
