"""Tests of a job's page: its summary, its live updates, its permissions, and its cost."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import django.contrib.admin
import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.staticfiles import finders
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from jobqueue.admin.job import history, relatives
from jobqueue.admin.links import Links
from jobqueue.clock import SYSTEM
from jobqueue.models import Attempt, Job
from jobqueue.policy.settling import completed, settled
from jobqueue.records import Again, Dead, Ending, Failure, Progress, Scope, WorkerRecord
from jobqueue.testing.contract.harness import draft, failing, put, put_all, settle, take_one
from tests.admin.conftest import ALL, STATUSES
from tests.admin.outline import Outline, stumbles

#: What a page says of a job does not depend on the database; test_pages.py asks for each on both.
SQLITE_ALONE = True

LINKS = Links("admin")
ACTIVE = ("queued", "in_progress")
SECRET = "hunter2-and-more"


def live_address(job_id, model="job"):
    return reverse(f"admin:jobqueue_{model}_live", args=[job_id])


def look(visitor, job_id, model="job", **query):
    return visitor.client.get(live_address(job_id, model), query)


def change(queue, job_id, **values):
    Job.objects.using(queue.alias).filter(pk=job_id).update(**values)


def enlist(queue, **values):
    """Note that a worker is up."""
    moment = queue.now()
    about = {"owner": "host:1:ab", "name": "one", "host": "host", "pid": 1, "version": "0.1.0", "processes": 1}
    about |= {"slots": 10, "types": ("resize",), "started_at": moment, "seen_at": moment}
    queue.workers.enlist(WorkerRecord(**about | values))


class Text(HTMLParser):
    """What is read on a page, without its scripts and the notes of folds."""

    WITHIN_LINES = ("span", "a", "strong", "time", "progress")

    def __init__(self, html):
        super().__init__()
        self._words, self._is_note = [], False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self._is_note = ("class", "jq-json-note") in attrs
        self._words += [] if tag in self.WITHIN_LINES else [" "]

    def handle_endtag(self, tag):
        self._is_note = False

    def handle_data(self, data):
        if self.cdata_elem is None and not self._is_note:
            self._words.append(data)

    @property
    def all(self):
        return " ".join("".join(self._words).split())


def read(response):
    return Text(response.content.decode()).all


# What it says first


def test_the_summary_says_what_matters_most(queue, operator):
    job_id = put(queue, queue="images", tenant="acme", max_retries=5)
    take_one(queue, owner="host:1:ab")
    text = Text(operator.page(job_id).context["parts"]["summary"]).all
    for part in ("Status ▶in progress", "Type resize", "Queue images", "Attempts 1 of 5", "Worker host:1:ab"):
        assert part in text
    assert re.search(r"Age \d seconds? Duration \d+ ms", text)
    assert "Tenant acme" in text


def test_type_queue_and_tenant_lead_to_the_jobs_that_share_them(queue, operator):
    job_id = put(queue, "send mail", queue="images", tenant="acme, inc")
    put(queue, "other")
    part = operator.page(job_id).context["parts"]["summary"]
    listed = [one.replace("&amp;", "&") for one in re.findall(r'href="([^"]+[?]q=[^"]+)"', part)]
    assert len(listed) == 3
    for address in listed:
        assert [job.pk for job in operator.client.get(address).context["cl"].result_list] == [job_id]


def test_the_last_error_names_its_class(queue, operator, job_in):
    job_id = job_in("dead_letter")
    part = Text(operator.page(job_id).context["parts"]["why"]).all
    assert "Last error OSError: disk on fire" in part
    change(queue, job_id, error="written by another program")
    assert "Last error written by another program" in Text(operator.page(job_id).context["parts"]["why"]).all


def test_links_lead_to_other_systems(queue, operator, settings):
    settings.JOBQUEUE = settings.JOBQUEUE | {
        "LINKS": {
            "Logs": "https://logs.example.com/?job={id}&tenant={tenant}",
            "Traces": "https://traces.example.com/{trace}",
            "Runbook": "https://wiki.example.com/jobs/{type}",
        }
    }
    trace = json.dumps({"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"})
    job_id = put(queue, 'a"<b>/c', tenant="x&y", context=trace)
    part = operator.page(job_id).context["parts"]["summary"]
    assert f'href="https://logs.example.com/?job={job_id}&amp;tenant=x%26y"' in part
    assert 'href="https://traces.example.com/4bf92f3577b34da6a3ce929d0e0e4736"' in part
    assert 'href="https://wiki.example.com/jobs/a%22%3Cb%3E%2Fc"' in part
    other = Text(operator.page(put(queue, context='["no context"]')).context["parts"]["summary"]).all
    assert "Elsewhere Runbook" in other
    settings.JOBQUEUE = {key: value for key, value in settings.JOBQUEUE.items() if key != "LINKS"}
    assert "Elsewhere" not in operator.page(job_id).context["parts"]["summary"]


def test_the_job_of_a_webhook_leads_to_its_deliveries(queue, operator):
    job_id = put(queue, "webhook_dispatch")
    log = reverse("admin:jobqueue_webhooks_delivery_changelist")
    assert f'href="{log}?q={job_id}"' in operator.page(job_id).context["parts"]["summary"]


def test_what_is_not_known_is_not_in_the_summary(queue, operator):
    text = Text(operator.page(put(queue)).context["parts"]["summary"]).all
    assert [word for word in ("Duration", "Worker", "Tenant") if word in text] == []


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("model", ["job", "deadletter"])
def test_the_parts_stand_in_their_order_below_headings_in_order(queue, operator, job_in, status, model):
    if model == "deadletter" and status != "dead_letter":
        return
    job_id = job_in(status, parent_id="01PARENT", context='{"language": "de"}')
    if status == "in_progress":
        queue.progress([Progress(job_id, 1, "me", '{"percent": 7}')])
    change(queue, job_id, result={"a": 1})
    answer = operator.page(job_id, model)
    assert answer.status_code == 200
    assert stumbles(answer) == []
    page = answer.content.decode()
    places = [
        "jq-summary",
        'id="jq-why"',
        'id="jq-timeline"',
        'id="jq-payload"',
        'id="jq-family"',
        "fieldset-0-0-heading",
    ]
    assert [page.index(one) for one in places] == sorted(page.index(one) for one in places)
    assert all(f'id="{one}"' in page for one in re.findall(r'aria-labelledby="([^"]+)"', page))
    assert ('id="jq-progress"' in page) == (status == "in_progress")
    assert ('id="jq-result"' in page) == (status not in ACTIVE)


def test_the_columns_are_folded_away(queue, operator):
    page = operator.page(put(queue, idempotency_key="order-7")).content.decode()
    columns = page.split('<fieldset class="module aligned collapse"')[1]
    assert "<details><summary>" in columns
    assert "order-7" in columns
    assert columns.index("<details>") < columns.index("order-7")


@pytest.mark.parametrize("percent", ["40", "33.3", "0", "100", "66.66667"])
def test_progress_is_a_bar_and_a_word(queue, operator, job_in, percent):
    job_id = job_in("in_progress")
    queue.progress([Progress(job_id, 1, "me", f'{{"percent": {percent}, "file": "a.png"}}')])
    part = operator.page(job_id).context["parts"]["progress"]
    rounded = f"{round(float(percent), 1):g}"
    assert f'<progress class="jq-progress" max="100" value="{rounded}"' in part
    assert f"{rounded} %" in Text(part).all
    assert '"file": "a.png"' in Text(part).all
    assert '"percent"' not in Text(part).all


@pytest.mark.parametrize(
    "progress", [{"percent": 150}, {"percent": "<b>"}, {"percent": -1}, {"percent": [1]}, ["x"], "x", 7]
)
def test_progress_of_another_form_is_shown_as_it_is(queue, operator, job_in, progress):
    job_id = job_in("in_progress")
    change(queue, job_id, progress=progress)
    part = operator.page(job_id).context["parts"]["progress"]
    assert "<progress" not in part
    assert json.loads(Text(part).all.removeprefix("Progress Copy ")) == progress


def test_the_payload_before_it_was_edited_is_shown(queue, operator, job_in):
    job_id = job_in("dead_letter", payload='{"image_id": 7, "password": "hunter2-and-more"}')
    assert "before it was edited" not in read(operator.page(job_id))
    queue.operator.retry_edited(job_id, '{"image_id": 8}', 1)
    page = read(operator.page(job_id))
    assert page.index('"image_id": 8') < page.index("Payload before it was edited")
    assert page.index("Payload before it was edited") < page.index('"image_id": 7')
    assert SECRET not in page


def test_numbers_are_shown_as_they_are_stored(queue, operator):
    job_id = put(queue, payload='{"big": 12345678901234567890, "many": 1' + "0" * 4_999 + ', "half": 0.50}')
    page = read(operator.page(job_id))
    for part in ('"big": 12345678901234567890,', '"many": 1' + "0" * 4_999, '"half": 0.50'):
        assert part in page


# Why it is not running


def test_a_pause_is_a_reason_that_leads_to_the_queues(queue, operator):
    enlist(queue)
    queue.operator.pause(Scope.QUEUE, "default", "the provider is down")
    page = operator.page(put(queue)).content.decode()
    part = page.split('id="jq-why"')[1].split("</section>")[0]
    assert "Why is it not running?" in part
    assert "The queue default has been paused since" in part
    assert "the provider is down" in part
    assert f'href="{LINKS.queues()}"' in part
    assert "manage.py" not in part


def test_each_reason_is_told_in_words(queue, operator):
    job_id = put(queue)
    assert "No worker is up." in read(operator.page(job_id))
    assert LINKS.workers() in operator.page(job_id).context["parts"]["why"]
    enlist(queue, owner="host:2:cd", queues=("mail",))
    assert "There is 1 worker up, and none serves the queue default." in read(operator.page(job_id))
    enlist(queue)
    assert "It is due, and the next free slot takes it." in read(operator.page(job_id))
    put(queue, priority=1)
    assert "It is due, behind 1 due job that comes first." in read(operator.page(job_id))
    change(queue, job_id, scheduled_at=SYSTEM.now() + timedelta(hours=2, minutes=5))
    assert "It is scheduled for later: it waits until" in read(operator.page(job_id))


def test_nobody_counts_what_comes_first_where_something_else_is_the_reason(queue, operator, monkeypatch):
    counted = []
    monkeypatch.setattr(type(queue.jobs), "ahead_of", lambda self, job, cap: counted.append(cap) or 0)
    job_id = put(queue)
    operator.page(job_id)
    assert counted == []
    enlist(queue)
    operator.page(job_id)
    assert counted == [1_000]


def test_an_error_has_a_way_to_others_of_its_kind(queue, operator, job_in):
    ids = [job_in("dead_letter") for _ in range(3)]
    fingerprints = ["abc", "abc", "other"]
    for job_id, fingerprint in zip(ids, fingerprints, strict=True):
        change(queue, job_id, error_fingerprint=fingerprint)
    part = operator.page(ids[0]).context["parts"]["why"]
    assert "disk on fire" in part
    assert "1 other dead letter has the same error" in part
    assert reverse("admin:jobqueue_deadletter_changelist") + "?q=fingerprint%3Aabc" in part
    assert "same error" not in operator.page(ids[2]).context["parts"]["why"]
    assert [job.pk for job in operator.list("deadletter", q="fingerprint:abc").context["cl"].result_list] == ids[1::-1]


# Relatives


def test_a_follow_up_shows_its_parent_and_says_where_it_is_gone(queue, operator, job_in):
    parent = job_in("completed")
    child = put(queue, parent_id=parent)
    part = operator.page(child).context["parts"]["family"]
    assert "completed" in part
    assert f'href="{LINKS.job(parent)}"' in part
    queue.operator.purge([parent])
    assert "is gone" in operator.page(child).context["parts"]["family"]


def finished_with(queue, *children):
    """Complete a job that has enqueued others."""
    claim = take_one(queue)
    made = [draft("rare", parent_id=claim.id, **values) for values in children]
    assert settle(queue, completed(claim, "null")._replace(children=tuple(made))) == ()
    return claim.id, [one.id for one in made]


def test_a_completed_job_shows_its_follow_up_jobs(queue, operator):
    put(queue)
    parent, children = finished_with(queue, {}, {"delay": timedelta(hours=1)})
    other = put(queue, "rare", parent_id="01OTHER")
    part = operator.page(parent).context["parts"]["family"]
    assert [child in part for child in children] == [True, True]
    assert other not in part
    assert Text(part).all.count("queued") == 2


@pytest.mark.parametrize("status", STATUSES)
def test_a_job_without_relatives_says_nothing_of_them(operator, job_in, status):
    assert operator.page(job_in(status)).context["parts"]["family"].strip() == ""


def test_of_many_follow_up_jobs_some_are_shown_with_a_way_to_the_others(queue, operator, monkeypatch):
    monkeypatch.setattr(relatives, "CHILDREN_SHOWN", 2)
    put(queue)
    parent, children = finished_with(queue, {}, {}, {})
    part = operator.page(parent).context["parts"]["family"]
    assert [child in part for child in children] == [True, True, False]
    (address,) = [one for one in re.findall(r'href="([^"]+)"', part) if "?q=" in one]
    found = operator.client.get(address.replace("&amp;", "&")).context["cl"].result_list
    assert sorted(job.pk for job in found) == children


# Looking again


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("model", ["job", "deadletter"])
def test_a_look_brings_what_the_page_shows(queue, operator, job_in, monkeypatch, status, model):
    if model == "deadletter" and status != "dead_letter":
        return
    job_id = job_in(status)
    change(queue, job_id, result={"a": "<b>"}, progress={"percent": 7})
    moment = queue.now()
    monkeypatch.setattr(type(queue), "now", lambda self: moment)
    page = operator.page(job_id, model)
    known = look(operator, job_id, model).json()
    assert known["parts"] == page.context["parts"]
    assert set(known["parts"]) == {"summary", "verbs", "why", "progress", "timeline", "next", "result", "family"}
    assert all(part in page.content.decode() for part in known["parts"].values())
    assert (known["status"], known["is_over"]) == (status, status not in ACTIVE)


def test_a_look_brings_the_verbs_that_fit_now(queue, operator, job_in):
    job_id = job_in("in_progress")
    running = look(operator, job_id).json()["parts"]["verbs"]
    assert reverse("admin:jobqueue_job_cancel", args=[job_id]) in running
    assert "purge" not in running
    change(queue, job_id, status="completed", completed_at=SYSTEM.now())
    over = look(operator, job_id).json()["parts"]["verbs"]
    assert reverse("admin:jobqueue_job_purge", args=[job_id]) in over
    assert "cancel" not in over


def test_a_verb_on_a_jobs_own_page_can_be_given_a_reason(queue, operator, sign_in, job_in):
    dead = job_in("dead_letter")
    page = operator.page(dead).content.decode()
    assert page.count('name="why"') == 1
    assert page.index("disabled hidden") < page.index("formaction=")  # what Enter in the field presses
    assert 'name="why"' not in sign_in("view_job").page(dead).content.decode()
    operator.press("retry", dead, why="provider is back")
    assert LogEntry.objects.get(object_id=dead).change_message == "Retried: provider is back"


def test_who_may_only_look_gets_no_verbs(sign_in, queue, job_in):
    visitor = sign_in("view_job")
    assert "formaction" not in look(visitor, job_in("dead_letter")).json()["parts"]["verbs"]


def test_who_has_seen_the_timeline_gets_it_when_it_is_another(queue, operator):
    job_id = put(queue)

    def again(token):
        known = look(operator, job_id, token=token).json()
        return known["token"], "timeline" in known["parts"]

    token, is_there = again("")
    assert is_there
    assert again(token) == (token, False)
    claim = take_one(queue)
    later, is_there = again(token)
    assert (later != token, is_there) == (True, True)
    queue.progress([Progress(job_id, claim.fence, "me", '{"percent": 7}')])
    assert again(later) == (later, False)
    assert settle(queue, failing(claim, Again(timedelta(0)))) == ()
    failed, is_there = again(later)
    assert is_there
    LogEntry.objects.log_actions(operator.user.pk, [Job.objects.using(queue.alias).get(pk=job_id)], CHANGE, "Moved.")
    assert again(failed)[1]


@pytest.mark.parametrize("status", STATUSES)
def test_only_the_page_of_a_job_that_goes_on_looks_again(operator, job_in, status):
    job_id = job_in(status)
    page = operator.page(job_id).content.decode()
    assert (f'data-jq-live="{live_address(job_id)}"' in page) == (status in ACTIVE)
    assert ('aria-live="polite"' in page) == (status in ACTIVE)
    assert page.count("aria-live") <= 1
    assert "jobqueue/job.js" in page


@pytest.mark.parametrize("status", STATUSES)
def test_a_look_says_where_the_job_stands(operator, job_in, status):
    said = look(operator, job_in(status)).json()["said"]
    words = {"in_progress": "running", "dead_letter": "dead letter", "failed": "cancelled"}
    assert words.get(status, status) in said


def test_a_look_carries_no_payload_and_is_kept_nowhere(queue, operator):
    job_id = put(queue, payload='{"canary": 4711}')
    answer = look(operator, job_id)
    assert b"canary" not in answer.content
    assert "no-store" in answer.headers["Cache-Control"]


def test_a_look_leaves_the_messages_for_the_page(queue, operator, job_in):
    job_id = job_in("dead_letter")
    operator.client.post(reverse("admin:jobqueue_job_retry", args=[job_id]))
    look(operator, job_id)
    assert "1 job is queued again." in read(operator.page(job_id))


# Who may look


@pytest.mark.parametrize("model", ["job", "deadletter"])
def test_a_look_takes_the_permission_to_see_jobs_and_no_other(sign_in, queue, job_in, model):
    job_id = job_in("dead_letter")
    others = [one for one in ALL if one != "view_job"]
    answers = {
        "nothing": look(sign_in(), job_id, model),
        "others": look(sign_in(*others), job_id, model),
        "sight": look(sign_in("view_job"), job_id, model),
        "all": look(sign_in(is_superuser=True), job_id, model),
    }
    assert {name: answer.status_code for name, answer in answers.items()} == {
        "nothing": 403,
        "others": 403,
        "sight": 200,
        "all": 200,
    }


@pytest.mark.parametrize("about", [{"is_staff": False}, {"is_active": False}])
def test_only_active_staff_may_look(sign_in, queue, job_in, about):
    answer = look(sign_in("view_job", **about), job_in("queued"))
    assert answer.status_code == 302
    assert reverse("admin:login") in answer.headers["Location"]


def test_whoever_is_not_signed_in_is_sent_to_sign_in(databases, queue, job_in):
    answer = Client().get(live_address(job_in("queued")))
    assert answer.status_code == 302
    assert reverse("admin:login") in answer.headers["Location"]


def test_a_look_changes_nothing_and_is_no_post(operator, job_in, queue):
    job_id = job_in("queued")
    assert operator.client.post(live_address(job_id)).status_code == 405
    before = list(Job.objects.using(queue.alias).values())
    look(operator, job_id)
    assert list(Job.objects.using(queue.alias).values()) == before


@pytest.mark.parametrize("job_id", ["nothing", "\0", "ä" * 300, "a/b", "_5F"])
@pytest.mark.parametrize("model", ["job", "deadletter"])
def test_a_look_at_a_job_that_is_gone_says_so(operator, job_id, model):
    answer = look(operator, job_id, model)
    assert (answer.status_code, answer.json()) == (404, {"gone": "This job is gone."})
    assert "no-store" in answer.headers["Cache-Control"]


# What it does not show


def test_no_part_of_the_page_shows_a_secret(queue, operator):
    secretive = json.dumps({"password": SECRET, "deep": [{"api_key": "k-123456"}], "url": "amqp://ada:pw-of-ada@mq/"})
    context = json.dumps({"first": {"payload": {"password": "first-hunter2"}}, "cookie": "c-123456", "user": "ada"})
    job_id = put(queue, payload=secretive, context=context)
    failure = Failure.of(
        Ending.FAILED,
        error_class="OSError",
        message=f"{SECRET} first-hunter2 k-123456 token=t-987654",
        traceback=f"{SECRET} first-hunter2 amqp://ada:pw-of-ada@mq/ c-123456",
    )
    assert settle(queue, settled(take_one(queue), Dead("attempts used up"), failure)) == ()
    noted = {"access_token": "t-987654", "text": "token=t-987654"}
    error = f"{SECRET} first-hunter2 token=t-987654 k-123456"
    change(queue, job_id, result=noted, progress={"percent": 7, **noted}, error=error)
    for answer in (operator.page(job_id), operator.page(job_id, "deadletter"), look(operator, job_id)):
        text = answer.content.decode()
        canaries = ("hunter2", "k-123456", "t-987654", "c-123456", "pw-of-ada")
        assert [one for one in canaries if one in text] == []
        assert "[redacted]" in text


HOSTILE = ["<script>zqx(1)</script>", '"><img src=zqx onerror=zqx(1)>', "a\u202eb\u2066c", "%(count)s {{ 7 }} {0}"]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text_on_the_page_and_in_a_look(queue, operator, name):
    values = {"queue": name, "tenant": name, "parent_id": name, "context": json.dumps({name: name, "user": name})}
    job_id = put(queue, name, payload=json.dumps({name: [name]}), **values)
    take_one(queue, owner=name, types=frozenset({name}))
    change(queue, job_id, progress={name: name, "percent": name}, error=name)
    enlist(queue, name=name, owner=name)
    page, known = operator.page(job_id), look(operator, job_id)
    for html in (page.content.decode(), *known.json()["parts"].values()):
        assert "<script>zqx" not in html
        assert "<img" not in html.split('id="content"')[-1]
    assert known.status_code == page.status_code == 200
    summary = known.json()["parts"]["summary"]
    assert "\u202e" not in summary
    queue.operator.pause(Scope.QUEUE, name, name)
    change(queue, job_id, status="queued", lease_owner=None, lease_until=None, started_at=None)
    why = look(operator, job_id).json()["parts"]["why"]
    assert "\u202e" not in why
    assert "has been paused since" in why


def test_a_payload_that_cannot_be_read_has_its_page_all_the_same(queue, operator):
    deep = '{"x": ' + "[" * 100_000 + "]" * 100_000 + "}"
    job_id = put(queue)
    if queue.alias == "default":
        # Postgres refuses it.
        with connections[queue.alias].cursor() as cursor:
            cursor.execute("PRAGMA ignore_check_constraints = ON")
            cursor.execute("UPDATE job_queue SET payload = %s WHERE id = %s", [deep, job_id])
            cursor.execute("PRAGMA ignore_check_constraints = OFF")
        assert "This value can't be shown" in read(operator.page(job_id))
    change(queue, job_id, payload={"text": "x" * 10_000_000, "list": [0] * 100_000})
    answer = operator.page(job_id)
    assert answer.status_code == 200
    assert len(answer.content) < 400_000
    assert "more characters are not shown" in read(answer)
    assert "99,800 more elements are not shown" in read(answer)


# What it costs

MOST_QUERIES, MOST_OF_A_LOOK = 24, 16


def cost(queue, ask):
    """How many statements an answer takes, on all databases together."""
    asked = []
    for alias in {"default", queue.alias}:
        asked.append(CaptureQueriesContext(connections[alias]))
        asked[-1].__enter__()
    assert ask().status_code == 200
    for one in asked:
        one.__exit__(None, None, None)
    return sum(len(one) for one in asked)


@pytest.mark.parametrize("status", STATUSES)
def test_a_page_asks_the_database_few_times_whatever_happened(queue, operator, job_in, status, monkeypatch):
    monkeypatch.setattr(history, "LOG_LOOKED_AT", 2**31)  # the keys of the log grow from test to test, past its bound
    enlist(queue)
    job_id = job_in(status)
    job = Job.objects.using(queue.alias).get(pk=job_id)
    LogEntry.objects.log_actions(operator.user.pk, [job], CHANGE, "Moved.")
    operator.page(job_id)
    plain = cost(queue, lambda: operator.page(job_id))
    token = look(operator, job_id).json()["token"]
    quick = cost(queue, lambda: look(operator, job_id, token=token))
    Attempt.objects.using(queue.alias).bulk_create(
        Attempt(job_id=job_id, fence=fence, attempt=1, owner=f"w{fence}", ending="failed", ended_at=SYSTEM.now())
        for fence in range(100, 160)
    )
    for _ in range(history.ACTIONS_SHOWN + 5):
        LogEntry.objects.log_actions(operator.user.pk, [job], CHANGE, "Moved.")
    put_all(queue, *(draft("rare", parent_id=job_id) for _ in range(60)))
    assert cost(queue, lambda: operator.page(job_id)) == plain <= MOST_QUERIES
    token = look(operator, job_id).json()["token"]
    assert cost(queue, lambda: look(operator, job_id, token=token)) == quick <= MOST_OF_A_LOOK


def test_a_look_reads_no_payload(queue, operator, job_in):
    job_id = job_in("in_progress")
    token = look(operator, job_id).json()["token"]
    with CaptureQueriesContext(connections[queue.alias]) as asked:
        look(operator, job_id, token=token)
    assert [one["sql"] for one in asked if '"payload"' in one["sql"]] == []


def test_counting_others_of_an_error_stops(queue, operator, job_in, monkeypatch):
    monkeypatch.setattr("jobqueue.admin.job.detail.CAP", 2)
    ids = [job_in("dead_letter") for _ in range(5)]
    Job.objects.using(queue.alias).filter(pk__in=ids).update(error_fingerprint="abc")
    assert "2+ other dead letters have the same error" in read(operator.page(ids[0]))


# Its looks

ADMIN_CSS = Path(django.contrib.admin.__file__).parent / "static" / "admin" / "css"


def variables(text):
    return dict(re.findall(r"(--[\w-]+):\s*(#[0-9a-f]{3,6})\b", text))


def luminance(colour):
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    light = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2]


def contrast(one, other):
    dark, bright = sorted((luminance(one), luminance(other)))
    return (bright + 0.05) / (dark + 0.05)


def test_each_colour_can_be_read_in_light_and_in_dark():
    own = Path(finders.find("jobqueue/job.css")).read_text()
    light, dark, preferred = own.split("{")[1], own.split("{")[2], own.split("{")[4]
    assert variables(dark) == variables(preferred)
    assert (
        set(variables(light))
        == set(variables(dark))
        == {f"--jq-json-{one}" for one in ("key", "string", "number", "word")}
    )
    sheets = {"base.css": light, "dark_mode.css": dark}
    for sheet, ours in sheets.items():
        of_admin = variables((ADMIN_CSS / sheet).read_text().split("}")[0])
        for ground in ("--darkened-bg", "--body-bg", "--selected-bg"):
            found = {name: contrast(colour, of_admin[ground]) for name, colour in variables(ours).items()}
            assert {name: value for name, value in found.items() if value < 4.5} == {}


def test_the_script_does_nothing_that_a_strict_policy_forbids():
    script = Path(finders.find("jobqueue/job.js")).read_text()
    assert [
        word for word in ("eval(", "Function(", ".style", 'setAttribute("on', "javascript:") if word in script
    ] == []


def test_the_page_is_whole_without_its_script(queue, operator):
    job_id = put(queue, payload='{"image_id": 7}')
    outline = Outline(operator.page(job_id))
    assert outline.headings[0] == 1
    assert all(deeper - before <= 1 for before, deeper in pairwise(outline.headings))
    assert '"image_id": 7' in read(operator.page(job_id))
    css = Path(finders.find("jobqueue/job.css")).read_text()
    assert re.search(r"\.jq-copy,\s*\.jq-pause \{\s*display: none;", css)
