"""Tests of markup in every column that outsiders can write: no page gets an element or attribute from it."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from urllib.parse import urlencode

import pytest

from jobqueue.models import Attempt, Job
from jobqueue.policy.settling import settled
from jobqueue.records import Dead, Ending, Failure, Scope
from jobqueue.testing.contract.harness import put, settle, take_one
from tests.conftest import ON_SQLITE

MARK = "zqx"
HOSTILE = [
    f"<script>{MARK}(1)</script>",
    f'"><img src={MARK} onerror={MARK}(1)>',
    f"'><svg/onload={MARK}(1)>",
    f"</pre></textarea></title></style><{MARK} {MARK}=1>",
    f"--><{MARK}>",
    f"javascript:{MARK}(1)",
    f'{MARK}" autofocus onfocus="{MARK}(1)',
    f"{{{{ 7|add:{MARK} }}}}{{% include '{MARK}' %}}%s%({MARK})s{{0}}",
    f"&lt;{MARK}&gt;<{MARK}\u2028>\u202e>{MARK}<\ufeff{MARK}>",
    f"<{MARK}>" * 3_000,
]
LEADING = ("href", "src", "action", "formaction", "data", "content")
#: As long as the column takes it.
SHORT = 90


class Born(HTMLParser):
    """Finds elements, attributes, comments and addresses that come from data."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.seen = 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.seen += 1
        names = [tag, *(name for name, _ in attrs)]
        self.found += [name for name in names if MARK in name or name.startswith("on") or name == "autofocus"]
        self.found += [f"{name}={value}" for name, value in attrs if name in ("src", "style") and MARK in (value or "")]
        leads = [value for name, value in attrs if name in LEADING]
        self.found += [value for value in leads if (value or "").strip().lower().startswith("javascript:")]

    def handle_comment(self, data):
        self.found += [data] if MARK in data else []

    def handle_data(self, data):
        if self.cdata_elem in ("script", "style") and MARK in data:
            self.found.append(data)


def hostile_job(queue, text):
    """Store a dead letter that says the same thing everywhere."""
    short = text[:SHORT]
    values = {"queue": short, "tenant": short, "workspace": short, "parent_id": short[:64], "idempotency_key": short}
    job_id = put(queue, short, payload=json.dumps({text: [text]}), **values)
    claim = take_one(queue, owner=short, types=frozenset({short}))
    failure = Failure.of(Ending.FAILED, error_class=text, message=text, traceback=text)
    assert settle(queue, settled(claim, Dead(short), failure)) == ()
    return job_id


@pytest.fixture(params=range(len(HOSTILE)))
def attacked(request, queue, alias):
    """A hostile dead letter and a hostile job that seems to run, with what is hostile about them."""
    text = HOSTILE[request.param]
    dead = hostile_job(queue, text)
    row = Job.objects.using(alias).filter(pk=dead)
    own = {"unique_key": text[:SHORT], "concurrency_key": text[:SHORT], "schedule_id": text[:64]}
    row.update(result={text: text}, progress={text: text}, context={text: text}, **own)
    running = put(queue, text[:SHORT], payload=json.dumps(text))
    assert take_one(queue, owner=text[:SHORT], types=frozenset({text[:SHORT]})).id == running
    assert Attempt.objects.using(alias).get(job_id=dead).message.startswith(text[:50])
    queue.operator.pause(Scope.QUEUE, text[:SHORT], text)
    return text, dead, running


@ON_SQLITE
def test_no_page_gets_an_element_or_an_attribute_from_data(attacked, operator):
    text, dead, running = attacked
    short = text[:SHORT]
    answers = [
        operator.list(),
        operator.list("deadletter"),
        operator.list(type=short, queue=short, q=short, created=short, status="queued"),
        operator.list(type=short),
        operator.page(dead),
        operator.page(dead, "deadletter"),
        operator.page(running),
        operator.press("purge", dead),
        operator.act("purge", dead),
        operator.act("move", dead, running),
        operator.act("retry", dead, select_across="1", query=f"?{urlencode({'q': f'id:{dead}'})}"),
        operator.client.get(f"/admin/jobqueue/job/{dead}/edit/", follow=True),
        operator.act("retry", short, running),  # refused with a message that names it
        operator.press("cancel", running),
        operator.press("retry", dead),
        operator.client.get(f"/admin/jobqueue/job/{dead}/history/"),
    ]
    assert {answer.status_code for answer in answers} == {200}
    assert [Born(answer.content.decode()).found for answer in answers] == [[]] * len(answers)
    assert all(Born(answer.content.decode()).seen > 20 for answer in answers)
    assert sum(MARK in answer.content.decode() for answer in answers) >= 10


def test_the_test_finds_what_it_looks_for():
    found = [Born(f"<p>{text}</p>").found for text in HOSTILE[:5]] + [Born(f'<a href="{HOSTILE[5]}">').found]
    assert all(found)
    assert Born(f'<p title="{HOSTILE[6]}">').found
