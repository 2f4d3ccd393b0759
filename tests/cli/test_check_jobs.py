"""Tests of `check-jobs`, which finds what no code here can run."""

from __future__ import annotations

import json

import pytest

from jobqueue.observe.questions import unrunnable
from jobqueue.schedules import operation
from jobqueue.testing.contract.harness import draft, put_all, take

GOOD = '{"user_id": 7}'


def kinds(said):
    return [(one["mistake"], one["type"], one["count"]) for one in said.json["found"]]


def test_what_this_code_runs_is_fine(run, queue):
    put_all(queue, draft("send_welcome", payload=GOOD), draft("greet", payload='{"name": "Ada"}'))  # by an alias
    said = run("check-jobs")
    assert (said.code, said.out) == (0, "")
    assert said.err == "2 jobs and 0 schedules looked at. This code can run all of them.\n"


def test_each_mistake_is_counted_with_examples_and_advice(run, queue, alias):
    fields = operation.read_fields("send_welcome", "0 3 * * *", "UTC", {"user_id": 7}, {})
    nightly = operation.add("nightly", fields)
    weekly = operation.add("weekly", fields)
    queue.schedules.change(nightly, type="send_welcom")
    queue.schedules.change(weekly, payload='{"user_id": "nobody"}')
    gone = put_all(queue, *(draft("send_welcom") for _ in range(7)))
    running = take(queue, 1, types=frozenset({"send_welcom"}))[0].id
    put_all(queue, draft("send_welcome", payload=GOOD, payload_version=9))
    put_all(queue, draft("send_welcome", payload='{"user_id": "secret"}'), draft("send_welcome", payload="[]"))
    said = run("check-jobs", "--json")
    assert said.code == 1
    assert kinds(said) == [
        ("unknown_type", "send_welcom", 7),
        ("version_from_future", "send_welcome", 1),
        ("payload_invalid", "send_welcome", 1),
        ("payload_invalid", "send_welcome", 1),
        ("schedule_of_unknown_type", "send_welcom", 1),
        ("schedule_payload_invalid", "send_welcome", 1),
    ]
    unknown = said.json["found"][0]
    assert unknown["examples"][0] == running
    assert set(unknown["examples"]) < set(gone)
    assert len(unknown["examples"]) == unrunnable.EXAMPLES
    assert unknown["advice"].startswith("Did you mean 'send_welcome'? Deploy the code that has the handler")
    assert said.json["found"][4]["examples"] == ["nightly"]
    told = run("check-jobs")
    assert "manage.py jobqueue cancel --type send_welcom." in told.out
    assert "Some can't be run." in told.err
    assert "secret" not in told.out + told.err + said.out


def test_a_sample_has_each_queue_and_type_and_all_has_every_job(run, queue, monkeypatch):
    bad = draft("send_welcome", payload="{}", priority=10)
    put_all(queue, *(draft("send_welcome", payload=GOOD) for _ in range(150)), bad, draft("gone", queue="zoo"))
    said = run("check-jobs", "--json")
    assert (kinds(said), said.json["is_part"], said.json["jobs"]) == ([("unknown_type", "gone", 1)], True, 101)
    said = run("check-jobs", "--all", "--json")
    assert kinds(said) == [("unknown_type", "gone", 1), ("payload_invalid", "send_welcome", 1)]
    assert (said.json["is_part"], said.json["jobs"]) == (False, 152)
    monkeypatch.setattr(unrunnable, "MOST", 50)
    assert run("check-jobs", "--json").json["jobs"] == 100


@pytest.mark.parametrize(
    "payload",
    [
        '{"user_id": 1e999}',
        '{"user_id": "\\ud800"}',
        "[" * 900 + "]" * 900,
        '{"user_id": ' + "9" * 6_000 + "}",
        '""',
    ],
    ids=["infinite", "surrogate", "deep", "long", "text"],
)
@pytest.mark.parametrize("alias", ["default"], indirect=True)
def test_a_payload_of_a_foreign_program_is_a_mistake_and_no_crash(run, queue, payload):
    put_all(queue, draft("send_welcome", payload=payload), draft("\x1b[2Jx'; rm", payload=payload))
    said = run("check-jobs", "--json")
    assert [one[0] for one in kinds(said)] == ["unknown_type", "payload_invalid"]
    told = run("check-jobs")
    assert "\x1b" not in told.out + told.err
    assert json.loads(said.out)


@pytest.mark.parametrize("alias", ["default"], indirect=True)
def test_many_kinds_of_mistakes_are_folded(run, queue, monkeypatch):
    monkeypatch.setattr(unrunnable, "MOST_KINDS", 5)
    put_all(queue, *(draft("send_welcome", payload=GOOD, payload_version=n + 2) for n in range(20)))
    found = run("check-jobs", "--json").json["found"]
    assert (len(found), sum(one["count"] for one in found)) == (6, 20)
