"""Tests of the relay: each job arrives once, unchanged and in order, or stays with the reason."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import connections, transaction
from django.http import QueryDict

import jobqueue
from jobqueue import QueueFull, backends
from jobqueue.admin.dashboard.snapshot import Asked, look
from jobqueue.admin.dashboard.warnings import warnings
from jobqueue.api import capacity
from jobqueue.errors import RelayInCircle
from jobqueue.models import Attempt, Job, Relay
from jobqueue.records import Ending
from jobqueue.relay.intake import Intake
from jobqueue.relay.outbox import Outbox
from jobqueue.relay.runner import AT_ONCE
from tests.app.jobs import anything, resize_image, send_welcome
from tests.relay.conftest import Ways

pytestmark = pytest.mark.postgres

ITS_OWN = {"status", "lease_owner", "updated_at"}


def row(alias, receipt):
    found = Job.objects.using(alias).filter(pk=receipt.id).values().first()
    return found and {name: value for name, value in found.items() if name not in ITS_OWN}


def test_jobs_arrive_as_they_were_and_are_gone_here(ways):
    plain, now = resize_image.enqueue(image_id=1), backends.current().now()
    full = send_welcome.using(
        queue="mail", priority=2, delay=3600, expires_at=now + timedelta(days=2), tenant="acme", idempotency_key="w-7"
    ).enqueue(7)
    Attempt.objects.using(ways.here).create(
        job_id=full.id, fence=4, attempt=1, owner="w", ending=Ending.FAILED.value, ended_at=now
    )
    before = [row(ways.here, one) for one in (plain, full)]
    assert ways.relay() == 0
    assert [row(ways.there, one) for one in (plain, full)] == before
    assert set(Job.objects.using(ways.there).values_list("status", "lease_owner")) == {("queued", None)}
    assert ways.waiting() == []
    assert [one.fence for one in jobqueue.get(full.id).history] == [4]
    assert not Attempt.objects.using(ways.here).exists()


def test_a_full_queue_refuses_jobs_here_and_takes_in_what_arrives_there(ways, settings):
    settings.JOBQUEUE = {**settings.JOBQUEUE, "QUEUES": {"*": {"capacity": 2, "when_full": "raise"}}}
    for _ in range(2):
        capacity.forget()
        send_welcome.enqueue(1)
        send_welcome.enqueue(2)
        with pytest.raises(QueueFull):
            send_welcome.enqueue(3)
        assert ways.relay() == 0
    assert len(ways.arrived()) == 4


def test_what_was_rolled_back_is_not_relayed_and_batches_keep_the_order(ways):
    with pytest.raises(ZeroDivisionError), transaction.atomic(using=ways.here):
        resize_image.enqueue(image_id=0)
        raise ZeroDivisionError
    ids = [one.id for one in resize_image.enqueue_many([{"image_id": n} for n in range(2 * AT_ONCE + 7)])]
    seen, wake = [], ways.shared.wake
    ways.shared.wake = lambda *age: (wake(*age), seen.append(ways.arrived()))
    try:
        assert ways.relay() == 0
    finally:
        del ways.shared.wake
    assert [len(one) for one in seen] == [AT_ONCE, 2 * AT_ONCE, len(ids)]
    assert all(one == ids[: len(one)] for one in seen)


def test_a_key_that_is_taken_over_there_leaves_a_record_here(ways, settings):
    settings.JOBQUEUE = {"DATABASE": ways.there}
    theirs = send_welcome.using(idempotency_key="same").enqueue(1)
    other = anything.using(unique_key="other").enqueue({})
    settings.JOBQUEUE = {"DATABASE": ways.here, "RELAY_TO": ways.there}
    same = send_welcome.using(idempotency_key="same").enqueue(2)
    foreign = send_welcome.using(unique_key="other").enqueue(3)
    free = send_welcome.enqueue(4)
    assert ways.relay() == 0
    assert ways.arrived() == sorted([theirs.id, other.id, free.id])
    assert ways.waiting() == [(same.id, "failed"), (foreign.id, "dead_letter")]
    kept, lost = jobqueue.get(same.id), jobqueue.get(foreign.id)
    assert kept.end_reason == "duplicate"
    assert theirs.id in kept.error
    assert "other payload" in kept.error
    assert lost.end_reason == "not relayed"
    assert "another type's work would be lost" in lost.error


def test_a_job_that_is_refused_holds_nobody_up_and_can_be_put_back(ways):
    with connections[ways.there].cursor() as cursor:
        cursor.execute("CREATE UNIQUE INDEX only_one_tenant ON job_queue (tenant)")
    try:
        first, bad, last = (send_welcome.using(tenant=name).enqueue(1) for name in ("a", "a", "b"))
        assert ways.relay() == 0
        assert ways.arrived() == [first.id, last.id]
        assert ways.waiting() == [(bad.id, "dead_letter")]
        assert "The shared database refused it" in jobqueue.get(bad.id).error
    finally:
        with connections[ways.there].cursor() as cursor:
            cursor.execute("DROP INDEX only_one_tenant")
    backends.current().operator.retry([bad.id])
    assert ways.relay() == 0
    assert ways.arrived() == [first.id, bad.id, last.id]
    assert ways.waiting() == []


def test_who_is_cancelled_on_the_way_is_cancelled_over_there(ways):
    outbox = Outbox(backends.current().session)
    early, late, other = (send_welcome.enqueue(n) for n in range(3))
    backends.current().operator.cancel([early.id])
    outbox.take(AT_ONCE)
    backends.current().operator.cancel([late.id])
    assert ways.relay() == 0
    assert ways.arrived() == [late.id, other.id]
    assert jobqueue.get(late.id).end_reason == "cancelled"
    assert [one.status for one in map(jobqueue.get, (early.id, other.id))] == ["failed", "queued"]


def test_a_wish_that_comes_at_the_last_moment_keeps_the_job_here_until_it_is_passed_on(ways):
    outbox, intake = Outbox(backends.current().session), Intake(ways.shared.session)
    receipt = send_welcome.enqueue(1)
    batch, refused = intake.receive(outbox.source(), lambda: outbox.take(AT_ONCE))
    backends.current().operator.cancel([receipt.id])
    outbox.close(batch, refused, asked=[])
    assert ways.waiting() == [(receipt.id, "in_progress")]
    assert ways.relay() == 0
    assert ways.waiting() == []
    assert jobqueue.get(receipt.id).end_reason == "cancelled"


def test_relays_of_one_outbox_take_turns(ways):
    outbox, intake = Outbox(backends.current().session), Intake(ways.shared.session)
    ids = [send_welcome.enqueue(n).id for n in range(3)]
    source, is_in, may_go, seen = outbox.source(), threading.Event(), threading.Event(), []

    def take():
        is_in.set()
        assert may_go.wait(30)
        return outbox.take(2)

    def slow():
        seen.append(intake.receive(source, take))
        connections.close_all()

    thread = threading.Thread(target=slow)
    thread.start()
    assert is_in.wait(30)
    if ways.there == "postgres":  # where rows are locked; on SQLite a second writer waits
        assert intake.receive(source, lambda: pytest.fail("two relays at once")) is None
    may_go.set()
    thread.join()
    ((batch, _refused),) = seen
    assert [one["id"] for one in batch.jobs] == ids[:2]
    again, _ = intake.receive(source, lambda: outbox.take(2))
    assert again == batch
    assert ways.arrived() == ids[:2]


def test_one_batch_is_on_its_way_also_where_a_relay_that_lost_its_turn_takes(ways):
    outbox, seen = Outbox(backends.current().session), []
    outbox.source()
    send_welcome.enqueue_many([{"user_id": n} for n in range(4)])

    def take():
        seen.append(outbox.take(2))
        connections.close_all()

    thread = threading.Thread(target=take)
    with transaction.atomic(using=ways.here):
        first = outbox.take(2)
        thread.start()
        thread.join(0.5)  # it would be through, if it did not wait
    thread.join()
    assert [one.holder for one in seen] == [first.holder]


def test_sources_are_told_apart_and_kept(ways):
    source = Outbox(backends.current().session).source()
    assert Outbox(backends.current().session).source() == source
    send_welcome.enqueue(1)
    ways.relay()
    assert list(Relay.objects.using(ways.there).values_list("source", "is_own")) == [(source, False)]
    assert list(Relay.objects.using(ways.here).values_list("source", "is_own")) == [(source, True)]


def test_why_says_that_it_waits_for_the_relay(ways, capsys):
    receipt = send_welcome.enqueue(1)
    call_command("jobqueue", "why", receipt.id)
    assert f"It waits to be relayed to {ways.there}" in capsys.readouterr().out
    ways.relay()
    with pytest.raises(SystemExit):  # over there it waits for a worker
        call_command("jobqueue", "why", receipt.id)
    assert "No worker is up" in capsys.readouterr().out


def test_status_tells_what_waits_and_why(ways, capsys):
    send_welcome.enqueue(1)
    Outbox(backends.current().session).source()
    Outbox(backends.current().session).lost("no route")
    with pytest.raises(SystemExit) as ended:
        call_command("jobqueue", "status")
    text = capsys.readouterr().out
    assert ended.value.code == 1
    assert "The shared database has been out of reach for" in text
    assert "1 job waits to be relayed" in text
    assert "no route" in text
    (found,) = warnings(look(Asked.of(QueryDict())).health, lambda *_, **__: "")
    assert "1 job waits to be relayed" in found.text
    ways.relay()
    call_command("jobqueue", "status")
    assert "no route" not in capsys.readouterr().out


def test_jobs_that_nobody_relays_are_told_of_by_status_and_dashboard(ways, capsys):
    receipt = send_welcome.enqueue(1)
    call_command("jobqueue", "status")
    assert warnings(look(Asked.of(QueryDict())).health, lambda *_, **__: "") == []
    since = backends.current().now() - timedelta(minutes=5)
    Job.objects.using(ways.here).filter(pk=receipt.id).update(created_at=since)
    with pytest.raises(SystemExit) as ended:
        call_command("jobqueue", "status")
    assert ended.value.code == 1
    assert "No worker relays jobs: 1 job waits" in capsys.readouterr().out
    (found,) = warnings(look(Asked.of(QueryDict())).health, lambda *_, **__: "")
    assert found.text == "No worker relays jobs: 1 job waits, the oldest for 5\N{NO-BREAK SPACE}minutes."


def test_a_clock_that_runs_ahead_delays_nothing_that_was_due_at_once(ways):
    at_once, later = send_welcome.enqueue(1), send_welcome.using(delay=3600).enqueue(2)
    ahead = backends.current().now() + timedelta(days=1)
    Job.objects.using(ways.here).filter(pk=at_once.id).update(scheduled_at=ahead, created_at=ahead)
    ways.relay()
    now = ways.shared.now()
    assert jobqueue.get(at_once.id).scheduled_at <= now
    assert jobqueue.get(later.id).scheduled_at > now


@pytest.mark.parametrize("alias", ["default", "postgres"])
def test_a_database_is_not_relayed_to_itself_by_another_name(databases, settings, alias):
    connections.settings["again"] = dict(connections[alias].settings_dict)
    settings.JOBQUEUE = {"DATABASE": alias, "RELAY_TO": "again"}
    ways = Ways(alias, "again")
    receipt = send_welcome.enqueue(1)
    relaying = ways.relaying()
    try:
        with pytest.raises(RelayInCircle, match="'again'"):
            relaying.turn()
        assert ways.waiting() == [(receipt.id, "queued")]
    finally:
        relaying.signals.close()
        connections["again"].close()
        del connections["again"], connections.settings["again"]
