"""Tests of `list`, `show` and `why`: what they find, hide and advise."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from jobqueue.models import Job
from jobqueue.records import Again, Scope, WorkerState
from jobqueue.testing.contract.harness import draft, failing, finish, put, put_all, settle, take, take_one

TYPES = frozenset({"send_welcome", "resize_image"})


def ids(said):
    return [row["id"] for row in said.json["jobs"]]


def test_jobs_are_listed_newest_first_and_up_to_the_limit(run, queue):
    stored = put_all(queue, *(draft("send_welcome") for _ in range(4)))
    assert ids(run("list", "--json")) == stored[::-1]
    assert ids(run("list", "--json", "--order", "oldest", "--limit", "3")) == stored[:3]
    said = run("list", "--limit", "2")
    assert [line.split("\t")[0] for line in said.out.splitlines()] == ["id", *stored[:1:-1]]
    assert "more than these 2" in said.err


def test_a_long_list_is_read_page_by_page(run, queue):
    stored = put_all(queue, *(draft("send_welcome") for _ in range(250)))
    assert ids(run("list", "--json", "--limit", "240")) == stored[:9:-1]
    assert ids(run("list", "--json", "--limit", "1000")) == stored[::-1]


def test_every_filter_narrows_the_list(run, queue, alias, dead_letter):
    dead = dead_letter(tenant="acme")
    mail = put(queue, "resize_image", queue="mail")
    Job.objects.using(alias).filter(pk=dead).update(created_at=queue.now() - timedelta(hours=3))
    assert ids(run("list", "--json", "--status", "dead-letter")) == [dead]
    assert ids(run("list", "--json", "--status", "queued", "--status", "dead_letter")) == [mail, dead]
    assert ids(run("list", "--json", "--type", "resize_image")) == [mail]
    assert ids(run("list", "--json", "--queue", "mail")) == [mail]
    assert ids(run("list", "--json", "--tenant", "acme")) == [dead]
    assert ids(run("list", "--json", "--error", "Disk ON")) == [dead]
    assert ids(run("list", "--json", "--created-after", "2h")) == [mail]
    assert ids(run("list", "--json", "--created-before", "2h")) == [dead]
    assert ids(run("list", "--json", "--older-than", "2h")) == [dead]
    assert ids(run("list", "--json", "--created-after", "2020-01-01")) == [mail, dead]
    assert ids(run("list", "--json", "--created-before", "2020-01-01T00:00:00Z")) == []
    nothing = run("list", "--tenant", "nobody")
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "No job matches.\n")


@pytest.mark.parametrize(
    "words",
    [
        ["--status", "nosuch"],
        ["--created-after", "yesterday"],
        ["--created-after", "2026-02-30"],
        ["--created-after", "0001-01-01"],
        ["--older-than", "1x"],
        ["--older-than", "999999999w"],
        ["--limit", "0"],
        ["--limit", "-1"],
        ["--limit", "many"],
        ["--order", "sideways"],
    ],
)
def test_an_option_that_cannot_be_read_is_refused(run, words):
    said = run("list", *words)
    assert said.code != 0
    assert said.out == ""
    assert f"argument {words[0]}" in said.err


def test_what_could_steer_a_terminal_is_taken_out(run, queue, dead_letter):
    job_id = dead_letter(message="\x1b[2Jboo\tone\ntwo\x9b31m")
    assert "\x1b" not in run("list").out
    assert run("list").out.splitlines()[1].endswith("\ufffd[2Jboo one two\ufffd31m")
    assert not {"\x1b", "\x9b"} & set(run("show", job_id).out)


SECRETIVE = {
    "user_id": 7,
    "password": "hunter2hunter2",
    "deep": [{"api_key": "abcd-efgh"}],
    "url": "amqp://ada:pw-of-ada@mq/",
}


def test_a_job_is_shown_with_its_history_and_without_secrets(run, queue, dead_letter):
    job_id = dead_letter(
        payload=json.dumps(SECRETIVE),
        message="login failed for ada with hunter2hunter2",
        traceback='File "x.py"\n  connect("amqp://ada:pw-of-ada@mq/", "abcd-efgh")\nOSError',
    )
    for words in ([], ["--json"]):
        said = run("show", job_id, *words)
        assert said.code == 0
        for secret in ("hunter2", "abcd-efgh", "pw-of-ada"):
            assert secret not in said.out
        for shown in (job_id, "[redacted]", "login failed for ada", "OSError", "x.py", "attempts used up"):
            assert shown in said.out
        assert "hunter2hunter2" in run("show", job_id, *words, "--reveal").out
    assert "hunter2" not in run("list").out + run("list", "--json").out + run("why", job_id).out


def test_every_column_is_shown_to_a_program(run, queue):
    job_id = put(queue, "send_welcome", payload='{"user_id": 7}', timeout=timedelta(seconds=90))
    job = run("show", job_id, "--json").json["job"]
    assert {"id", "type", "status", "payload", "history", "fence", "created_at", "end_reason", "context"} <= set(job)
    assert (job["payload"], job["timeout"], job["history"]) == ({"user_id": 7}, 90, [])
    assert job["created_at"].endswith("Z")


@pytest.mark.parametrize("verb", ["show", "why"])
def test_a_job_that_is_not_there_is_one_sentence(run, verb):
    said = run(verb, "nosuch")
    assert (said.code, said.out) == (3, "")
    assert said.err.startswith("There is no job nosuch")


def codes(said):
    return [one["code"] for one in said.json["reasons"]]


def test_why_names_every_pause(run, queue, worker):
    worker()
    job_id = put(queue, "send_welcome")
    queue.operator.pause(Scope.QUEUE, "default", "the provider is down")
    queue.operator.pause(Scope.TYPE, "send_welcome", "")
    said = run("why", job_id)
    assert said.code == 1
    assert "the provider is down" in said.out
    assert "  manage.py jobqueue resume --queue default\n" in said.out
    assert "  manage.py jobqueue resume --type send_welcome\n" in said.out
    assert codes(run("why", job_id, "--json")) == ["paused", "paused"]


def test_why_tells_of_a_moment_to_come(run, queue, worker):
    worker()
    job_id = put(queue, "send_welcome", delay=timedelta(hours=2))
    said = run("why", job_id)
    assert said.code == 0
    assert "It is scheduled for later" in said.out
    assert "for 1h 59m" in said.out


def test_why_tells_of_a_retry_to_come(run, queue, worker):
    worker()
    job_id = put(queue, "send_welcome")
    settle(queue, failing(take_one(queue, types=TYPES), Again(timedelta(minutes=5))))
    said = run("why", job_id)
    assert said.code == 0
    assert "after 1 attempt of 3" in said.out
    assert "disk on fire" in said.out
    assert codes(run("why", job_id, "--json")) == ["waiting_for_retry"]


def test_why_tells_which_worker_is_missing(run, queue, worker):
    job_id = put(queue, "send_welcome", queue="mail")
    assert (run("why", job_id).code, codes(run("why", job_id, "--json"))) == (1, ["no_worker"])
    worker("a", queues=("default",))
    said = run("why", job_id)
    assert "none serves the queue mail" in said.out
    assert "manage.py runworker --queue mail" in said.out
    worker("b", types=("other",))
    assert codes(run("why", job_id, "--json")) == ["type_not_served"]
    worker("c", state=WorkerState.STOPPING)
    assert codes(run("why", job_id, "--json")) == ["workers_stopping"]
    worker("d")
    assert (run("why", job_id).code, codes(run("why", job_id, "--json"))) == (0, ["next"])


def test_why_says_that_no_handler_is_there(run, queue, worker):
    worker()
    job_id = put(queue, "nosuch")
    assert "this release has no handler for it either" in run("why", job_id).out


def test_why_counts_what_comes_first(run, queue, worker):
    worker(slots=4, busy=3)
    put_all(queue, draft("send_welcome", priority=1), draft("resize_image"))
    job_id = put(queue, "send_welcome")
    assert "It is due, behind 2 due jobs that come first." in run("why", job_id).out
    worker("full", busy=11)
    assert codes(run("why", job_id, "--json")) == ["slots_busy"]


def test_why_tells_of_jobs_under_way_and_of_lost_ones(run, queue, worker):
    job_id = put(queue, "send_welcome")
    claim = take_one(queue, types=TYPES)
    assert "It is running: attempt 1 of 3, on me" in run("why", job_id).out
    queue.operator.cancel([job_id])
    assert "asked to stop" in run("why", job_id).out
    queue.extend([claim], timedelta(seconds=-100))
    said = run("why", job_id)
    assert (said.code, "No worker is up that could recover the job" in said.out) == (1, True)
    worker()
    said = run("why", job_id)
    assert (said.code, "within a minute" in said.out) == (0, True)


def test_why_tells_how_a_job_ended(run, queue, dead_letter):
    dead = dead_letter()
    said = run("why", dead)
    assert said.code == 1
    assert "after 1 attempt (attempts used up). Its last error: disk on fire" in said.out
    assert f"  manage.py jobqueue retry {dead}\n" in said.out
    done, gone = put_all(queue, draft("send_welcome"), draft("send_welcome"))
    queue.operator.cancel([gone])
    (claim,) = take(queue, types=TYPES)
    assert finish(queue, claim)
    assert (run("why", done).code, codes(run("why", done, "--json"))) == (0, ["completed"])
    assert "It was cancelled" in run("why", gone).out
