"""Tests of every user on every page and button: permissions decide, and GET never changes anything."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from jobqueue.models import Attempt, Job, Order
from tests.admin.conftest import ALL, PERMISSIONS
from tests.conftest import ON_SQLITE

pytestmark = ON_SQLITE

#: With what each is done to; a queued one comes last, for a test that makes others would claim it.
VERBS = {"retry": "dead_letter", "purge": "completed"}
VERBS |= dict.fromkeys(("run_now", "reschedule", "prioritise", "move", "cancel"), "queued")
TOLD = {"reschedule": {"amount": "2", "unit": "hours"}, "prioritise": {"priority": "1"}, "move": {"queue": "mail"}}
MODELS = {"job": tuple(VERBS), "deadletter": ("retry", "purge")}
LATER = {"delay": timedelta(days=1)}
#: Who comes, and the verbs they may do; ``view`` is what all of them need to see anything.
ROLES = {
    "anonymous": None,
    "a customer": {"codenames": ALL, "is_staff": False},
    "staff": {"codenames": ()},
    "who may look": {"codenames": ("view_job",)},
    "who may act on what they cannot see": {"codenames": ALL[1:]},
    **{f"who may {verb}": {"codenames": ("view_job", PERMISSIONS[verb])} for verb in VERBS},
    "a superuser": {"codenames": (), "is_superuser": True},
}


def verbs_of(role):
    about = ROLES[role] or {"codenames": ()}
    if about.get("is_superuser"):
        return set(VERBS)
    if about.get("is_staff") is False or "view_job" not in about["codenames"]:
        return set()
    return {verb for verb in VERBS if PERMISSIONS[verb] in about["codenames"]}


def may_look(role):
    return role in ("who may look", "a superuser") or bool(verbs_of(role))


@pytest.fixture(params=ROLES)
def role(request):
    return request.param


@pytest.fixture
def visitor(role, sign_in):
    """A browser of someone in that role, which sends no token unless told to."""
    client = Client(enforce_csrf_checks=True)
    if ROLES[role] is not None:
        about = dict(ROLES[role])
        client.force_login(sign_in(*about.pop("codenames"), **about).user)
    return client


@pytest.fixture
def dump(alias):
    """A function that reads the jobs with their history, and the orders that were confirmed."""

    def read():
        jobs = [list(table.objects.using(alias).order_by("pk").values()) for table in (Attempt, Job)]
        return jobs, list(Order.objects.using(alias).exclude(state="asked").order_by("pk").values())

    return read


def addresses(model, job_id):
    """Every address that the admin of a model has."""
    name = f"admin:jobqueue_{model}"
    pages = ("change", "history", "delete", "edit", *MODELS[model])
    own = [reverse(f"{name}_{page}", args=[job_id]) for page in pages]
    own += [reverse(f"{name}_everything_{verb}") for verb in MODELS[model]]
    listing = reverse(f"{name}_changelist")
    actions = [f"{listing}?action={verb}&_selected_action={job_id}" for verb in VERBS]
    return [listing, reverse(f"{name}_add"), *own, *actions]


def token_of(client):
    """The token that any page with a form gives; the login page gives one to everybody."""
    client.get("/admin/login/?next=/")
    client.get("/admin/")
    if "csrftoken" not in client.cookies:
        client.cookies["csrftoken"] = "a" * 32
    return client.cookies["csrftoken"].value


def test_looking_changes_nothing_and_is_for_those_who_may(role, visitor, job_in, dump):
    jobs = {status: job_in(status) for status in VERBS.values()}
    before = dump()
    for model in MODELS:
        for job_id in jobs.values():
            for address in addresses(model, job_id):
                answer = visitor.get(address)
                assert answer.status_code in (200, 302, 400, 403, 405), address
                if role in ("anonymous", "a customer"):
                    assert "/admin/login/" in answer.headers["Location"], address
                elif not may_look(role):
                    # The history of a dead letter is the job's: it is asked for there.
                    assert answer.status_code in ((403, 405, 302) if address.endswith("/history/") else (403, 405))
                if not may_look(role):
                    assert job_id not in answer.content.decode(), address
        if may_look(role):
            assert visitor.get(addresses(model, jobs["dead_letter"])[2]).status_code == 200
    assert dump() == before


def post(client, address, token, **data):
    return client.post(address, data | ({"csrfmiddlewaretoken": token} if token else {}))


@pytest.mark.parametrize(("model", "verb"), [(model, verb) for model, offered in MODELS.items() for verb in offered])
def test_acting_takes_the_verbs_permission_and_the_pages_token(role, model, verb, visitor, job_in, dump):
    token = token_of(visitor)
    status = "dead_letter" if model == "deadletter" else VERBS[verb]
    later = LATER if status == "queued" else {}
    by_button, by_action, _by_filter = (job_in(status, **later) for _ in range(3))
    button = reverse(f"admin:jobqueue_{model}_{verb}", args=[by_button])
    listing = reverse(f"admin:jobqueue_{model}_{'all' if model == 'deadletter' else 'changelist'}")
    everything = reverse(f"admin:jobqueue_{model}_everything_{verb}")
    told, chosen = TOLD.get(verb, {}), {"action": verb, "_selected_action": by_action, "index": 0}
    before = dump()
    for wrong in (None, "b" * 32, "b" * 64):
        for address, data in ((button, told), (listing, chosen), (everything, {})):
            assert post(visitor, address, wrong, **data).status_code == 403
    assert dump() == before
    may = verb in verbs_of(role)
    for address, data in ((button, told), (listing, chosen), (everything, {})):
        before = dump()
        answer = post(visitor, address, token, **data)
        assert answer.status_code in (302, 403)
        question = answer.headers.get("Location", "")
        if "/_question/" in question:
            assert may
            assert dump() == before
            assert post(visitor, question, None, **told).status_code == 403
            assert post(visitor, question, "b" * 64, **told).status_code == 403
            assert dump() == before
            assert post(visitor, question, token, **told).status_code == 302
        assert (dump() != before) == may, (address, verb)


@pytest.mark.parametrize("verb", VERBS)
def test_a_question_is_answered_by_nobody_but_who_asked(role, verb, visitor, sign_in, job_in, dump):
    token, status = token_of(visitor), VERBS[verb]
    asked = sign_in(*ALL).act(verb, job_in(status, **(LATER if status == "queued" else {})))
    before, address = dump(), asked.context["address"]
    for answer in (visitor.get(address), post(visitor, address, token, **TOLD.get(verb, {}))):
        assert answer.status_code == (302 if may_look(role) or role in ("anonymous", "a customer") else 403)
    assert dump() == before


def test_nobody_writes_through_the_pages_for_forms(role, visitor, job_in, dump):
    token, job_id = token_of(visitor), job_in("dead_letter")
    before = dump()
    values = {"status": "queued", "payload": "{}", "type": "mine", "post": "yes", "_save": "1", "id": job_id}
    for model in MODELS:
        for page in ("add", "change", "delete"):
            address = reverse(f"admin:jobqueue_{model}_{page}", args=[] if page == "add" else [job_id])
            assert post(visitor, address, token, **values).status_code in (302, 403), address
    assert dump() == before
