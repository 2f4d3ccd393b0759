"""Tests of `lanes`, and of what `why` says about jobs in lanes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobqueue.backends import current
from jobqueue.records import Again, Dead, QueueOptions
from jobqueue.testing.contract.harness import draft, failing, put_all, settle, take

STRICT = {"imports": QueueOptions(ordered=True, strict=True)}


@pytest.fixture
def ordered(alias, settings):
    """The backend of a project with a strict queue."""
    settings.JOBQUEUE = {"DATABASE": alias, "QUEUES": {"imports": {"ordered": True, "strict": True}}}
    return current()


def stored(queue, *parallel):
    drafts = [draft("send_welcome", queue="imports", lane="*", parallel=flag) for flag in parallel]
    return put_all(queue, *drafts)


def claimed(queue):
    (claim,) = take(queue, types=frozenset({"send_welcome"}), entries=("imports",), queue_options=STRICT)
    return claim


def reason(run, job_id):
    return run("why", job_id, "--json").json["reasons"][0]


def test_lanes_are_listed_with_their_heads(run, ordered):
    assert run("lanes").err == "No ordered queue has jobs. To order a queue, see the setting QUEUES.\n"
    running, head, _last = stored(ordered, False, False, True)
    claimed(ordered)
    assert run("lanes", "--queue", "imports", "--json").json["lanes"] == [
        {
            "queue": "imports",
            "name": "*",
            "depth": 2,
            "head": head,
            "running": [running],
            "hold": {"id": running, "hold": "runs", "due_at": None},
        }
    ]
    assert run("lanes").out.splitlines()[1].split("\t") == [
        "imports",
        "*",
        "2",
        running,
        head,
        f"{running}, which runs",
    ]


def test_why_names_the_job_that_holds_the_lane(run, ordered):
    first, second, third = stored(ordered, True, False, True)
    claim = claimed(ordered)
    assert reason(run, second)["text"] == f"Its lane waits for {first}, which runs."
    assert reason(run, third) == {
        "code": "lane_behind",
        "text": f"It is behind {second} in its lane, which is due and has not started.",
        "command": None,
        "needs_you": False,
    }
    settle(ordered, failing(claim, Again(timedelta(seconds=40))))
    said = reason(run, second)
    assert (said["code"], said["text"][:60]) == ("lane_waits", f"Its lane waits for {first}, which runs in "[:60])
    assert ordered.operator.retry([first]).refused
    assert f"{first}, which waits until 20" in run("lanes").out


def test_why_says_that_a_strict_lane_has_stopped(run, ordered):
    first, second = stored(ordered, False, False)
    settle(ordered, failing(claimed(ordered), Dead("attempts used up")))
    said = run("why", second, "--json")
    assert said.code == 1
    assert said.json["reasons"][0] == {
        "code": "lane_stopped",
        "text": f"Its lane has stopped at {first}, which is a dead letter. Retry it, or purge it to skip it.",
        "command": "manage.py jobqueue lanes --queue imports",
        "needs_you": True,
    }
    assert f"{first}, which is a dead letter" in run("lanes").out
