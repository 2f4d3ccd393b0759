"""Tests of random data at every input: an answer or a refusal, but never an error 500."""

from __future__ import annotations

import io
import json
from struct import pack as packed

import pytest
from django.contrib.admin.utils import quote
from django.core.management import CommandError, call_command
from django.urls import reverse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobqueue.errors import PayloadInvalid, PayloadTooNew
from jobqueue.handlers.registry import registry
from jobqueue.models import Job
from jobqueue.testing.contract.harness import put
from jobqueue.worker.protocol.wire import BadMessage, Inbox, Word, pack
from tests.app import jobs as handlers

assert handlers

lightly = settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
anything = st.text(max_size=30) | st.sampled_from(
    [
        "\0",
        "\ud800",
        "-1",
        "0",
        "1e9",
        "9" * 5_000,
        "١٢",
        "all",
        "null",
        "[]",
        "%00",
        "%",
        "'",
        "\x1b[2J",
        "\u202e",
        "😀" * 300,
    ]
)
names = st.sampled_from(
    ["p", "q", "o", "e", "all", "status", "type", "queue", "created", "id", "pk", "payload", "payload__x", "_facets",
     "_popup", "_to_field", "_changelist_filters", "type__exact", "history__id", "status__in", "created_at__year"]
) | st.text(max_size=10)  # fmt: skip
queries = st.dictionaries(names, anything | st.lists(anything, max_size=2), max_size=5)
actions = (
    st.sampled_from(["retry", "cancel", "purge", "delete_selected", "", "__init__", "has_view_permission"]) | anything
)
forms = st.fixed_dictionaries(
    {"action": actions, "_selected_action": st.lists(anything, max_size=3)},
    optional={
        "index": anything, "select_across": anything, "confirmed": st.just("yes") | anything, "expected": anything,
        "_save": anything, "status": anything, "form-TOTAL_FORMS": anything,
    },
)  # fmt: skip
# From 1e16 on, Postgres writes a whole number in another way, and it is read as another one (docs: guarantees).
floats = st.floats(-1e15, 1e15) | st.sampled_from([float("nan"), float("inf"), float("-inf")])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | floats | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
almost_json = JSON.map(json.dumps) | st.text() | st.integers(1, 3_000).map(lambda depth: "[" * depth + "]" * depth)


def sendable(values):
    """Leave out what no browser can send: half of a surrogate pair has no bytes."""
    return json.loads(json.dumps(values, ensure_ascii=False).encode(errors="ignore"))


@lightly
@given(query=queries, model=st.sampled_from(["job", "deadletter"]))
def test_a_list_answers_whatever_the_address_says(operator, query, model):
    answer = operator.client.get(reverse(f"admin:jobqueue_{model}_changelist"), sendable(query))
    assert answer.status_code in (200, 302, 400), query


@lightly
@given(form=forms, query=queries, model=st.sampled_from(["job", "deadletter"]))
def test_an_action_answers_whatever_the_form_says(operator, queue, form, query, model):
    job_id = put(queue)
    address = reverse(f"admin:jobqueue_{model}_changelist")
    form["_selected_action"].append(job_id)
    answer = operator.client.post(address, sendable(form), query_params=sendable(query))
    assert answer.status_code in (200, 302, 400, 403), (form, query)


@lightly
@given(
    form=forms,
    page=st.sampled_from(["change", "delete", "history", "retry", "cancel", "purge"]),
    known=st.booleans(),
    text=anything,
)
def test_a_job_answers_whatever_its_id_and_its_form_say(operator, queue, form, page, known, text):
    job_id = put(queue) if known else text.replace("\ud800", "") or "-"
    address = reverse(f"admin:jobqueue_job_{page}", args=[quote(job_id)])
    for answer in (operator.client.get(address), operator.client.post(address, sendable(form))):
        assert answer.status_code in (200, 302, 400, 403, 404, 405), (address, form)


@lightly
@given(text=almost_json, version=st.integers())
@pytest.mark.parametrize("name", ["send_welcome", "resize_image", "anything", "keep", "greet", "weigh"])
def test_a_payload_is_read_or_refused_in_words_without_its_values(name, text, version):
    form, said = registry.get(name).payload, "read"
    try:
        form.load(text, version)
    except (PayloadInvalid, PayloadTooNew) as error:
        said = str(error)
    assert 0 < len(said) < 2_000


@lightly
@given(text=almost_json.filter(lambda text: text != "-"))  # which reads stdin
def test_the_command_stores_a_payload_as_it_is_or_says_why_not(queue, text):
    before, out, refusal = Job.objects.using(queue.alias).count(), io.StringIO(), None
    try:
        call_command("jobqueue", "enqueue", "anything", "--", text, stdout=out, stderr=io.StringIO())
    except CommandError as error:
        refusal = error
    if refusal is None:
        given = json.loads(text)
        stored = Job.objects.using(queue.alias).get(pk=out.getvalue().strip()).payload
        assert stored == ({} if given is None else given)  # null is no payload at all
    else:
        assert refusal.returncode == 3
        assert "payload" in str(refusal)
        assert Job.objects.using(queue.alias).count() == before


@given(st.lists(st.tuples(st.sampled_from(Word), JSON), max_size=5), st.randoms(use_true_random=False))
def test_messages_come_through_however_they_are_cut(messages, random):
    stream, inbox, heard = b"".join(pack(*one) for one in messages), Inbox(), []
    while stream:
        size = random.randint(1, 40)
        heard += inbox.feed(stream[:size])
        stream = stream[size:]
    assert repr(heard) == repr(messages)


@given(st.binary(max_size=200))
def test_noise_is_an_error_of_its_value_and_never_code(noise):
    try:
        for word, _content in Inbox().feed(packed("!I", len(noise)) + noise):
            assert word in set(Word)
    except (ValueError, TypeError, RecursionError):
        return


@given(st.binary(max_size=200) | JSON.map(lambda said: json.dumps(said).encode()))
def test_noise_from_an_executor_is_called_what_it_is(noise):
    try:
        for word, _content in Inbox(longest=1_000).feed(packed("!I", len(noise)) + noise):
            assert word in set(Word)
    except BadMessage as error:
        assert 0 < len(str(error)) < 100  # noqa: PT017 - it is a message or none
