"""Who may see and do what: every view asks for its own permission."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from tests.admin.conftest import ALL, row

VERBS = ("retry", "cancel", "purge")
FITTING = {"retry": "dead_letter", "cancel": "queued", "purge": "completed"}
AGREED = {"confirmed": "yes", "expected": "1"}


def test_there_is_a_permission_for_seeing_and_for_each_verb_and_no_other(databases):
    found = Permission.objects.filter(content_type__app_label="jobqueue", content_type__model__in=["job", "deadletter"])
    assert set(found.values_list("codename", flat=True)) == set(ALL)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("permission", [*VERBS, None])
def test_a_verb_is_done_with_its_permission_alone(queue, job_in, sign_in, verb, permission):
    visitor = sign_in("view_job", *([f"{permission}_job"] if permission else []))
    by_button, by_action = job_in(FITTING[verb]), job_in(FITTING[verb])
    answers = [visitor.press(verb, by_button, **AGREED), visitor.act(verb, by_action, **AGREED)]
    changed = [getattr(row(queue, job_id), "status", None) != FITTING[verb] for job_id in (by_button, by_action)]
    allowed = verb == permission
    assert [answer.status_code for answer in answers] == ([200, 200] if allowed else [403, 403])
    assert changed == [allowed, allowed]


@pytest.mark.parametrize("verb", VERBS)
def test_whoever_may_not_see_jobs_may_not_touch_them(queue, job_in, sign_in, verb):
    visitor = sign_in(*(f"{one}_job" for one in VERBS))
    job_id = job_in(FITTING[verb])
    answers = [visitor.press(verb, job_id, **AGREED), visitor.act(verb, job_id, **AGREED), visitor.list()]
    assert [answer.status_code for answer in answers] == [403, 403, 403]
    assert row(queue, job_id).status == FITTING[verb]


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
        ("queued", ["cancel", "purge"]),
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
    assert row(queue, job_id).status == "dead_letter"
    token = str(strict.get(reverse("admin:jobqueue_job_change", args=[job_id])).context["csrf_token"])
    assert strict.post(address, {"csrfmiddlewaretoken": token}).status_code == 302
    assert row(queue, job_id).status == "queued"
