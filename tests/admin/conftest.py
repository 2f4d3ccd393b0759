"""Fixtures of the admin's tests: users, jobs and clients."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from itertools import count

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.contrib.sessions.models import Session
from django.db import transaction
from django.test import Client
from django.urls import reverse

from jobqueue.errors import StopReason
from jobqueue.handlers.registry import registry
from jobqueue.models import Job
from jobqueue.orders import confirmation
from jobqueue.orders.instruction import TYPE
from jobqueue.policy.settling import completed
from jobqueue.records import Dead
from jobqueue.testing.contract.harness import failing, put, settle, take_one

#: By verb, the permission it takes.
PERMISSIONS = {
    "retry": "retry_job",
    "run_now": "run_job",
    "reschedule": "reschedule_job",
    "prioritise": "prioritise_job",
    "move": "move_job",
    "cancel": "cancel_job",
    "purge": "purge_job",
}
ALL = ("view_job", "edit_job", "enqueue_job", *PERMISSIONS.values())
STATUSES = ("queued", "in_progress", "completed", "failed", "dead_letter")


def list_address(model):
    """Where the list of jobs is; the first page of dead letters groups them."""
    return reverse(f"admin:jobqueue_{model}_{'all' if model == 'deadletter' else 'changelist'}")


@dataclass(frozen=True)
class Visitor:
    """Someone signed in."""

    client: Client
    user: User

    def list(self, model="job", **query):
        return self.client.get(list_address(model), query)

    def page(self, job_id, model="job"):
        return self.client.get(reverse(f"admin:jobqueue_{model}_change", args=[job_id]))

    def press(self, verb, job_id, model="job", *, agreed=False, **data):
        """Press a button on a job's page, and agree if that asks first."""
        answer = self.client.post(reverse(f"admin:jobqueue_{model}_{verb}", args=[job_id]), data, follow=True)
        return self.agree(answer, **data) if agreed and is_question(answer) else answer

    def act(self, action, *ids, model="job", query="", **data):
        """Choose an action of the list, which leads to the page that asks."""
        given = {"action": action, "_selected_action": ids, "index": 0, **data}
        return self.client.post(list_address(model) + query, given, follow=True)

    def everything(self, action, model="job", **query):
        """Ask about all that match a query, as a link does."""
        return self.client.get(reverse(f"admin:jobqueue_{model}_everything_{action}"), query, follow=True)

    def agree(self, asked, **data):
        """Answer the page that asks."""
        form = asked.context["form"]
        typed = {"number": str(asked.context["affected"].total)} if "number" in form.fields else {}
        return self.client.post(asked.context["address"], {**typed, **data}, follow=True)

    def do(self, action, *ids, model="job", query="", across=False, **data):
        """Choose an action of the list, and agree to it."""
        asked = self.act(action, *ids, model=model, query=query, select_across="1" if across else "0")
        return self.agree(asked, **data)


def is_question(answer):
    """Return whether a page asks."""
    return bool(answer.context) and "affected" in answer.context


class Attendant:
    """Whoever attends an attempt: it hears reports, may lose them, and may want the handler to stop."""

    def __init__(self, queue, job_id, *, hears=True, then=lambda: None, stop_after=None):
        self.queue, self.job_id, self.hears, self.then, self.stop_after = queue, job_id, hears, then, stop_after
        self.reports = []

    def report(self, text):
        self.reports.append(json.loads(text))
        if self.hears:
            Job.objects.using(self.queue.alias).filter(pk=self.job_id).update(progress=json.loads(text))
        self.then()

    def stop_reason(self):
        return StopReason.SHUTDOWN if len(self.reports) == self.stop_after else None

    def follow(self, *_args):
        raise AssertionError("no follow-up job is expected")


def attempt(queue, **given):
    """Claim the job of an order and run its handler; return the claim, what it returned and who attended."""
    claim = take_one(queue, types=frozenset({TYPE}))
    attendant = Attendant(queue, claim.id, **given)
    return claim, registry.get(TYPE).call(claim, attendant), attendant


def carry_out(queue):
    """Have a worker carry out the order that waits."""
    claim, _result, _attendant = attempt(queue)
    assert settle(queue, completed(claim, "null")) == ()


@pytest.fixture
def at_once(monkeypatch):
    """Let orders that delete jobs begin at once."""
    monkeypatch.setattr(confirmation, "DELAY", timedelta(0))


@pytest.fixture
def sign_in(databases):
    """A function that makes a visitor with the permissions given."""
    numbers = count()

    def make(*codenames, **about):
        user = User.objects.create_user(f"visitor{next(numbers)}", **{"is_staff": True, **about})
        found = Permission.objects.filter(content_type__app_label="jobqueue", codename__in=codenames)
        assert len(found) == len(codenames)
        user.user_permissions.set(found)
        client = Client()
        client.force_login(user)
        return Visitor(client, user)

    yield make
    with transaction.atomic():
        LogEntry.objects.all().delete()
        Session.objects.all().delete()
        User.objects.all().delete()


@pytest.fixture
def operator(queue, sign_in):
    """Someone who may do everything to jobs."""
    return sign_in(*ALL)


@pytest.fixture
def job_in(queue):
    """A function that makes a job of any status."""

    def make(status, **values):
        job_id = put(queue, **values)
        if status == "failed":
            queue.operator.cancel([job_id])
        elif status != "queued":
            claim = take_one(queue)
            if status == "completed":
                assert settle(queue, completed(claim, "null")) == ()
            elif status == "dead_letter":
                assert settle(queue, failing(claim, Dead("attempts used up"))) == ()
        assert row(queue, job_id).status == status
        return job_id

    return make


def row(queue, job_id):
    return Job.objects.using(queue.alias).filter(pk=job_id).first()


def shown(response):
    """The ids on a list's page."""
    return [job.pk for job in response.context["cl"].result_list]


def told(response):
    """The messages on a page, without the links to orders behind them."""
    return [str(message).partition(" <a ")[0] for message in response.context["messages"]]
