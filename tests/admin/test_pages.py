"""Tests of a job's page: history, redaction, times, and a strict content security policy."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from html.parser import HTMLParser

import pytest
from django.urls import reverse

from jobqueue import backends
from jobqueue.admin import display
from jobqueue.clock import SYSTEM
from jobqueue.models import Job
from jobqueue.policy.settling import settled
from jobqueue.records import Dead, Ending, Failure
from jobqueue.testing.contract.harness import draft, put, put_all, settle, take_one
from tests.admin.conftest import STATUSES
from tests.conftest import ON_SQLITE

SECRET = "hunter2-and-more"


class Inline(HTMLParser):
    """Finds scripts, styles and handlers that stand in the page itself."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "style" or (tag == "script" and not given.get("src") and given.get("type") != "application/json"):
            self.found.append(tag)
        self.found += [name for name in given if name == "style" or name.startswith("on")]
        self.found += [value for value in given.values() if (value or "").strip().lower().startswith("javascript:")]


@ON_SQLITE
@pytest.mark.parametrize("status", STATUSES)
def test_every_page_would_do_under_a_strict_policy(operator, job_in, status):
    job_id = job_in(status)
    answers = [operator.page(job_id), operator.list(), operator.list("deadletter")]
    answers += [operator.press("purge", job_id), operator.act("purge", job_id)]
    assert [Inline(answer.content.decode()).found for answer in answers] == [[]] * 5
    assert [answer.status_code for answer in answers] == [200] * 5


@ON_SQLITE
@pytest.mark.parametrize("status", STATUSES)
def test_a_status_is_said_in_words_and_by_a_sign(operator, job_in, status):
    page = operator.page(job_in(status)).content.decode()
    badge = page.split('class="jq-status', 1)[1].split("</div>", 1)[0]
    assert {"failed": "cancelled"}.get(status, status.replace("_", " ")) in badge
    assert f'aria-hidden="true">{display.SIGNS[status]}<' in badge


def test_each_status_has_a_sign_of_its_own():
    assert len(set(display.SIGNS.values())) == len(STATUSES)


def fail(queue, message, traceback=""):
    failure = Failure.of(
        Ending.FAILED, error_class="OSError", message=message, traceback=traceback, duration=timedelta(milliseconds=34)
    )
    assert settle(queue, settled(take_one(queue), Dead("attempts used up"), failure)) == ()


@pytest.mark.parametrize("model", ["job", "deadletter"])
def test_no_page_shows_a_secret(queue, operator, model):
    payload = json.dumps({"user": {"password": SECRET, "name": "Ada"}, "api_key": "k-123456", "note": "kept"})
    job_id = put(queue, payload=payload)
    fail(queue, f"login with {SECRET} refused, token=t-987654", f"  password={SECRET!r}\n  token=t-987654")
    Job.objects.using(queue.alias).filter(pk=job_id).update(
        result={"access_token": "t-987654"}, context={"cookie": "t-987654"}, progress={"secret": "t-987654"}
    )
    page = operator.page(job_id, model).content.decode()
    assert [one for one in (SECRET, "k-123456", "t-987654") if one in page] == []
    assert "[redacted]" in page
    assert "Ada" in page
    assert "kept" in page
    assert "t-987654" not in operator.list(model).content.decode()


def test_a_list_shows_the_first_line_of_an_error_and_no_markup_of_it(queue, operator):
    put(queue)
    fail(queue, "disk <i>on</i> fire\nand a second line")
    put(queue, "<b>")
    page = operator.list().content.decode()
    assert "disk &lt;i&gt;on&lt;/i&gt; fire" in page
    assert "and a second line" not in page
    assert "&lt;b&gt;" in page


def test_when_says_how_long_ago_or_how_far_off(queue, operator):
    put_all(queue, draft(), draft(scheduled_at=SYSTEM.now() + timedelta(hours=2, minutes=5)))
    page = operator.list().content.decode()
    assert "runs in 2\xa0hours" in page
    assert "second" in page
    assert 'title="20' in page


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, ""), (0.0344, "34 ms"), (1.26, "1.3 s"), (60, "1\xa0minute"), (7300, "2\xa0hours")]
)
def test_durations_are_short(seconds, text):
    assert display.duration(seconds) == text


def test_times_are_in_the_zone_of_the_project(queue, operator, settings):
    job_id = put(queue)
    assert "CET" in (page := operator.page(job_id).content.decode()) or "CEST" in page
    settings.USE_TZ = False
    page = operator.page(job_id)
    assert page.status_code == 200
    assert operator.list().status_code == 200
    assert "UTC" in page.content.decode()


def test_a_child_leads_to_its_parent(queue, operator):
    parent, child = put_all(queue, draft(), draft(parent_id="01ABC"))
    page = operator.page(child).content.decode()
    assert reverse("admin:jobqueue_job_change", args=["01ABC"]) in page
    assert "parent" not in operator.page(parent).content.decode().lower().split('id="content"')[1]


def test_a_running_job_that_was_asked_to_stop_says_so(queue, operator, job_in):
    job_id = job_in("in_progress")
    assert "asked to stop" not in operator.page(job_id).content.decode()
    queue.operator.cancel([job_id])
    assert "asked to stop" in operator.page(job_id).content.decode()


@ON_SQLITE
@pytest.mark.parametrize("job_id", ["nothing", "\0", "ä" * 300])
@pytest.mark.parametrize("model", ["job", "deadletter"])
def test_the_page_of_an_unknown_job_leads_away(operator, job_id, model):
    assert operator.page(job_id, model).status_code == 302


@pytest.mark.postgres
def test_jobs_are_read_and_changed_where_the_settings_say_they_are(databases, settings, sign_in):
    settings.JOBQUEUE = {"DATABASE": "postgres"}
    job_id = put(backends.current())
    assert not Job.objects.using("default").exists()
    operator = sign_in("view_job", "cancel_job")
    assert job_id in operator.list().content.decode()
    operator.press("cancel", job_id)
    assert Job.objects.using("postgres").get(pk=job_id).status == "failed"
    settings.JOBQUEUE = {"DATABASE": "default"}
    assert job_id not in operator.list().content.decode()
    assert operator.page(job_id).status_code == 302


WITHOUT_ADMIN = """
import django
from django.conf import settings
settings.configure(
    INSTALLED_APPS=["jobqueue"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    USE_TZ=True,
)
django.setup()
import sys
from django.core.management import call_command
call_command("migrate", verbosity=0)
assert "django.contrib.admin" not in sys.modules, "imported"
assert not [name for name in sys.modules if name.startswith("jobqueue.admin")]
"""


def test_a_project_without_the_admin_is_not_troubled():
    done = subprocess.run([sys.executable, "-c", WITHOUT_ADMIN], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
