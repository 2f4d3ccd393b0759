"""Tests of permissions: every view checks its own."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from jobqueue.models import Job, Order
from tests.admin.conftest import ALL, PERMISSIONS, carry_out, is_question, row, told

#: Who may do what does not depend on the database.
SQLITE_ALONE = True

VERBS = tuple(PERMISSIONS)
FITTING = {"retry": "dead_letter", "purge": "completed"}
TOLD = {"reschedule": {"amount": "2", "unit": "hours"}, "prioritise": {"priority": "1"}, "move": {"queue": "mail"}}
LATER = {"delay": timedelta(days=1)}


def fitting(job_in, verb):
    """A job that the verb changes."""
    status = FITTING.get(verb, "queued")
    return job_in(status, **(LATER if status == "queued" else {}))


def state(queue):
    return list(Job.objects.using(queue.alias).order_by("pk").values())


def test_there_is_a_permission_for_seeing_and_for_each_verb_and_no_other(databases):
    found = Permission.objects.filter(content_type__app_label="jobqueue", content_type__model__in=["job", "deadletter"])
    assert set(found.values_list("codename", flat=True)) == set(ALL)


def asks(visitor, verb):
    """The ways to ask for a verb; each returns the answer of the page to which it led."""
    return (
        lambda job_id: visitor.press(verb, job_id),
        lambda job_id: visitor.client.get(reverse(f"admin:jobqueue_job_{verb}", args=[job_id]), follow=True),
        lambda job_id: visitor.act(verb, job_id),
        lambda job_id: visitor.act(verb, job_id, select_across="1"),
        lambda _job_id: visitor.everything(verb),
    )


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("allowed", [True, False], ids=["with it", "with all others"])
def test_a_verb_is_done_with_its_permission_alone(queue, job_in, sign_in, at_once, verb, allowed):
    others = [one for one in ALL if one != PERMISSIONS[verb]]
    visitor = sign_in(*(("view_job", PERMISSIONS[verb]) if allowed else others))
    for ask in asks(visitor, verb):
        job_id = fitting(job_in, verb)
        before = state(queue)
        answer = ask(job_id)
        assert answer.status_code == (200 if allowed else 403)
        if is_question(answer):
            assert state(queue) == before
            assert visitor.agree(answer, **TOLD.get(verb, {})).status_code == 200
            if verb == "purge":
                carry_out(queue)
        assert (state(queue) != before) == allowed
        Job.objects.using(queue.alias).all().delete()


@pytest.mark.parametrize("verb", VERBS)
def test_whoever_may_not_see_jobs_may_not_touch_them(queue, job_in, sign_in, verb):
    visitor = sign_in(*ALL[1:])
    job_id = fitting(job_in, verb)
    before = state(queue)
    answers = [ask(job_id) for ask in asks(visitor, verb)]
    answers += [visitor.list(), visitor.client.get(reverse("admin:jobqueue_job_question", args=["x"]))]
    assert [answer.status_code for answer in answers] == [403] * 7
    assert state(queue) == before


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("withdrawn", ["view_job", "the verb"])
def test_an_answer_takes_the_permissions_again(queue, job_in, sign_in, verb, withdrawn):
    visitor = sign_in("view_job", PERMISSIONS[verb])
    asked = visitor.act(verb, fitting(job_in, verb))
    before = state(queue)
    codename = PERMISSIONS[verb] if withdrawn == "the verb" else withdrawn
    visitor.user.user_permissions.remove(visitor.user.user_permissions.get(codename=codename))
    assert visitor.agree(asked, **TOLD.get(verb, {})).status_code == 403
    assert visitor.client.get(asked.context["address"]).status_code == 403
    assert state(queue) == before
    assert Order.objects.using(queue.alias).get().state == "asked"


def test_an_order_is_seen_and_stopped_with_the_permissions_for_that(queue, job_in, operator, sign_in):
    operator.do("purge", job_in("completed"))
    order = Order.objects.using(queue.alias).get()
    pages = [reverse("admin:jobqueue_order_changelist"), reverse("admin:jobqueue_order_change", args=[order.pk])]
    stop = reverse("admin:jobqueue_order_stop", args=[order.pk])
    blind, other, mighty = sign_in(*ALL[1:]), sign_in(*(one for one in ALL if one != "purge_job")), sign_in(*ALL)
    assert [blind.client.get(page).status_code for page in (*pages, stop)] == [403] * 3
    assert blind.client.post(stop).status_code == 403
    assert [other.client.get(page).status_code for page in pages] == [200, 200]
    assert other.client.get(pages[1]).context["stop_address"] == ""
    assert [other.client.get(stop).status_code, other.client.post(stop).status_code] == [403, 403]
    mighty.client.get(stop)
    assert Order.objects.using(queue.alias).get().state == "waiting"
    mighty.client.post(stop)
    assert Order.objects.using(queue.alias).get().state == "stopped"


def test_who_may_only_look_is_offered_nothing(queue, job_in, sign_in):
    visitor = sign_in("view_job")
    job_id = job_in("dead_letter")
    for model in ("job", "deadletter"):
        assert visitor.list(model).context["action_form"] is None
        page = visitor.page(job_id, model)
        assert page.status_code == 200
        assert page.context["verbs"] == []
        assert page.context["addresses"] == {"edit": "", "again": ""}
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
    question = operator.act("retry", job_id).context["address"]
    for verb in VERBS:
        data = {**TOLD.get(verb, {}), "action": verb, "_selected_action": job_id}
        for page in ("changelist", f"everything_{verb}"):
            assert strict.post(reverse(f"admin:jobqueue_job_{page}"), data).status_code == 403
        assert strict.post(reverse(f"admin:jobqueue_job_{verb}", args=[job_id]), data).status_code == 403
    assert strict.post(question).status_code == 403
    assert strict.post(reverse("admin:jobqueue_order_stop", args=["x"])).status_code == 403
    assert row(queue, job_id).status == "dead_letter"
    token = str(strict.get(reverse("admin:jobqueue_job_change", args=[job_id])).context["csrf_token"])
    assert strict.post(address, {"csrfmiddlewaretoken": token}).status_code == 302
    assert row(queue, job_id).status == "queued"


def test_a_dead_letters_entry_takes_no_verb_that_is_not_offered_there(queue, job_in, operator):
    job_id = job_in("dead_letter")
    for verb in ("cancel", "run_now", "reschedule", "prioritise", "move"):
        for path in (f"_everything/{verb}/", f"{job_id}/{verb}/"):
            answer = operator.client.post(f"/admin/jobqueue/deadletter/{path}", TOLD.get(verb, {}))
            assert answer.status_code in (302, 404, 405)
        operator.act(verb, job_id, model="deadletter", **TOLD.get(verb, {}))
    assert row(queue, job_id).status == "dead_letter"
    assert told(operator.press("retry", job_id, model="deadletter")) == ["1 job is queued again."]
