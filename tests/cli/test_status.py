"""Tests of `status` and `workers`: their output, and their exit codes for monitors."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobqueue.models import Worker
from jobqueue.observe.health.workers import PATIENCE
from jobqueue.records import Scope, WorkerState
from jobqueue.testing.contract.harness import draft, put, put_all, take


def test_an_empty_queue_is_ok(run):
    said = run("status")
    assert (said.code, said.err) == (0, "")
    assert said.out == "ok: 0 jobs queued, 0 in progress, 0 dead letters, 0 workers up\n"
    assert run("status", "--json").json["level"] == "ok"


@pytest.mark.parametrize(
    ("waiting", "code", "level"), [(7, 0, "ok"), (8, 1, "warning"), (10, 2, "error"), (12, 2, "error")]
)
def test_depth_is_judged_against_the_capacity(run, queue, worker, settings, waiting, code, level):
    settings.JOBQUEUE = settings.JOBQUEUE | {"CAPACITY": 10}
    worker()
    put_all(queue, *(draft("send_welcome", delay=timedelta(days=turn % 2)) for turn in range(waiting)))
    said = run("status", "--json")
    assert (said.code, said.json["level"]) == (code, level)
    (state,) = said.json["queues"]
    assert (state["depth"], state["capacity"], state["level"]) == (waiting, 10, level)
    assert state["share"] == waiting / 10
    plain = run("status")
    assert plain.out.startswith(f"{level}: {waiting} jobs queued")
    assert (f"{waiting} jobs wait, {waiting}0 % of its capacity of 10" in plain.out) == (code > 0)


@pytest.mark.parametrize(("waiting", "code", "level"), [(3, 0, "ok"), (4, 1, "warning"), (5, 2, "error")])
def test_a_queue_is_judged_against_its_own_capacity(run, queue, worker, settings, waiting, code, level):
    queues = {"im*": {"capacity": 5, "when_full": "shed"}}
    settings.JOBQUEUE = settings.JOBQUEUE | {"CAPACITY": 1_000, "QUEUES": queues}
    worker()
    put_all(queue, *(draft("resize_image", queue="images") for _ in range(waiting)), draft("send_welcome"))
    queue.gauges.add_shed("images", 7)
    said = run("status", "--json")
    assert (said.code, said.json["level"]) == (code, level)
    default, images = said.json["queues"]
    assert (default["capacity"], default["when_full"], default["shed"]) == (1_000, "accept", 0)
    assert (images["capacity"], images["when_full"], images["shed"]) == (5, "shed", 7)
    plain = run("status").out
    assert "shed" in plain.lower().splitlines()[-2]
    assert ("At 100 %, jobs that are less urgent than usual are dropped." in plain) == (code > 0)


def test_status_counts_by_type_and_queue(run, queue, worker, dead_letter):
    worker()
    dead_letter()
    put_all(
        queue, draft("resize_image", queue="images"), draft("resize_image", queue="images", delay=timedelta(hours=1))
    )
    put(queue, "send_welcome")
    take(queue, 1, types=frozenset({"send_welcome"}))
    document = run("status", "--json").json
    rows = {row["type"]: row for row in document["types"]}
    assert {
        name: rows["resize_image"][name] for name in ("queue", "queued", "delayed", "in_progress", "dead_letters")
    } == {
        "queue": "images",
        "queued": 2,
        "delayed": 1,
        "in_progress": 0,
        "dead_letters": 0,
    }
    assert (rows["send_welcome"]["in_progress"], rows["send_welcome"]["dead_letters"]) == (1, 1)
    assert rows["resize_image"]["oldest_due_at"].endswith("Z")
    assert document["workers"] == {"alive": 1, "silent": 0, "slots": 10, "busy": 0}
    assert "images" in run("status").out


def test_jobs_that_are_due_without_a_worker_are_a_warning(run, queue, alias, worker):
    put(queue, "send_welcome", delay=timedelta(hours=1))
    assert run("status").code == 0
    put(queue, "send_welcome")
    assert run("status").code == 0  # a deploy may restart the worker
    put(queue, "send_welcome", scheduled_at=queue.now() - PATIENCE)
    said = run("status")
    assert said.code == 1
    assert "No worker is up: 2 jobs are due." in said.out
    worker()
    assert run("status").code == 0
    Worker.objects.using(alias).update(seen_at=queue.now() - timedelta(minutes=2))
    assert run("status").code == 1
    assert "0 workers up (1 more silent)" in run("status").out


def test_types_that_nobody_knows_are_named(run, queue, worker):
    put_all(queue, draft("nosuch"), draft("greet"), draft("send_welcome"))
    worker()
    document = run("status", "--json").json
    assert document["unserved_types"] == ["greet", "nosuch"]
    assert document["unknown_types"] == ["nosuch"]
    worker("other", types=("greet", "nosuch"))
    said = run("status", "--json")
    assert (said.code, said.json["unserved_types"], said.json["unknown_types"]) == (1, [], ["nosuch"])


def test_a_worker_of_another_queue_or_one_that_stops_takes_nothing(run, queue, worker):
    put(queue, "greet", queue="images", scheduled_at=queue.now() - PATIENCE)
    put(queue, "send_welcome")
    worker("elsewhere", types=("greet", "send_welcome"), queues=("default",))
    said = run("status", "--json")
    assert (said.code, said.json["unserved_types"]) == (1, [])
    assert [one["text"] for one in said.json["findings"]] == ["No live worker serves the queue images: 1 job waits."]
    put(queue, "resize_image", scheduled_at=queue.now() - PATIENCE)
    worker("leaving", types=("resize_image",), state=WorkerState.STOPPING)
    said = run("status", "--json")
    assert (said.code, said.json["unserved_types"]) == (1, ["resize_image"])
    assert "The workers that take jobs of type resize_image are quiet or stopping: 1 job waits." in run("status").out


def test_what_is_paused_is_told_with_its_reason(run, queue):
    queue.operator.pause(Scope.QUEUE, "mail", "the provider is down")
    queue.operator.pause(Scope.TYPE, "resize_image", "")
    said = run("status")
    assert said.code == 0
    assert "the provider is down" in said.out
    assert [(one["scope"], one["name"]) for one in run("status", "--json").json["paused"]] == [
        ("queue", "mail"),
        ("type", "resize_image"),
    ]


def test_a_duty_is_listed_and_its_failure_is_a_warning(run, queue, worker):
    owner = worker().owner
    queue.duties.begin("sample", owner, timedelta(minutes=1))
    queue.duties.end("sample", owner, timedelta(minutes=1), timedelta(seconds=1), "OSError: disk full\nin line 7")
    (duty,) = run("workers", "--json").json["duties"]
    assert (duty["name"], duty["owner"], duty["seconds"]) == ("sample", owner, 1.0)
    said = run("status")
    assert said.code == 1
    assert "The workers' duty “sample” has failed for 0s: OSError: disk full." in said.out


def test_workers_are_asked_by_name_or_owner(run, queue, alias, worker):
    for name in ("one", "two", "three"):
        worker(name)
    said = run("workers", "quiet", "one", "host:1:two", "--json")
    assert (said.code, said.json) == (0, {"request": "quiet", "workers": ["host:1:one", "host:1:two"]})
    assert "The worker one (host:1:one) will stop taking jobs within 10 seconds; its running jobs continue." in said.err

    def asked():
        return {one.name: one.asked for one in queue.workers.all()}

    assert asked() == {"one": "quiet", "two": "quiet", "three": None}
    assert run("workers", "resume", "two").code == 0
    assert run("workers", "stop", "three").code == 0
    assert asked() == {"one": "quiet", "two": None, "three": "stop"}
    assert [one["asked"] for one in run("workers", "--json").json["workers"]] == ["quiet", "stop", None]


def test_of_workers_that_are_not_up_nobody_is_asked(run, queue, alias, worker):
    for name in ("one", "two"):
        worker(name)
    Worker.objects.using(alias).filter(name="two").update(seen_at=queue.now() - timedelta(minutes=2))
    for name in ("two", "onne"):
        said = run("workers", "stop", "one", name)
        assert said.code == 3
        assert f"No live worker is named '{name}'." in said.err
    assert run("workers", "stop").code == 2
    assert run("workers", "kill", "one").code != 0
    assert [one.asked for one in queue.workers.all()] == [None, None]


def test_workers_are_listed_and_silent_ones_are_marked(run, queue, alias, worker):
    assert (run("workers").code, run("workers").out) == (1, "")
    assert "No worker is up" in run("workers").err
    worker("one", queues=("mail", "default"), busy=3)
    worker("two", state=WorkerState.STOPPING)
    Worker.objects.using(alias).filter(name="two").update(seen_at=queue.now() - timedelta(minutes=2))
    said = run("workers")
    assert said.code == 0
    head, one, two = (line.split("\t") for line in said.out.splitlines())
    assert head == ["name", "host", "pid", "state", "version", "queues", "types", "slots", "busy", "seen", "started"]
    assert one[:9] == ["one", "host", "1", "running", "0.1.0", "mail, default", "2", "10", "3"]
    assert (two[3], two[5]) == ("silent", "all")
    document = run("workers", "--json").json
    assert [(row["name"], row["alive"]) for row in document["workers"]] == [("one", True), ("two", False)]
