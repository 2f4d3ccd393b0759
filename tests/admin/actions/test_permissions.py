"""Tests of permissions: every view checks its own."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from jobqueue.admin.actions import confirm
from jobqueue.models import Job
from jobqueue.records import Filter
from tests.admin.conftest import ALL, PERMISSIONS, row, told

VERBS = tuple(PERMISSIONS)
FITTING = {"retry": "dead_letter", "purge": "completed"}
TOLD = {"reschedule": {"amount": "2", "unit": "hours"}, "prioritise": {"priority": "1"}, "move": {"queue": "mail"}}
AGREED = {"confirmed": "yes", "expected": "1"}
LATER = {"delay": timedelta(days=1)}


def fitting(job_in, verb):
    """A job that the verb changes."""
    status = FITTING.get(verb, "queued")
    return job_in(status, **(LATER if status == "queued" else {}))


def state(queue):
    return list(Job.objects.using(queue.alias).order_by("pk").values())


def everything(model, verb, client, **data):
    """Post to the one entry for everything that a filter lets through."""
    sealed = confirm.sealed(Filter(), "/admin/")
    address = reverse(f"admin:jobqueue_{model}_everything_{verb}")
    return client.post(address, {"sealed": sealed, **AGREED, "expected": "10", **data}, follow=True)


def test_there_is_a_permission_for_seeing_and_for_each_verb_and_no_other(databases):
    found = Permission.objects.filter(content_type__app_label="jobqueue", content_type__model__in=["job", "deadletter"])
    assert set(found.values_list("codename", flat=True)) == set(ALL)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("permission", [*ALL[1:], None])
def test_a_verb_is_done_with_its_permission_alone(queue, job_in, sign_in, verb, permission):
    visitor = sign_in("view_job", *([permission] if permission else []))
    data = {**AGREED, **TOLD.get(verb, {})}
    posts = (
        lambda job_id: visitor.press(verb, job_id, **data),
        lambda job_id: visitor.act(verb, job_id, **data),
        lambda job_id: visitor.act(verb, job_id, select_across="1", **data),
        lambda job_id: everything("job", verb, visitor.client, **TOLD.get(verb, {})),
    )
    for post in posts:
        job_id = fitting(job_in, verb)
        before = state(queue)
        answer = post(job_id)
        allowed = permission == PERMISSIONS[verb]
        assert answer.status_code == (200 if allowed else 403)
        assert (state(queue) != before) == allowed
        queue.operator.purge([job_id])


@pytest.mark.parametrize("verb", VERBS)
def test_the_page_that_asks_takes_the_permission_too(queue, job_in, sign_in, verb):
    visitor = sign_in("view_job")
    job_id = fitting(job_in, verb)
    before = state(queue)
    answers = [visitor.press(verb, job_id), visitor.act(verb, job_id), visitor.act(verb, job_id, select_across="1")]
    assert [answer.status_code for answer in answers] == [403, 403, 403]
    assert state(queue) == before


@pytest.mark.parametrize("verb", VERBS)
def test_whoever_may_not_see_jobs_may_not_touch_them(queue, job_in, sign_in, verb):
    visitor = sign_in(*ALL[1:])
    job_id = fitting(job_in, verb)
    before = state(queue)
    data = {**AGREED, **TOLD.get(verb, {})}
    answers = [visitor.press(verb, job_id, **data), visitor.act(verb, job_id, **data), visitor.list()]
    answers.append(everything("job", verb, visitor.client, **TOLD.get(verb, {})))
    assert [answer.status_code for answer in answers] == [403] * 4
    assert state(queue) == before


def test_who_may_only_look_is_offered_nothing(queue, job_in, sign_in):
    visitor = sign_in("view_job")
    job_id = job_in("dead_letter")
    for model in ("job", "deadletter"):
        assert visitor.list(model).context["action_form"] is None
        page = visitor.page(job_id, model)
        assert page.status_code == 200
        assert page.context["verbs"] == []
        assert b"formaction" not in page.content


@pytest.mark.parametrize(
    ("status", "offered"),
    [
        ("queued", ["run_now", "reschedule", "prioritise", "move", "cancel", "purge"]),
        ("in_progress", ["cancel"]),
        ("completed", ["purge"]),
        ("failed", ["retry", "purge"]),
        ("dead_letter", ["retry", "purge"]),
    ],
)
def test_a_page_offers_what_fits_the_status(operator, job_in, status, offered):
    page = operator.page(job_in(status))
    assert [verb.name for verb, _address in page.context["verbs"]] == offered
    assert page.content.decode().count("formaction=") == len(offered)


@pytest.mark.parametrize("about", [{"is_staff": False}, {"is_active": False}])
def test_only_active_staff_gets_in(queue, job_in, sign_in, about):
    visitor = sign_in(*ALL, **about)
    job_id = job_in("dead_letter")
    address = reverse("admin:jobqueue_job_retry", args=[job_id])
    assert reverse("admin:login") in visitor.client.post(address).headers["Location"]
    assert row(queue, job_id).status == "dead_letter"


@pytest.mark.parametrize("model", ["job", "deadletter"])
def test_nobody_adds_edits_or_deletes_by_hand(queue, job_in, sign_in, model):
    visitor = sign_in(is_superuser=True)
    job_id = job_in("dead_letter")
    change = reverse(f"admin:jobqueue_{model}_change", args=[job_id])
    answers = [
        visitor.client.get(reverse(f"admin:jobqueue_{model}_add")),
        visitor.client.post(reverse(f"admin:jobqueue_{model}_add"), {"type": "mine"}),
        visitor.client.post(change, {"status": "queued"}),
        visitor.client.post(reverse(f"admin:jobqueue_{model}_delete", args=[job_id]), {"post": "yes"}),
    ]
    assert [answer.status_code for answer in answers] == [403, 403, 403, 403]
    visitor.act("delete_selected", job_id, model=model, post="yes")
    assert row(queue, job_id).status == "dead_letter"
    assert b'name="_save"' not in visitor.page(job_id, model).content


def test_a_verb_without_the_pages_token_is_refused(queue, job_in, operator):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(operator.user)
    job_id = job_in("dead_letter")
    address = reverse("admin:jobqueue_job_retry", args=[job_id])
    assert strict.post(address).status_code == 403
    sealed = confirm.sealed(Filter(), "/admin/")
    for verb in VERBS:
        data = {**AGREED, **TOLD.get(verb, {}), "action": verb, "_selected_action": job_id, "sealed": sealed}
        for page in ("changelist", f"everything_{verb}"):
            assert strict.post(reverse(f"admin:jobqueue_job_{page}"), data).status_code == 403
        assert strict.post(reverse(f"admin:jobqueue_job_{verb}", args=[job_id]), data).status_code == 403
    assert row(queue, job_id).status == "dead_letter"
    token = str(strict.get(reverse("admin:jobqueue_job_change", args=[job_id])).context["csrf_token"])
    assert strict.post(address, {"csrfmiddlewaretoken": token}).status_code == 302
    assert row(queue, job_id).status == "queued"


def test_a_filter_that_no_page_of_ours_has_sealed_is_refused(queue, job_in, operator):
    job_in("dead_letter")
    before = state(queue)
    address = reverse("admin:jobqueue_job_everything_retry")
    genuine = confirm.sealed(Filter(), "/admin/")
    for sealed in ("", "{}", "x", genuine[:-1], genuine[1:], f"{genuine}:x", "\0"):
        assert operator.client.post(address, {"sealed": sealed, **AGREED}).status_code == 400
    assert state(queue) == before


def test_a_dead_letters_entry_takes_no_verb_that_is_not_offered_there(queue, job_in, operator):
    job_id = job_in("dead_letter")
    for verb in ("cancel", "run_now", "reschedule", "prioritise", "move"):
        for path in (f"_everything/{verb}/", f"{job_id}/{verb}/"):
            answer = operator.client.post(f"/admin/jobqueue/deadletter/{path}", {**AGREED, **TOLD.get(verb, {})})
            assert answer.status_code in (302, 404, 405)
        operator.act(verb, job_id, model="deadletter", **AGREED, **TOLD.get(verb, {}))
    assert row(queue, job_id).status == "dead_letter"
    assert told(operator.press("retry", job_id, model="deadletter")) == ["1 job is queued again."]
