"""Tests of the backend for ``django.tasks``: tasks are enqueued, run by a worker, and read as results."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from datetime import datetime, timedelta

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings as project
from django.db import transaction

if not project.HAS_TASKS:
    pytest.skip("neither Django 6 nor the package django-tasks is there", allow_module_level=True)

from jobqueue import Fixed, backends, control, enqueue, get
from jobqueue.clock import SYSTEM
from jobqueue.contrib.django_tasks import JobQueueBackend, JobQueueTask, as_handler, as_task
from jobqueue.contrib.django_tasks.job_types import task_types
from jobqueue.contrib.django_tasks.options import mistakes
from jobqueue.contrib.django_tasks.priorities import band, levels
from jobqueue.contrib.django_tasks.tasks_api import (
    InvalidTask,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_backends,
    task_enqueued,
    task_finished,
    task_started,
)
from jobqueue.errors import PayloadRefused, QueueFull
from jobqueue.handlers.registry import registry
from jobqueue.models import Job
from jobqueue.testing.contract.harness import put
from tests.app.jobs import send_welcome
from tests.cli.conftest import run as command
from tests.conftest import ON_SQLITE
from tests.contrib.parcels import tasks
from tests.suites.hosts import drain

__all__ = ["command"]

PATH = "tests.contrib.parcels.tasks"
SIGNALS = {"enqueued": task_enqueued, "started": task_started, "finished": task_finished}


@pytest.fixture(autouse=True)
def told():
    tasks.TOLD.clear()
    return tasks.TOLD


@pytest.fixture
def run(queue):
    """A function that runs what is due, as a worker's executor does."""
    return drain


@pytest.fixture
def heard():
    """The signals that were sent, with their senders and results; the last receiver of each fails."""
    sent, receivers = [], []
    for name, signal in SIGNALS.items():

        def receive(sender, task_result, name=name, **_):
            sent.append((name, sender, task_result.status, task_result))

        def fail(**_):
            raise RuntimeError("a receiver failed")

        for one in (receive, fail):
            signal.connect(one, weak=False)
            receivers.append((signal, one))
    yield sent
    for signal, one in receivers:
        signal.disconnect(one)


def test_a_task_runs_and_its_result_has_every_field(run):
    before = SYSTEM.now() - timedelta(seconds=1)
    result = tasks.weigh.enqueue(7, unit="g")
    assert (result.status, result.args, result.kwargs) == (TaskResultStatus.READY, [7], {"unit": "g"})
    assert tasks.weigh.get_result(result.id) == result
    run()
    result.refresh()
    assert result.return_value == {"parcel": 7, "unit": "g"}
    assert before < result.enqueued_at <= result.started_at == result.last_attempted_at <= result.finished_at
    assert (result.status, result.is_finished, result.errors) == (TaskResultStatus.SUCCESSFUL, True, [])
    assert (result.attempts, result.backend, result.args, result.kwargs) == (1, "default", [7], {"unit": "g"})
    assert result.worker_ids == [get(result.id).completed_by]
    assert get(result.id).type == f"{PATH}.weigh"
    assert get(result.id).payload == {"parcel_id": 7, "unit": "g"}


@ON_SQLITE
def test_a_task_that_its_queue_sheds_says_so(queue, settings):
    options = {"capacity": 1, "when_full": "shed"}
    settings.JOBQUEUE = {**settings.JOBQUEUE, "QUEUES": {"*": options}}
    task = tasks.weigh.using(priority=-50)
    task.enqueue(7)
    with pytest.raises(QueueFull, match="sheds tasks that are less urgent than usual"):
        task.enqueue(8)
    assert Job.objects.count() == 1


def test_async_tasks_are_enqueued_and_run(run):
    async def enqueue_and_look():
        result = await tasks.announce.aenqueue(parcel_id=3)
        assert await tasks.announce.aget_result(result.id) == result
        return result

    result = async_to_sync(enqueue_and_look)()
    assert (get(result.id).queue, get(result.id).priority, result.task.priority) == ("parcels", 4, 10)
    run()
    async_to_sync(result.arefresh)()
    assert result.return_value == [3]


def test_receivers_use_the_database_and_set_context_variables_for_a_coroutine(run, told):
    def receive(task_result, **_):
        tasks.DESK.set(get(task_result.id).status)

    task_started.connect(receive)
    try:
        result = tasks.look_at_desk.enqueue()
        run()
    finally:
        task_started.disconnect(receive)
    result.refresh()
    assert result.return_value == "in_progress"


@ON_SQLITE
@pytest.mark.parametrize(("args", "kwargs"), [((), {}), ((1, [2]), {}), ((1,), {"args": 2, "kwargs": {"a": None}})])
def test_arguments_of_every_kind_arrive(run, args, kwargs):
    result = tasks.pack.enqueue(*args, **kwargs)
    run()
    result.refresh()
    assert result.return_value == [list(args), kwargs] == [result.args, result.kwargs]


def test_enqueueing_follows_the_transaction(queue, heard):
    with pytest.raises(ZeroDivisionError), queue.atomic():
        gone = tasks.weigh.enqueue(1)
        raise ZeroDivisionError
    with queue.atomic():
        kept = tasks.weigh.enqueue(2)
        assert heard == []
    assert [(name, sender, result) for name, sender, _, result in heard] == [("enqueued", JobQueueBackend, kept)]
    with pytest.raises(TaskResultDoesNotExist):
        tasks.weigh.get_result(gone.id)
    assert transaction.get_autocommit(using=project.JOBQUEUE["DATABASE"])


def test_receivers_hear_of_each_step_and_change_no_outcome(run, heard):
    good, bad = tasks.weigh.enqueue(1), tasks.forget.enqueue()
    run()
    steps = [(name, status) for name, _, status, result in heard if result.id == good.id]
    assert steps == [("enqueued", "READY"), ("started", "RUNNING"), ("finished", "SUCCESSFUL")] or steps[1:] == [
        ("started", "SUCCESSFUL"),
        ("finished", "SUCCESSFUL"),
    ]
    assert {sender for _, sender, _, _ in heard} == {JobQueueBackend}
    good.refresh()
    bad.refresh()
    assert (good.status, bad.status) == (TaskResultStatus.SUCCESSFUL, TaskResultStatus.FAILED)
    assert [name for name, _, _, result in heard if result.id == bad.id] == ["enqueued", "started", "finished"]
    assert bad.errors[0].exception_class is TypeError


def test_each_attempt_is_counted_and_keeps_its_error(run, heard, told):
    result = tasks.count_attempts.using(max_attempts=3).enqueue(3)
    Job.objects.using(project.JOBQUEUE["DATABASE"]).update(max_retries=3)
    for _ in range(3):
        run()
        Job.objects.using(project.JOBQUEUE["DATABASE"]).filter(status="queued").update(
            scheduled_at=SYSTEM.now() - timedelta(seconds=1)
        )
    result.refresh()
    assert (result.return_value, result.attempts) == (3, 3)
    assert [error.exception_class for error in result.errors] == [ValueError, ValueError]
    assert "attempt 1" in result.errors[0].traceback
    assert "Traceback" in result.errors[0].traceback
    assert result.started_at < result.last_attempted_at
    assert [(attempt, len(workers)) for attempt, _, workers in told] == [(1, 1), (2, 2), (3, 3)]
    assert [name for name, *_ in heard].count("finished") == 1


def test_a_task_runs_once_unless_it_says_otherwise(run):
    result = tasks.count_attempts.enqueue(2)
    run()
    result.refresh()
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 1)
    with pytest.raises(ValueError, match="Task failed"):
        _ = result.return_value


@ON_SQLITE
def test_settings_give_a_task_its_options(queue):
    result = tasks.lose.enqueue(1)
    kind = registry.get("parcels.lose_one")
    assert (kind.name, get(result.id).max_retries, result.backend) == (f"{PATH}.lose", 2, "graded")
    assert kind.policy.delay == Fixed(0.01)
    assert get(tasks.weigh.using(backend="graded").enqueue(1).id).max_retries == 3
    assert get(tasks.weigh.using(backend="graded", max_attempts=4).enqueue(1).id).max_retries == 4


def test_every_status_has_its_counterpart(run):
    delayed = tasks.weigh.using(run_after=timedelta(hours=1)).enqueue(1)
    cancelled, expired = tasks.weigh.enqueue(2), tasks.weigh.using(expires_at=SYSTEM.now()).enqueue(3)
    control.cancel([cancelled.id])
    dead = tasks.lose.using(max_attempts=1).enqueue(4)
    run()
    for result in (delayed, cancelled, expired, dead):
        result.refresh()
    assert [one.status for one in (delayed, cancelled, expired, dead)] == ["READY", "FAILED", "FAILED", "FAILED"]
    assert delayed.task.run_after - delayed.enqueued_at > timedelta(minutes=59)
    assert "cancelled" in cancelled.errors[0].traceback
    assert "expired" in expired.errors[0].traceback
    assert dead.errors[0].exception_class is LookupError


@ON_SQLITE
def test_a_key_keeps_a_task_from_being_enqueued_twice(queue, heard):
    first = tasks.weigh.using(unique_key="weigh").enqueue(1)
    second = tasks.weigh.using(unique_key="weigh").enqueue(2)
    assert (second.id, second.args) == (first.id, [1])
    assert len(heard) == 1


WRONG = {
    "a date": (lambda: tasks.weigh.enqueue(SYSTEM.now()), TypeError, "Unsupported type"),
    "no number": (lambda: tasks.weigh.enqueue(float("nan")), PayloadRefused, "NaN|JSON"),
    "a key that is no text": (lambda: tasks.weigh.enqueue({1: 2}), PayloadRefused, "not text"),
    "one argument too few": (lambda: tasks.weigh.enqueue(), TypeError, "missing a required argument: 'parcel_id'"),
    "one argument too many": (lambda: tasks.weigh.enqueue(1, 2), TypeError, "too many positional"),
    "a priority out of range": (lambda: tasks.weigh.using(priority=101), InvalidTask, "-100 and 100"),
    "a priority that is not listed": (lambda: tasks.lose.using(priority=1), InvalidTask, r"-10, 0, 80, 90"),
    "a queue that is not listed": (lambda: tasks.weigh.using(queue_name="x"), InvalidTask, "not valid for backend"),
    "a name that no queue has": (lambda: tasks.lose.using(queue_name="a b"), InvalidTask, "must be letters"),
    "a naive moment": (lambda: tasks.weigh.using(run_after=datetime(2030, 1, 1)), InvalidTask, "aware"),  # noqa: DTZ001
    "a moment too far away": (lambda: tasks.weigh.using(run_after=timedelta.max), InvalidTask, "too far away"),
    "no attempt": (lambda: tasks.weigh.using(max_attempts=0).enqueue(1), InvalidTask, "max_retries"),
    "an option of the type": (lambda: tasks.weigh.using(lease=3), TypeError, "belongs to all jobs"),
    "an unknown option": (lambda: tasks.weigh.using(colour="red"), TypeError, "colour"),
    "no function of a module": (
        lambda: JobQueueTask.of_function(lambda: None, "default", "default"),
        InvalidTask,
        "module",
    ),
}


@ON_SQLITE
@pytest.mark.parametrize(("act", "error", "words"), WRONG.values(), ids=WRONG)
def test_bad_input_is_refused_and_stores_nothing(queue, heard, act, error, words):
    with pytest.raises(error, match=words):
        act()
    assert not Job.objects.exists()
    assert heard == []


def test_an_id_without_a_task_has_no_result(queue):
    plain, other = send_welcome.enqueue(user_id=1), tasks.lose.enqueue(1)
    for wrong in ("123", "\0", "a" * 1000, "\ud800", None, plain.id):
        with pytest.raises(TaskResultDoesNotExist):
            tasks.weigh.get_result(wrong)
    with pytest.raises(TaskResultDoesNotExist, match="alias 'graded', not 'default'"):
        task_backends["default"].get_result(other.id)
    with pytest.raises(sys.modules[TaskResultDoesNotExist.__module__].TaskResultMismatch):
        tasks.weigh.get_result(tasks.pack.enqueue().id)


def test_a_path_in_a_row_is_never_imported(run, queue, command):
    put(queue, "os.system", id="foreign", payload='{"args": ["true"]}')
    run()
    assert get("foreign").status == "queued"
    assert "os.system" not in registry.names
    assert "os.system" in command("why", "foreign").out
    with pytest.raises(TaskResultDoesNotExist, match="which is no task here"):
        task_backends["default"].get_result("foreign")


def test_rows_of_other_programs_harm_nothing(run, queue):
    wrong = {"alias": 3, "args": -1, "priority": "x", "run_after": "x"}
    contexts = ['"x"', "[]", *(json.dumps({"task": facts}) for facts in (3, {"alias": "gone"}, wrong))]
    for number, context in enumerate(contexts):
        put(queue, f"{PATH}.weigh", id=f"foreign {number}", payload=json.dumps({"parcel_id": number}), context=context)
    put(queue, f"{PATH}.pack", id="bad", payload='{"args": 3}')
    put(queue, f"{PATH}.weigh", id="7" + "Z" * 25, payload='{"colour": 3}')
    run()
    for number in range(len(contexts)):
        assert task_backends["default"].get_result(f"foreign {number}").return_value["parcel"] == number
    for job_id in ("bad", "7" + "Z" * 25):
        result = task_backends["default"].get_result(job_id)
        assert (result.status, get(job_id).end_reason) == (TaskResultStatus.FAILED, "invalid payload")
        assert result.errors[0].exception_class.__name__ == "PayloadInvalid"
    Job.objects.using(project.JOBQUEUE["DATABASE"]).filter(id="bad").update(attempts=1_000_000_000)
    assert task_backends["default"].get_result("bad").attempts == 10_000


@ON_SQLITE
def test_the_class_of_an_error_is_not_imported(queue, run):
    result = tasks.lose.using(max_attempts=1).enqueue(1)
    run()
    result.refresh()
    for path in ("antigravity.Error", "os.system", "nothing", ""):
        wrong = type(result.errors[0])(exception_class_path=path, traceback="")
        with pytest.raises((ImportError, ValueError), match=r"no row may import it|not reference a valid exception"):
            _ = wrong.exception_class
    assert "antigravity" not in sys.modules


def test_handlers_are_tasks_and_tasks_are_handlers(run):
    task = as_task(send_welcome)
    result = task.enqueue(user_id=3)
    receipt = as_handler(tasks.weigh).using(tenant="acme").enqueue(parcel_id=4)
    named = enqueue(f"{PATH}.weigh", {"parcel_id": 5})
    run()
    assert (get(result.id).type, task.get_result(result.id).return_value) == ("send_welcome", "3 en")
    assert tasks.weigh.get_result(receipt.id).return_value["parcel"] == 4
    assert tasks.weigh.get_result(named.id).kwargs == {"parcel_id": 5}


def test_a_killed_task_has_failed(queue, start_worker, jobs):
    result = tasks.crash.enqueue()
    start_worker(settings="tests.contrib.tasks_settings")
    jobs.until("dead_letter", result)
    result.refresh()
    assert (result.status, result.attempts, len(result.errors)) == (TaskResultStatus.FAILED, 1, 1)


def test_a_better_task_never_gets_a_worse_job():
    bands = [band(priority) for priority in range(-100, 101)]
    assert bands == sorted(bands, reverse=True)
    assert (band(-100), band(0), band(100)) == (10, 5, 1)
    assert levels([90, 80, -10]) == {90: 3, 80: 4, 0: 5, -10: 6}


def test_listed_priorities_keep_their_order(run, told):
    for priority in (80, 0, 90, -10):
        tasks.weigh.using(backend="graded", priority=priority).enqueue(priority)
    run()
    assert [priority for priority, _ in told] == [90, 80, 0, -10]


@ON_SQLITE
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "must be a dict"),
        ({"max_atempts": 3}, "Did you mean 'max_attempts'"),
        ({"max_attempts": 0}, "max_retries"),
        ({"backoff": "1"}, "retry"),
        ({"lease": 0.001}, "lease"),
        ({"modules": "shop.orders"}, "list of module names"),
        ({"priorities": [1, 2, 3, 4, 5]}, "at most 4"),
        ({"tasks": {"a.b": {"timeout": -1}}}, r"tasks'\]\['a.b'\] is wrong"),
    ],
)
def test_wrong_options_are_named(queue, settings, options, words):
    settings.TASKS = {"default": {"BACKEND": settings.TASKS["default"]["BACKEND"], "OPTIONS": options}}
    assert any(one.id == "jobqueue_django_tasks.E001" for one in task_backends["default"].check())
    with pytest.raises(InvalidTask, match=words):
        tasks.weigh.enqueue(1)
    assert len([*mistakes(options)]) == 1


@ON_SQLITE
def test_checks_name_what_is_missing(queue, settings, monkeypatch):
    backend = task_backends["default"]
    assert [*backend.check()] == []
    monkeypatch.setattr(task_types, "late", {f"{PATH}.weigh"})
    backend.options = {"tasks": {f"{PATH}.wiegh": {}}}
    found = {one.id: one.hint for one in backend.check()}
    assert found["jobqueue_django_tasks.W001"] == f"Did you mean '{PATH}.weigh'?"
    assert f"add {PATH!r} to OPTIONS['modules']" in found["jobqueue_django_tasks.W002"]
    with settings_without_app(settings):
        assert "jobqueue_django_tasks.E002" in {one.id for one in backend.check()}


def settings_without_app(settings):
    from django.test import override_settings

    return override_settings(INSTALLED_APPS=[one for one in settings.INSTALLED_APPS if "django_tasks" not in one])


@ON_SQLITE
def test_results_can_be_copied(queue):
    result = tasks.weigh.using(tenant="acme").enqueue(1)
    assert asdict(result)["task"]["tenant"] == "acme"
    assert backends.current().jobs.get(result.id).tenant == "acme"
