"""Tests of SQL, paths, import paths and pickles as names and payloads, which must remain data."""

from __future__ import annotations

import base64
import json
import pickle
from pathlib import Path

import pytest
from django.core.management import call_command
from hypothesis import given
from hypothesis import strategies as st

import jobqueue
from jobqueue import InvalidOption, PayloadRefused, UnknownJobType
from jobqueue.handlers.registry import registry
from jobqueue.models import Job
from jobqueue.records import Filter, Scope
from jobqueue.testing.contract.harness import finish, job, put, take_one
from tests.app.jobs import anything, send_welcome

SQL = [
    "x'; DROP TABLE job_queue; --",
    "x') OR 1=1 --",
    '"; DELETE FROM job_queue; --',
    "%s",
    "%(now)s",
    "?",
    ":now",
    "\\",
]
PLACES = [
    "os.system",
    "builtins.eval",
    "tests.app.jobs.send_welcome",
    "send_welcome.__class__",
    "__import__",
    "..",
    "/",
]
PLACES += ["subprocess:run", "send_welcome\0", "send_welcome ", "SEND_WELCOME", "../send_welcome", "send_welcome.pyc"]


@pytest.mark.parametrize("text", SQL)
def test_sql_in_a_name_is_a_name(queue, text):
    other = put(queue, "greet")
    job_id = put(queue, text, queue=text, tenant=text, idempotency_key=text, payload=json.dumps({text: text}))
    for scope in Scope:
        assert queue.operator.pause(scope, text, text)
        assert queue.operator.resume(scope, text)
    assert queue.jobs.count(Filter(types=frozenset({text}), queues=frozenset({text}), tenant=text)) == 1
    assert queue.jobs.count(Filter(error=text)) == queue.jobs.count(Filter(id_prefix=text)) == 0
    claim = take_one(queue, owner=text, types=frozenset({text}), queues=frozenset({text}))
    assert (claim.id, claim.type, json.loads(claim.payload)) == (job_id, text, {text: text})
    assert finish(queue, claim, json.dumps(text))
    assert (job(queue, job_id).result, job(queue, other).status) == (text, "queued")
    assert queue.operator.purge([text]).done == ()


@pytest.mark.parametrize("name", [*PLACES, *SQL])
def test_a_name_that_leads_somewhere_leads_nowhere(queue, name):
    with pytest.raises(UnknownJobType):
        jobqueue.enqueue(name, {"user_id": 7})
    assert Job.objects.using(queue.alias).count() == 0


@given(st.text(max_size=40))
def test_only_the_names_that_were_registered_are_found(name):
    if name in registry.names:
        assert name in (registry.get(name).name, *registry.get(name).aliases)
    else:
        with pytest.raises(UnknownJobType):
            registry.get(name)


@pytest.mark.parametrize("name", [*SQL, *PLACES])
def test_a_queues_name_is_refused_or_kept_as_it_is(queue, name):
    try:
        receipt = send_welcome.using(queue=name).enqueue(7)
    except InvalidOption:
        assert Job.objects.using(queue.alias).count() == 0
    else:
        assert job(queue, receipt.id).queue == name


class Trap:
    """Leaves a file where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_pickle_is_never_opened(queue, tmp_path, start_worker, jobs):
    sprung = tmp_path / "sprung"
    pickled = pickle.dumps(Trap(sprung))
    pickle.loads(pickled)  # noqa: S301 - to see that the trap works
    assert sprung.exists(), "the trap does not work"
    sprung.unlink()
    with pytest.raises(PayloadRefused):
        anything.enqueue({"x": pickled})
    with pytest.raises(PayloadRefused):
        anything.enqueue({"x": Trap(sprung)})
    texts = [base64.b64encode(pickled).decode(), pickled.decode("latin-1").replace("\0", "")]
    receipts = [
        anything.enqueue({"x": text, "__reduce__": ["os.system", ["true"]], "py/object": text}) for text in texts
    ]
    forged = [put(queue, "anything", payload=json.dumps(text)) for text in texts]
    worker = start_worker()
    jobs.until("completed", *receipts)
    jobs.until("dead_letter", *forged)
    assert worker.stop() == 0
    assert not sprung.exists()


def test_yaml_tags_and_templates_are_text(queue, capsys):
    texts = ["!!python/object/apply:os.system ['true']", "{{ 7 * 7 }}", "${7*7}", "{0.__class__}", "%(x)s", "%n%s"]
    for text in texts:
        call_command("jobqueue", "enqueue", "anything", json.dumps({"x": text}))
        assert job(queue, capsys.readouterr().out.strip()).payload == {"x": text}
