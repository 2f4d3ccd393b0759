"""Tests of the six questions: `failures`, `stuck`, `durations`, `duplicates` and `activity`; `status` is the sixth."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from jobqueue.models import Job
from jobqueue.observe.questions import duplicates as room
from jobqueue.observe.questions.sample import PAGE, all_queued
from jobqueue.policy.fingerprint import with_fingerprint
from jobqueue.policy.settling import settled
from jobqueue.records import Dead, Ending, Failure, Lengths, Progress, Tally
from jobqueue.testing.contract.harness import draft, put, put_all, settle, take, take_one

HOUR = timedelta(hours=1)


def rows(said):
    head, *body = (line.split("\t") for line in said.out.splitlines())
    return [dict(zip(head, one, strict=True)) for one in body]


# failures


@pytest.fixture
def dead_letter(queue):
    """A function that makes a dead letter with a fingerprint."""

    def make(job_type="send_welcome", *, message="disk on fire", traceback="", **values):
        put(queue, job_type, priority=1, **values)
        claim = take_one(queue, types=frozenset({job_type}))
        failure = Failure.of(Ending.FAILED, error_class="OSError", message=message, traceback=traceback)
        settle(queue, settled(claim, Dead("attempts used up"), with_fingerprint(job_type, failure)))
        return claim.id

    return make


def test_failures_groups_dead_letters_by_error(run, dead_letter):
    assert run("failures").err == "There are no such dead letters.\n"
    old = dead_letter(message="connection refused")
    new = dead_letter(message="connection refused", payload='{"password": "hunter22"}')
    other = dead_letter("resize_image", message="no such file", traceback="Traceback: token=hunter22")
    named = rows(run("failures", "--order", "largest"))
    assert [(one["jobs"], one["type"], one["error"]) for one in named] == [
        ("2", "send_welcome", "OSError: connection refused"),
        ("1", "resize_image", "OSError: no such file"),
    ]
    assert [one["type"] for one in rows(run("failures", "--type", "resize_image"))] == ["resize_image"]
    assert [one["type"] for one in rows(run("failures", "--error", "REFUSED"))] == ["send_welcome"]
    assert "There are more than these 1 errors" in run("failures", "--limit", "1").err
    said = run("failures", "--type", "send_welcom")
    assert (said.code, "Did you mean 'send_welcome'?" in said.err) == (0, True)
    first = run("failures", "--json", "--order", "largest").json["errors"][0]
    assert (first["newest_id"], first["first_at"] <= first["last_at"]) == (max(old, new), True)
    assert run("failures", named[1]["fingerprint"][:12], "--json").json["error"]["newest_id"] == other
    assert (first["count"], first["capped"], first["came_back"]) == (2, False, False)


def test_failures_shows_one_error_without_secrets(run, dead_letter):
    dead_letter(message="wrong password hunter22", traceback="at hunter22", payload='{"password": "hunter22"}')
    (fingerprint,) = (one["fingerprint"] for one in rows(run("failures")))
    said = run("failures", fingerprint)
    assert "1 dead letter of the type send_welcome" in said.out
    assert "at [redacted]" in said.out
    told = run("failures", fingerprint, "--json").json["error"]
    assert (told["traceback"], told["shares"]["queues"]) == ("at [redacted]", [{"name": "default", "number": 1}])
    assert "hunter22" not in said.out + json.dumps(told) + run("failures").out
    said = run("failures", "unheard")
    assert (said.code, "No dead letter has the fingerprint 'unheard'." in said.err) == (3, True)


# stuck


def test_stuck_names_each_reason(run, queue, alias, worker):
    assert (run("stuck").code, run("stuck").err) == (0, "0 running jobs looked at, 0 stuck.\n")
    ids = put_all(queue, *(draft("send_welcome") for _ in range(6)))
    claims = take(queue, 6, "host:1:one", types=frozenset({"send_welcome"}))
    queue.progress([Progress(ids[4], claims[0].fence, "host:1:one", '{"percent": 1}')])
    worker("one", left_out={"someone": "a trigger fails"})
    worker("two", owner="gone", seen_at=queue.now())
    now = queue.now()
    changes = {
        ids[0]: {"lease_until": now - HOUR},
        ids[1]: {"started_at": now - HOUR, "timeout": 60.0},
        ids[2]: {"cancel_requested_at": now - HOUR},
        ids[4]: {"started_at": now - 2 * HOUR, "timeout": 36_000.0, "updated_at": now - HOUR},
    }
    for job_id, values in changes.items():
        Job.objects.using(alias).filter(pk=job_id).update(**values)
    said = run("stuck")
    assert [(one["id"], one["reason"]) for one in rows(said)] == [
        ("someone", "left_out"),
        (ids[0], "lease_ended"),
        (ids[1], "over_time"),
        (ids[2], "not_stopping"),
        (ids[4], "no_progress"),
    ]
    assert (said.code, said.err.splitlines()[-1]) == (1, "6 running jobs looked at, 5 stuck.")
    assert "over_time: it runs longer than its time limit.\n" in said.err
    told = run("stuck", "--json").json
    assert (told["jobs"][1]["worker"], told["jobs"][1]["reason"]) == ("one", "lease_ended")
    assert (told["looked_at"], told["is_part"]) == (6, False)


# durations and activity


def test_durations_and_activity_are_told_by_type(run, queue):
    assert "No attempt has ended in the last hour." in run("durations").err
    assert "No attempt has ended in the last hour." in run("activity").err
    ran = Lengths({40: 95, 60: 5}, 30.0)
    tallies = [
        Tally(
            "mail", "send_welcome", completed=90, retried=5, dead_lettered=10, waited=Lengths({30: 100}, 1.0), ran=ran
        ),
        Tally("default", "send_welcome", completed=10, ran=Lengths({40: 10}, 3.0)),
        Tally("default", "resize_image", completed=1, lost=2, ran=Lengths({50: 1}, 0.5)),
    ]
    queue.metrics.add(queue.now(), tallies)
    queue.metrics.add(queue.now() - 3 * HOUR, [Tally("default", "nightly", completed=1, ran=Lengths({50: 1}, 0.5))])
    welcome, resize = rows(run("durations"))
    assert (welcome["type"], welcome["attempts"], welcome["run_p50"][-2:]) == ("send_welcome", "110", "ms")
    assert (resize["attempts"], resize["wait_p50"]) == ("1", "-")
    (told,) = run("durations", "--type", "send_welcome", "--json").json["types"]
    assert told["ran"]["p50"] < told["ran"]["p99"]
    assert [one["type"] for one in rows(run("durations", "--limit", "1"))] == ["send_welcome"]
    assert len(rows(run("durations", "--window", "day"))) == 3
    assert "Did you mean 'resize_image'?" in run("durations", "--type", "resize_imag").err

    welcome, resize, total = rows(run("activity"))
    assert (welcome["completed"], welcome["dead_letters"], welcome["success"]) == ("100", "10", "90.9 %")
    assert (resize["lost"], total["type"], total["completed"]) == ("2", "all types", "101")
    told = run("activity", "--json").json["total"]
    assert (told["per_minute"], told["dead_lettered"]) == (1.68, 10)


# duplicates


def test_duplicates_have_one_type_queue_tenant_and_payload(run, queue):
    assert run("duplicates").code == 0
    same = [draft("send_welcome", queue="mail", delay=HOUR * n) for n in range(3)]
    others = [draft("send_welcome"), draft("resize_image"), draft("send_welcome", queue="mail", tenant="acme")]
    put_all(queue, *same, *others, draft("send_welcome", queue="mail", payload='{"image_id": 8}'))
    said = run("duplicates")
    (one,) = rows(said)
    assert (one["type"], one["queue"], one["jobs"]) == ("send_welcome", "mail", "3")
    assert set(one["ids"].split(", ")) == {one.id for one in same}
    assert (said.code, said.err) == (1, "7 queued jobs looked at; 1 payloads are there more than once.\n")


def test_a_large_backlog_hides_no_other_type(run, queue, monkeypatch):
    put_all(queue, *(draft("resize_image", payload=f'{{"n": {n}}}') for n in range(30)))
    put_all(queue, draft("send_welcome"), draft("send_welcome"), draft("other", queue="zoo"))
    monkeypatch.setattr(room, "EACH", 10)
    told = run("duplicates", "--json").json
    assert [one["type"] for one in told["groups"]] == ["send_welcome"]
    assert (told["looked_at"], told["is_part"]) == (13, True)


def test_all_queued_jobs_are_found_once(queue):
    ids = put_all(queue, *(draft(queue=f"queue-{n % 3}", priority=1 + n % 10) for n in range(2 * PAGE + 1)))
    assert sorted(one.id for page in all_queued(queue) for one in page) == sorted(ids)


@pytest.mark.parametrize("verb", ["failures", "stuck", "durations", "duplicates", "activity"])
def test_a_question_survives_what_foreign_programs_write(run, queue, alias, verb):
    put(queue, "\x1b[31mred", queue="a\u202eb\nc", payload='{"n": [1e999, "\\ud800"]}' if alias == "default" else "{}")
    put(queue, "\x1b[31mred", queue="a\u202eb\nc", payload='{"n": [1e999, "\\ud800"]}' if alias == "default" else "{}")
    take(queue, 1, "\x1b]0;title\x07", types=frozenset({"\x1b[31mred"}))
    queue.metrics.add(queue.now(), [Tally("a\nb", "\x1b[31mred", completed=1, ran=Lengths({3: 1}, 1.0))])
    said = run(verb)
    assert said.code in (0, 1)
    assert "\x1b" not in said.out + said.err
    assert run(verb, "--json").json
