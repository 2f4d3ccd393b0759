"""Tests of `retry`, `retry-all`, `cancel`, `purge`, `pause`, `resume` and `enqueue`."""

from __future__ import annotations

import pytest

import jobqueue
from jobqueue import control
from jobqueue.errors import JobNotFound
from jobqueue.models import Job
from jobqueue.records import Filter, Scope
from jobqueue.states import JobStatus
from jobqueue.testing.contract.harness import draft, put, put_all, take


def statuses(*job_ids):
    return [jobqueue.get(one).status.value for one in job_ids]


def test_jobs_are_retried_by_id_and_refusals_are_told(run, queue, dead_letter):
    dead, waiting = dead_letter(), put(queue, "send_welcome")
    said = run("retry", dead, waiting, "nosuch", dead)
    assert (said.code, said.out) == (1, "1 job retried.\n")
    assert "1 job refused: does not exist (nosuch)" in said.err
    assert "is queued; only cancelled jobs and dead letters are retried" in said.err
    assert statuses(dead) == ["queued"]


def test_what_was_done_is_told_to_a_program(run, queue, dead_letter):
    dead = dead_letter()
    said = run("retry", dead, "nosuch", "--json")
    assert said.json == {
        "verb": "retry",
        "dry_run": False,
        "done": [dead],
        "refused": [{"id": "nosuch", "reason": "does not exist"}],
    }


def test_retry_without_an_id_is_refused(run):
    assert run("retry").code != 0


def test_retry_all_takes_dead_letters_alone(run, queue, dead_letter):
    dead, other = dead_letter(), dead_letter("resize_image")
    cancelled = put(queue, "send_welcome")
    queue.operator.cancel([cancelled])
    assert run("retry-all", "--dry-run").out == "2 jobs would be retried.\n"
    assert run("retry-all", "--type", "send_welcome", "--yes").out == "1 job retried.\n"
    assert statuses(dead, other, cancelled) == ["queued", "dead_letter", "failed"]
    assert run("retry-all", "--status", "failed", "--yes").code == 0
    assert statuses(cancelled) == ["queued"]
    said = run("retry-all", "--error", "nothing like it", "--yes")
    assert (said.code, said.out, said.err) == (0, "", "No job matches.\n")


def test_a_status_that_cannot_be_retried_is_refused(run, queue):
    said = run("retry-all", "--status", "completed", "--yes")
    assert said.code == 3
    assert "completed cannot be retried" in said.err


def test_jobs_are_cancelled_by_id_and_by_filter(run, queue):
    first, second, third = put_all(
        queue, draft("send_welcome"), draft("send_welcome", queue="mail"), draft("resize_image")
    )
    assert run("cancel", first).code == 0
    assert run("cancel", "--queue", "mail", "--yes").out == "1 job cancelled.\n"
    assert statuses(first, second, third) == ["failed", "failed", "queued"]
    assert run("cancel", "--all", "--yes").code == 0
    assert statuses(third) == ["failed"]
    assert run("cancel", first).code == 1


def test_a_job_that_runs_is_asked_to_stop_and_not_called_cancelled(run, queue):
    running, waiting, other = put_all(
        queue, draft("send_welcome", priority=1), draft("send_welcome", priority=2), draft("send_welcome", priority=1)
    )
    take(queue, 2, types=frozenset({"send_welcome"}))
    assert run("cancel", running).out == "1 running job asked to stop.\n"
    said = run("cancel", "--all", "--yes", "--json").json
    assert (sorted(said["done"]), sorted(said["asked"])) == (
        sorted([running, waiting, other]),
        sorted([running, other]),
    )
    put(queue, "send_welcome")
    assert run("cancel", "--all", "--yes").out == "1 job cancelled, 2 running jobs asked to stop.\n"


@pytest.mark.parametrize("verb", ["purge", "cancel", "retry-all"])
def test_nothing_to_do_is_done(run, verb):
    said = run(verb, "--older-than", "30d", "--yes")
    assert (said.code, said.out, said.err) == (0, "", "No job matches.\n")
    assert run(verb, "--older-than", "30d", "--yes", "--json").json["done"] == []
    assert run(verb, "--older-than", "30d", "--dry-run").code == 1


def test_a_name_that_nobody_knows_is_told_with_the_nearest(run, queue):
    assert "Did you mean 'send_welcome'?" in run("pause", "--type", "send_welcom").err
    assert "Did you mean 'send_welcome'?" in run("list", "--type", "send_welcom").err
    assert "Did you mean 'images'?" in run("pause", "--queue", "image").err
    assert "Did you mean 'images'?" in run("purge", "--queue", "imags", "--yes").err
    assert "Did you mean 'send_welcom'?" in run("resume", "--type", "send_welcome").err
    put(queue, "send_welcome", queue="elsewhere")
    for words in (["--type", "send_welcome"], ["--queue", "images"], ["--queue", "elsewhere"]):
        assert len(run("pause", *words).err.splitlines()) == 1


def test_a_purge_by_filter_leaves_what_waits_and_what_runs(run, queue, dead_letter):
    dead = dead_letter()
    running, waiting = put_all(queue, draft("send_welcome", priority=1), draft("send_welcome"))
    take(queue, 1, types=frozenset({"send_welcome"}))
    assert run("purge", "--all", "--yes").out == "1 job purged.\n"
    assert statuses(running, waiting) == ["in_progress", "queued"]
    with pytest.raises(JobNotFound):
        jobqueue.get(dead)
    assert run("purge", "--status", "in-progress", "--yes").code == 3
    assert run("purge", running, waiting, "--yes").code == 1
    assert statuses(running) == ["in_progress"]


@pytest.mark.parametrize(
    "words",
    [
        ["purge"],
        ["cancel"],
        ["purge", "--yes"],
        ["cancel", "--limit", "5"],
        ["purge", "some-id", "--all", "--yes"],
        ["purge", "some-id", "--type", "send_welcome", "--yes"],
        ["purge", "--all"],
        ["retry-all"],
    ],
)
def test_what_is_not_clear_changes_nothing(process, dead_letter, words):
    dead = dead_letter()
    said = process(*words)
    assert said.code == 3
    assert said.out == ""
    assert "Nothing was changed" in said.err
    assert statuses(dead) == ["dead_letter"]


def test_bulk_work_goes_in_batches_and_stops_at_the_limit(run, queue, alias):
    put_all(queue, *(draft("send_welcome") for _ in range(1_203)))
    Job.objects.using(alias).update(status="dead_letter")
    told = []
    handled = control.retry_matching(Filter(), 1_100, told.append)
    assert (len(handled.done), told) == (1_100, [500, 1_000, 1_100])
    assert queue.jobs.count(Filter(statuses=frozenset({JobStatus.DEAD_LETTER}))) == 103
    assert run("retry-all", "--limit", "3", "--yes").out == "3 jobs retried.\n"
    assert run("purge", "--all", "--yes").out == "100 jobs purged.\n"
    assert queue.jobs.count(Filter()) == 1_103


def test_a_queue_and_a_type_are_paused_and_resumed(run, queue):
    assert run("pause", "--queue", "mail", "--reason", "the provider is down").code == 0
    assert "was already paused" in run("pause", "--queue", "mail").err
    said = run("pause", "--type", "send_welcome", "--json")
    assert (said.json["scope"], said.json["changed"], said.json["pause"]["name"]) == ("type", True, "send_welcome")
    assert [(one.scope, one.name) for one in queue.operator.pauses()] == [
        (Scope.QUEUE, "mail"),
        (Scope.TYPE, "send_welcome"),
    ]
    assert run("resume", "--queue", "mail", "--json").json["pause"] is None
    assert run("resume", "--type", "send_welcome").err == "The type send_welcome is resumed.\n"
    assert run("resume", "--type", "send_welcome").err == "The type send_welcome was not paused.\n"
    assert queue.operator.pauses() == []


@pytest.mark.parametrize("words", [[], ["--queue", "a", "--type", "b"], ["--queue", "no such queue"], ["--queue", ""]])
def test_a_pause_of_nothing_changes_nothing(run, queue, words):
    assert run("pause", *words).code != 0
    assert queue.operator.pauses() == []


def test_a_job_is_enqueued_by_name(run):
    said = run(
        "enqueue",
        "send_welcome",
        '{"user_id": 7}',
        "--queue",
        "mail",
        "--priority",
        "2",
        "--delay",
        "5m",
        "--workspace=north",
        "--tenant",
        "acme",
    )
    assert (said.code, said.err) == (0, "Enqueued send_welcome.\n")
    job = jobqueue.get(said.out.strip())
    assert (job.payload, job.queue, job.priority) == ({"user_id": 7, "language": "en"}, "mail", 2)
    assert (job.tenant, job.workspace) == ("acme", "north")
    assert (job.scheduled_at - job.created_at).total_seconds() == pytest.approx(300)


def test_a_key_that_is_taken_yields_the_job_that_has_it(run):
    first = run("enqueue", "send_welcome", '{"user_id": 7}', "--key", "a", "--json").json
    again = run("enqueue", "send_welcome", '{"user_id": 8}', "--key", "a", "--json")
    assert (again.code, again.json) == (0, {"id": first["id"], "outcome": "existing", "payload_differs": True})
    assert "already has this key, with another payload" in again.err
    assert run("enqueue", "resize_image", '{"image_id": 8}', "--key", "a").code == 3


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["send_welcom", "{}"], "Did you mean 'send_welcome'"),
        (["send_welcome", "{"], "The payload cannot be read: it is not JSON"),
        (["send_welcome"], "user_id"),
        (["send_welcome", '{"user_id": "sesame"}'], "The payload does not fit send_welcome: user_id: Input should be"),
        (["send_welcome", '{"user_id": 7, "more": 1}'], "more"),
        (["send_welcome", "[7]"], "payload"),
        (["keep", '{"value": NaN}'], "The payload cannot be read: it is not JSON: it has NaN"),
        (["send_welcome", '{"user_id": 7}', "--priority", "11"], "priority must be"),
        (["send_welcome", '{"user_id": 7}', "--queue", "no such"], "queue must be"),
        (["send_welcome", '{"user_id": 7}', "--timeout", "0s"], "timeout must be"),
    ],
)
def test_a_job_that_cannot_be_enqueued_is_one_sentence(run, queue, words, sentence):
    said = run("enqueue", *words)
    assert (said.code, said.out) == (3, "")
    assert sentence in said.err
    assert "sesame" not in said.err
    assert queue.jobs.count(Filter()) == 0
