"""Every URL of the admin by every permission, with GET and POST: what is allowed, and what changes."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.urls import URLPattern, reverse

from jobqueue import backends
from jobqueue.ids import new_id
from jobqueue.models import Job, Order, OrderPart
from jobqueue.orders import confirmation, selection
from jobqueue.orders.instruction import Instruction
from jobqueue.records import Filter, Limit, LimitKind, Scope
from jobqueue.records.schedule import Origin
from jobqueue.schedules import operation
from jobqueue.testing.clock import NOON
from jobqueue.testing.contract.harness import put
from jobqueue.testing.contract.ports.alerting import alert, change
from jobqueue.testing.contract.ports.registering import worker
from tests.admin.conftest import PERMISSIONS, is_question
from tests.conftest import TABLES

#: Who may do what does not depend on the database.
ONCE = pytest.mark.parametrize("alias", ["default"], indirect=True)

OWNER = "host:1:nonce"
FINGERPRINT = "f" * 64
#: By the end of a URL's name, the permission that it takes besides that to see jobs. Others take none.
TAKES = {
    **{f"_{verb}": permission for verb, permission in PERMISSIONS.items()},
    "_edit": "edit_job",
    "_enqueue": "enqueue_job",
    "_again": "enqueue_job",
    "queue_pause": "pause_queue",
    "queue_resume": "pause_queue",
    "queue_limit": "set_limit",
    "queue_unlimit": "set_limit",
    "alert_silence": "silence_alert",
    "alert_unsilence": "silence_alert",
    "schedule_make": "edit_schedule",
    "schedule_edit": "edit_schedule",
    "schedule_reset": "edit_schedule",
    "schedule_pause": "pause_schedule",
    "schedule_resume": "pause_schedule",
    "schedule_run": "run_schedule",
    "schedule_remove": "remove_schedule",
    "worker_quiet": "control_worker",
    "worker_resume": "control_worker",
    "worker_stop": "control_worker",
    "_question": "retry_job",
    "_retry_one": "retry_job",
    "order_stop": "purge_job",
}
#: Django's own pages to add, delete and look something up, which nobody gets.
NOBODYS = ("_add", "_delete", "_autocomplete")
POSTED = {
    "confirmed": "yes",
    "why": "because",
    "queue": "mail",
    "priority": "1",
    "amount": "2",
    "unit": "hours",
    "payload": '{"user_id": 8}',
    "payload_0": "8",
    "payload_1": "en",
    "name": "made",
    "rule": "every 2h",
    "zone": "UTC",
    "missed": "once",
    "missed_cap": "100",
    "overlap": "allow",
    "while_paused": "drop",
    "jitter": "0",
    "kind": "concurrency",
    "number": "3",
}


def patterns():
    """The URLs of the package's pages: names, and whether each takes a key."""
    for model, of in admin.site._registry.items():
        if model._meta.app_label == "jobqueue":
            for one in of.urls:
                if isinstance(one, URLPattern) and one.name:
                    yield one.name, "<" in str(one.pattern)


NAMES = sorted(set(patterns()))
EVERY = ["view_job", "edit_job", "enqueue_job", *PERMISSIONS.values(), "pause_queue", "set_limit", "control_worker"]
EVERY += ["silence_alert", "edit_schedule", "pause_schedule", "run_schedule", "remove_schedule"]


def needed(name):
    """The permissions that a URL takes; ``None`` is more than anybody has."""
    if name.endswith(NOBODYS):
        return None
    found = next((one for end, one in sorted(TAKES.items(), key=lambda pair: -len(pair[0])) if name.endswith(end)), "")
    return {"view_job", found} - {""}


@pytest.fixture
def place(queue):
    """A function that makes the address of a URL, of a job on which it does something."""

    def make(visitor, name, has_id):
        verb = name.rpartition("_")[2]
        is_dead = "deadletter" in name or verb in ("retry", "edit", "question") or "by_error" in name
        later = timedelta(hours=1 if verb == "now" else 0)
        job_id = put(queue, "send_welcome", payload='{"user_id": 7}', delay=later)
        if is_dead:
            rows = Job.objects.using(queue.alias).filter(pk=job_id)
            rows.update(status="dead_letter", error="x", error_fingerprint=FINGERPRINT)
        key = key_of(visitor, name, job_id)
        query = {"pause": "?scope=queue&name=mail", "resume": "?scope=queue&name=mail", "enqueue": "?type=send_welcome"}
        query["make"] = query["enqueue"]
        query["limit"] = query["unlimit"] = f"{query['pause']}&kind=concurrency"
        by_error = f"?fingerprint={FINGERPRINT}" if "by_error" in name else ""
        by_name = "?queue=mail" if "queue_one" in name else ""
        return reverse(f"admin:{name}", args=[key] if has_id else []) + (
            "" if "worker" in name or has_id else query.get(verb, "") or by_error or by_name
        )

    queue.workers.enlist(worker(OWNER))
    return make


def key_of(visitor, name, job_id):
    """The key that the address of a page has."""
    if "worker" in name:
        return OWNER
    if "_alert_" in name:
        return an_alert().id
    if "_schedule_" in name:
        return a_schedule(paused=name.endswith("_resume")).id
    if name.endswith("_question"):
        return selection.ask(instruction(visitor, "retry"), Filter(ids=frozenset({job_id})), "/admin/").pk
    if "_order_" in name:
        purge = instruction(visitor, "purge")
        order = selection.collect(selection.ask(purge, Filter(ids=frozenset({job_id})), "/admin/"), 1)
        confirmation.confirm(order, purge, "Purge 1 job")
        return order.pk
    return job_id


def an_alert():
    """An alert that fires."""
    made = alert(new_id(), new_id())
    assert backends.current().alerts.store([change(None, made)])
    return made


def a_schedule(paused):
    """A schedule of the code, which it left, and which an operator changed."""
    fields = operation.read_fields("send_welcome", "every 1h", "UTC", {"user_id": 7}, {})
    made = operation.add(f"schedule-{new_id()}", fields)
    state = {"origin": Origin.CODE, "declared": {"rule": "every 3h"}, "left_code_at": NOON}
    assert backends.current().schedules.change(made, **state, paused_at=NOON if paused else None)
    return made


def instruction(visitor, verb):
    return Instruction(verb=verb, user_id=str(visitor.user.pk), user_name="who", of_staff=True)


def state(queue):
    """All that can be changed. Questions change nothing until they are answered."""
    answered = {Order: Order.objects.using(queue.alias).exclude(state="asked"), OrderPart: OrderPart.objects.none()}
    kept = [answered.get(table, table.objects.using(queue.alias)) for table in TABLES]
    rows = [list(one.order_by("pk").values()) for one in kept]
    return json.dumps([*rows, LogEntry.objects.count()], default=str)


def seen(queue, address):
    """The version token of the job in an address, which the form of an edited retry has."""
    found = [job for job in Job.objects.using(queue.alias).all() if job.pk in address]
    return found[0].updated_at.isoformat() if found else ""


def test_each_permission_is_in_the_matrix(databases):
    found = Permission.objects.filter(content_type__app_label="jobqueue").values_list("codename", flat=True)
    assert set(found) == set(EVERY)


@ONCE
@pytest.mark.sqlite
@pytest.mark.parametrize(("name", "has_id"), NAMES)
def test_a_url_is_for_those_alone_who_have_what_it_takes(queue, sign_in, place, name, has_id):
    """What it takes is enough, and without any part of it all the rest is not."""
    wanted = needed(name)
    short = [[one for one in EVERY if one != part] for part in wanted or ()]
    for codenames in ((), *short, sorted(wanted) if wanted else EVERY):
        visitor = sign_in(*codenames)
        address = place(visitor, name, has_id)
        allowed = wanted is not None and wanted <= {*codenames}
        before = state(queue)
        read = visitor.client.get(address)
        assert state(queue) == before, (codenames, "GET changes something")
        posted = {**POSTED, "seen": seen(queue, address)}
        written = visitor.client.post(address, posted)
        if allowed:
            assert read.status_code != 403, codenames
            assert written.status_code != 403 or name.endswith("_change"), codenames
            continue
        if name.endswith("deadletter_history"):
            continue  # leads to the page of the job, which asks for the permission
        assert {read.status_code, written.status_code} <= {403, 404, 405}, codenames
        assert {read.status_code, written.status_code} & {403, 404}, codenames
        assert state(queue) == before, (codenames, "POST changes something")


@ONCE
@pytest.mark.sqlite
def test_pages_that_ask_for_more_than_sight_do_something(queue, sign_in, place):
    """Otherwise the matrix would find any answer right."""
    for name, has_id in NAMES:
        wanted = needed(name)
        if wanted is None or len(wanted) == 1 or "everything" in name:
            continue
        visitor = sign_in(*wanted)
        address = place(visitor, name, has_id)
        if name.endswith("queue_resume"):
            queue.operator.pause(Scope.QUEUE, "mail")
        if name.endswith("queue_unlimit"):
            queue.limits.set(Limit(Scope.QUEUE, "mail", LimitKind.CONCURRENCY, 2))
        before = state(queue)
        answer = visitor.client.post(address, {**POSTED, "seen": seen(queue, address)}, follow=True)
        if is_question(answer):
            visitor.agree(answer, **POSTED)
        assert state(queue) != before, name
