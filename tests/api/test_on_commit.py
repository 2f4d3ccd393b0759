"""Tests of the caller's transaction, with which a job commits or vanishes, and is announced only afterwards."""

from __future__ import annotations

import logging
import warnings

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group
from django.db import connections, transaction
from django.test.utils import CaptureQueriesContext
from pydantic import ValidationError

import jobqueue
from jobqueue import InvalidOption, PayloadRefused, UnknownJobType, signals
from jobqueue.models import Job
from tests.app.jobs import Resize, anything, greet, resize_image, send_welcome

SECRET = "c4n4ry-5ecret"

ONE_EACH = {
    "a plain handler": lambda: send_welcome.enqueue(7),
    "a model's handler": lambda: resize_image.enqueue(Resize(image_id=7)),
    "with a key": lambda: send_welcome.using(idempotency_key="seven").enqueue(7),
    "with a delay": lambda: send_welcome.using(delay=60).enqueue(7),
    "by name": lambda: jobqueue.enqueue("send_welcome", {"user_id": 7}),
    "async": lambda: async_to_sync(send_welcome.aenqueue)(7),
    "async by name": lambda: async_to_sync(jobqueue.aenqueue)("send_welcome", {"user_id": 7}),
}
ALL = ONE_EACH | {
    "many": lambda: send_welcome.enqueue_many([{"user_id": 7}, {"user_id": 8}]),
    "drafts": lambda: jobqueue.enqueue_many([send_welcome.draft(7), greet.draft("Ada")]),
}
one_each = pytest.mark.parametrize("enqueue", ONE_EACH.values(), ids=ONE_EACH)
all_ways = pytest.mark.parametrize("enqueue", ALL.values(), ids=ALL)


@pytest.fixture
def groups(queue):
    """The caller's own rows, in the queue's database."""
    yield Group.objects.using(queue.alias)
    Group.objects.using(queue.alias).all().delete()


@pytest.fixture
def jobs(queue):
    return Job.objects.using(queue.alias)


@pytest.fixture
def heard(queue):
    """The ids that the signal told of."""
    ids = []

    def receive(*, job_id, **_):
        ids.append(job_id)

    signals.enqueued.connect(receive)
    yield ids
    signals.enqueued.disconnect(receive)


@pytest.fixture
def logged(queue, caplog):
    """The records of the queue's own log."""
    caplog.set_level(logging.DEBUG, logger="jobqueue")
    return lambda: [record for record in caplog.records if record.name == "jobqueue"]


@pytest.fixture
def listener(queue):
    listener = queue.listen()
    listener.hear(0)
    yield listener
    listener.close()


# With the caller's data, or not at all


@all_ways
def test_a_job_commits_with_the_callers_row(queue, groups, jobs, enqueue):
    with queue.atomic():
        groups.create(name="readers")
        enqueue()
    assert groups.count() == 1
    assert jobs.count() >= 1


@all_ways
def test_a_job_vanishes_with_the_callers_row(queue, groups, jobs, enqueue):
    with pytest.raises(ZeroDivisionError), queue.atomic():
        groups.create(name="readers")
        enqueue()
        raise ZeroDivisionError
    assert (groups.count(), jobs.count()) == (0, 0)


def test_a_rolled_back_savepoint_takes_its_jobs_alone(queue, groups, jobs, heard):
    with queue.atomic():
        kept = send_welcome.enqueue(7)
        with pytest.raises(ZeroDivisionError), queue.atomic():
            groups.create(name="readers")
            send_welcome.enqueue(8)
            raise ZeroDivisionError
    assert (groups.count(), [job.pk for job in jobs.all()]) == (0, [kept.id])
    assert heard == [kept.id]


def test_a_refused_job_leaves_the_callers_transaction_alive(queue, groups, jobs):
    send_welcome.using(idempotency_key="seven").enqueue(7)
    with queue.atomic():
        groups.create(name="readers")
        with pytest.raises(ValidationError):
            send_welcome.enqueue("seven")
        with pytest.raises(jobqueue.IdempotencyMismatch):
            resize_image.using(idempotency_key="seven").enqueue(image_id=7)
        assert not send_welcome.using(idempotency_key="seven").enqueue(7).created
    assert (groups.count(), jobs.count()) == (1, 1)


def test_another_connection_sees_the_job_only_after_the_commit(queue, jobs):
    other = connections[queue.alias].copy()
    try:
        with queue.atomic():
            receipt = send_welcome.enqueue(7)
            assert _ids(other) == []
        assert _ids(other) == [receipt.id]
    finally:
        other.close()


def _ids(connection):
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM job_queue")
        return [row[0] for row in cursor.fetchall()]


@one_each
def test_enqueueing_costs_one_statement(queue, enqueue):
    with queue.atomic(), CaptureQueriesContext(connections[queue.alias]) as captured:
        enqueue()
        statements = [query["sql"] for query in captured.captured_queries]
    assert len(statements) == 1, statements
    assert statements[0].lstrip().startswith("INSERT INTO job_queue")


# Nobody hears of it before


@all_ways
def test_a_rollback_is_heard_by_nobody(queue, jobs, heard, logged, listener, enqueue):
    with pytest.raises(ZeroDivisionError), queue.atomic():
        enqueue()
        raise ZeroDivisionError
    assert (heard, logged()) == ([], [])
    assert not listener.hear(0.05)


def test_a_commit_wakes_listeners_and_nothing_does_before(queue, listener):
    with queue.atomic():
        send_welcome.enqueue(7)
        assert not listener.hear(0.05)
    assert listener.hear(10)


@all_ways
def test_outside_a_transaction_listeners_are_woken_at_once(queue, listener, enqueue):
    enqueue()
    assert listener.hear(10)


@all_ways
def test_a_commit_is_told_once_for_each_job(queue, jobs, heard, logged, enqueue):
    with queue.atomic():
        enqueue()
        assert (heard, logged()) == ([], [])
    stored = sorted(job.pk for job in jobs.all())
    assert stored
    assert sorted(heard) == stored
    assert sorted(record.job_id for record in logged()) == stored


def test_a_duplicate_is_told_to_nobody(queue, heard, logged, listener):
    bound = send_welcome.using(idempotency_key="seven")
    bound.enqueue(7)
    while listener.hear(0.05):
        pass
    heard.clear()
    before = len(logged())
    bound.enqueue(7)
    assert (heard, len(logged())) == ([], before)
    assert not listener.hear(0.05)


def test_the_log_has_facts_as_fields_and_never_a_payload(queue, logged):
    receipt = anything.enqueue({"password": SECRET})
    (record,) = logged()
    assert (record.levelname, record.job_id, record.job_type, record.queue) == (
        "INFO",
        receipt.id,
        "anything",
        "default",
    )
    assert SECRET not in str(vars(record)) + record.getMessage()


# Receivers


@pytest.fixture
def failing(queue):
    def fail(**_):
        raise RuntimeError("a receiver that fails")

    signals.enqueued.connect(fail)
    yield
    signals.enqueued.disconnect(fail)


@all_ways
def test_a_failing_receiver_harms_nothing(queue, groups, jobs, failing, heard, listener, enqueue):
    enqueue()
    with queue.atomic():
        groups.create(name="readers")
        send_welcome.enqueue(8)
    assert groups.count() == 1
    assert len(heard) == jobs.count() >= 2
    assert listener.hear(10)


def test_a_receiver_hears_after_the_commit_and_finds_the_job(queue):
    found = []

    def look(*, job_id, job_type, queue, **_):
        found.append((jobqueue.get(job_id).type, job_type, queue, connections[alias].in_atomic_block))

    alias = queue.alias
    signals.enqueued.connect(look)
    try:
        with queue.atomic():
            resize_image.enqueue(image_id=7)
    finally:
        signals.enqueued.disconnect(look)
    assert found == [("resize_image", "resize_image", "images", False)]


def test_a_receiver_may_enqueue(queue, jobs):
    def follow(*, job_type, **_):
        if job_type == "resize_image":
            send_welcome.enqueue(7)

    signals.enqueued.connect(follow)
    try:
        with queue.atomic():
            resize_image.enqueue(image_id=7)
    finally:
        signals.enqueued.disconnect(follow)
    assert sorted(job.type for job in jobs.all()) == ["resize_image", "send_welcome"]


def test_a_receiver_is_told_the_job_its_type_and_its_queue_and_no_sender(queue):
    told = []

    def receive(**facts):
        facts.pop("signal")
        told.append(facts)

    signals.enqueued.connect(receive)
    try:
        receipt = resize_image.enqueue(image_id=7)
    finally:
        signals.enqueued.disconnect(receive)
    assert told == [{"sender": None, "job_id": receipt.id, "job_type": "resize_image", "queue": "images"}]


# enqueue_on_commit


def test_a_job_for_the_commit_is_stored_with_it(queue, jobs, heard):
    with queue.atomic():
        jobqueue.enqueue_on_commit(send_welcome, {"user_id": 7}, using=queue.alias, priority=1)
        assert jobs.count() == 0
    (stored,) = jobs.all()
    assert (stored.type, stored.priority, stored.payload["user_id"]) == ("send_welcome", 1, 7)
    assert heard == [stored.pk]


def test_a_job_for_the_commit_is_dropped_by_a_rollback(queue, jobs, heard, listener):
    with pytest.raises(ZeroDivisionError), queue.atomic():
        jobqueue.enqueue_on_commit("send_welcome", {"user_id": 7}, using=queue.alias)
        raise ZeroDivisionError
    assert (jobs.count(), heard) == (0, [])
    assert not listener.hear(0.05)


def test_a_job_for_the_commit_is_stored_at_once_outside_a_transaction(queue, jobs):
    jobqueue.enqueue_on_commit(resize_image, Resize(image_id=7), using=queue.alias)
    assert jobs.count() == 1


@pytest.mark.parametrize(
    ("target", "payload", "options", "error"),
    [
        ("send_welcom", {"user_id": 7}, {}, UnknownJobType),
        ("send_welcome", {"user_id": "seven"}, {}, ValidationError),
        (anything, {"x": float("nan")}, {}, PayloadRefused),
        (send_welcome, {"user_id": 7}, {"priority": 11}, InvalidOption),
    ],
)
def test_a_bad_job_for_the_commit_is_refused_at_once(queue, jobs, target, payload, options, error):
    with queue.atomic(), pytest.raises(error):
        jobqueue.enqueue_on_commit(target, payload, using=queue.alias, **options)
    assert jobs.count() == 0


# Where the application's data lives in another database


@pytest.fixture
def elsewhere(queue):
    """The alias of the database that is not the queue's."""
    return "postgres" if queue.alias == "default" else "default"


@pytest.mark.postgres
def test_a_job_for_the_commit_of_another_database_waits_for_it(queue, jobs, elsewhere, recwarn):
    with transaction.atomic(using=elsewhere):
        jobqueue.enqueue_on_commit(send_welcome, {"user_id": 7}, using=elsewhere)
        assert jobs.count() == 0
    assert jobs.count() == 1
    assert list(recwarn) == []


@pytest.mark.postgres
def test_a_job_for_the_commit_of_another_database_is_dropped_by_its_rollback(queue, jobs, elsewhere):
    with pytest.raises(ZeroDivisionError), transaction.atomic(using=elsewhere):
        jobqueue.enqueue_on_commit(send_welcome, {"user_id": 7}, using=elsewhere)
        raise ZeroDivisionError
    assert jobs.count() == 0


@pytest.mark.postgres
def test_without_using_the_commit_is_that_of_the_default_database(databases, settings):
    settings.JOBQUEUE = {"DATABASE": "postgres"}
    with transaction.atomic():
        jobqueue.enqueue_on_commit(send_welcome, {"user_id": 7})
        assert Job.objects.using("postgres").count() == 0
    assert Job.objects.using("postgres").count() == 1


@pytest.mark.postgres
@all_ways
def test_a_job_inside_another_databases_transaction_is_stored_with_a_warning_at_its_place(
    queue, jobs, elsewhere, enqueue
):
    with pytest.warns(RuntimeWarning, match="enqueue_on_commit") as caught, transaction.atomic(using=elsewhere):
        enqueue()
    assert jobs.count() >= 1
    assert f'"{queue.alias}"' in str(caught[0].message)
    assert f'"{elsewhere}"' in str(caught[0].message)


@pytest.mark.postgres
@pytest.mark.parametrize("way", [way for way in ALL if "async" not in way])  # a coroutine's caller is not on the stack
def test_the_warning_names_the_line_that_enqueues(queue, elsewhere, way):
    with pytest.warns(RuntimeWarning) as caught, transaction.atomic(using=elsewhere):
        ALL[way]()
    assert (caught[0].filename, caught[0].lineno) == (__file__, ALL[way].__code__.co_firstlineno)


@pytest.mark.postgres
def test_the_warning_comes_once_for_each_place(queue, elsewhere):
    with warnings.catch_warnings(record=True) as caught, transaction.atomic(using=elsewhere):
        warnings.simplefilter("default")
        for number in range(3):
            resize_image.enqueue(image_id=number)
        resize_image.enqueue(image_id=7)
    assert len(caught) == 2


@pytest.mark.postgres
def test_a_warning_made_an_error_stores_nothing(queue, jobs, elsewhere):
    with pytest.raises(RuntimeWarning), transaction.atomic(using=elsewhere):
        send_welcome.enqueue(7)
    assert jobs.count() == 0


@pytest.mark.postgres
def test_a_transaction_of_the_queues_own_database_needs_no_warning(queue, jobs, elsewhere):
    with transaction.atomic(using=elsewhere), queue.atomic():
        send_welcome.enqueue(7)
    assert jobs.count() == 1
