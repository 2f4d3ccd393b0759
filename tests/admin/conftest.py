"""Fixtures of the admin's tests: users, jobs and clients."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.contrib.sessions.models import Session
from django.db import transaction
from django.test import Client
from django.urls import reverse

from jobqueue.models import Job
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
ALL = ("view_job", "edit_job", *PERMISSIONS.values())
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

    def press(self, verb, job_id, model="job", **data):
        address = reverse(f"admin:jobqueue_{model}_{verb}", args=[job_id])
        return self.client.post(address, data, follow=True)

    def act(self, action, *ids, model="job", query="", **data):
        address = list_address(model) + query
        given = {"action": action, "_selected_action": ids, **({} if "confirmed" in data else {"index": 0}), **data}
        return self.client.post(address, given, follow=True)

    def agree(self, asked, **data):
        """Answer the page that asks, with what it keeps and what else is told."""
        kept = {}
        for name, value in asked.context["kept"]:
            kept.setdefault(name, []).append(value)
        return self.client.post(asked.context["address"], kept | data, follow=True)

    def do(self, action, *ids, model="job", query="", across=False, **data):
        """Choose an action of the list, and agree to it."""
        asked = self.act(action, *ids, model=model, query=query, select_across="1" if across else "0")
        return self.agree(asked, **data)


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
    """The messages on a page."""
    return [str(message) for message in response.context["messages"]]
