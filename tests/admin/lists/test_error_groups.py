"""Tests of dead letters by error: the groups, the permissions, and retries with a pace."""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import pairwise
from urllib.parse import urlencode

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from jobqueue.admin.lists import error_groups
from jobqueue.clock import SYSTEM
from jobqueue.models import Attempt, Job, Order
from jobqueue.policy.settling import settled
from jobqueue.records import Caps, Dead, Ending, Failure
from jobqueue.testing.contract.harness import put, settle, take, take_one
from tests.admin.conftest import carry_out, shown, told
from tests.admin.outline import Outline, stumbles
from tests.admin.test_pages import Inline
from tests.attacks.test_markup import HOSTILE, MARK, Born
from tests.conftest import ON_SQLITE

SECRET = "hunter2-and-more"
TRACEBACK = (
    'Traceback (most recent call last):\n  File "shop/printing.py", line 7, in print_label\nOSError: disk on fire'
)
FIRST = "/admin/jobqueue/deadletter/"


@pytest.fixture
def fail(queue):
    """A function that makes a dead letter with an error."""

    def make(
        fingerprint="disk",
        message="disk on fire",
        *,
        error_class="OSError",
        traceback=TRACEBACK,
        ending=Ending.FAILED,
        kind="resize",
        **values,
    ):
        put(queue, kind, **values)
        claim = take_one(queue, types=frozenset({kind}))
        failure = Failure.of(
            ending, error_class=error_class, message=message, traceback=traceback, fingerprint=fingerprint
        )
        assert settle(queue, settled(claim, Dead("attempts used up"), failure)) == ()
        return claim.id

    return make


def group_address(fingerprint, verb=""):
    return f"{FIRST}by_error/{f'{verb}/' if verb else ''}?{urlencode({'fingerprint': fingerprint})}"


def moved(queue, job_id, **columns):
    """Change what a test cannot wait for."""
    Job.objects.using(queue.alias).filter(pk=job_id).update(**columns)


def statuses(queue, *ids):
    found = dict(Job.objects.using(queue.alias).filter(pk__in=ids).values_list("pk", "status"))
    return [found.get(job_id) for job_id in ids]


def deal(visitor, verb, fingerprint="disk", **told):
    """Press a group's button, and agree to what the page asks."""
    asked = visitor.client.post(group_address(fingerprint, verb), follow=True)
    return visitor.agree(asked, **told) if asked.status_code == 200 else asked


# What is shown


def test_the_first_page_shows_each_error_with_what_is_to_be_known_of_it(queue, operator, fail):
    now = SYSTEM.now()
    first, second = fail(), fail("net", "no route\nto the host", error_class="TimeoutError", kind="greet")
    moved(queue, first, completed_at=now - timedelta(hours=3))
    third = fail()
    moved(queue, third, completed_at=now - timedelta(minutes=5))
    moved(queue, second, completed_at=now - timedelta(minutes=1))
    answer = operator.client.get(FIRST)
    found, more = answer.context["found"], answer.context["more"]
    assert [(one.error, one.message, one.type, one.count) for one in found] == [
        ("TimeoutError", "no route", "greet", "1"),
        ("OSError", "disk on fire", "resize", "2"),
    ]
    assert more is False
    assert "5 minutes ago" in found[1].last.replace("\xa0", " ")
    assert "3 hours ago" in found[1].first.replace("\xa0", " ")
    page = answer.content.decode()
    assert "2 in the last 24 hours; most in one hour: 1." in page
    assert group_address("disk").replace("&", "&amp;") in page


def test_without_dead_letters_the_page_says_so(operator, job_in):
    job_in("failed")
    page = operator.client.get(FIRST).content.decode()
    assert "There are no dead letters" in page
    assert "<table" not in page.split('id="content-main"')[1]


def test_what_no_exception_ended_is_named_by_how_it_ended(operator, fail):
    fail("resize:crashed", "its process was ended", error_class="", traceback="", ending=Ending.CRASHED)
    answer = operator.client.get(FIRST)
    assert [one.error for one in answer.context["found"]] == ["crashed"]
    assert "The failure has no traceback." in operator.client.get(group_address("resize:crashed")).content.decode()


def test_a_group_shows_one_traceback_and_its_jobs_and_leads_to_the_list_of_them(queue, operator, fail):
    old, new, other = fail(), fail(message="disk under water"), fail("net")
    answer = operator.client.get(group_address("disk"))
    page = answer.content.decode()
    assert answer.context["failure"].message == "disk under water"
    assert page.count("line 7, in print_label") == 1
    assert [job["id"] for job in answer.context["jobs"]] == [new, old]
    assert reverse("admin:jobqueue_deadletter_change", args=[new]) in page
    assert other not in page
    listed = operator.client.get(answer.context["group"].list_address)
    assert set(shown(listed)) == {old, new}


def test_the_jobs_of_a_large_group_are_shown_in_part(operator, fail, monkeypatch):
    monkeypatch.setattr(error_groups, "JOBS_SHOWN", 2)
    _old, *newest = [fail() for _ in range(3)]
    answer = operator.client.get(group_address("disk"))
    assert [job["id"] for job in answer.context["jobs"]] == newest[::-1]


def test_a_count_stops_and_says_that_there_are_more(operator, fail, monkeypatch):
    monkeypatch.setattr(error_groups, "CAPS", Caps(group=2, groups=100, hour=2, hours=100))
    monkeypatch.setattr(error_groups, "HOUR_OF_ONE", 2)
    for _ in range(3):
        fail()
    for address in (FIRST, group_address("disk")):
        page = operator.client.get(address).content.decode()
        assert ">2+<" in page
        assert "2+ in the last 24 hours; most in one hour: 2+." in page


def test_the_page_of_one_error_counts_more_of_an_hour_than_the_list(operator, fail, monkeypatch):
    monkeypatch.setattr(error_groups, "CAPS", error_groups.CAPS._replace(hour=2))
    for _ in range(3):
        fail()
    assert "2+ in the last 24 hours" in operator.client.get(FIRST).content.decode()
    assert "3 in the last 24 hours; most in one hour: 3." in operator.client.get(group_address("disk")).content.decode()


def test_of_too_many_errors_the_latest_are_shown(operator, fail, monkeypatch):
    monkeypatch.setattr(error_groups, "SHOWN", 2)
    for name in ("a", "b", "c"):
        fail(name)
    answer = operator.client.get(FIRST)
    assert [one.address for one in answer.context["found"]] == [group_address(name) for name in ("c", "b")]
    assert "There are more errors. Only the first 2 are shown." in answer.content.decode()


def test_dead_letters_of_another_program_are_one_group(queue, operator, fail):
    theirs = [put(queue, "theirs"), put(queue, "others")]
    for job_id in theirs:
        moved(queue, job_id, status="dead_letter", error="it <i>broke</i>\nbadly", completed_at=None)
    ours = fail()
    found = operator.client.get(FIRST).context["found"]
    assert [(one.error, one.count) for one in found] == [("OSError", "1"), ("Errors without a fingerprint", "2")]
    answer = operator.client.get(group_address(""))
    assert {job["id"] for job in answer.context["jobs"]} == set(theirs)
    assert "it &lt;i&gt;broke&lt;/i&gt;" in answer.content.decode()
    assert ours not in answer.content.decode()
    assert set(shown(operator.client.get(answer.context["group"].list_address))) == set(theirs)


@pytest.mark.parametrize("fingerprint", ["gone", "\0", "ä" * 300, "' OR 1=1 --", "%", ""])
def test_a_group_that_is_no_more_leads_back_and_says_so(operator, fail, fingerprint):
    fail()
    answer = operator.client.get(group_address(fingerprint), follow=True)
    assert answer.redirect_chain == [(FIRST, 302)]
    assert told(answer) == ["No dead letter has this error."]


def test_a_fingerprint_of_any_signs_has_its_page(operator, fail):
    odd = "a/b?c&d=e#f g_2F%<i>é"
    job_id = fail(odd)
    (group,) = operator.client.get(FIRST).context["found"]
    assert [job["id"] for job in operator.client.get(group.address).context["jobs"]] == [job_id]
    assert shown(operator.client.get(group.list_address)) == [job_id]


def test_the_flat_list_is_one_step_away_and_whoever_asks_for_a_list_gets_it(operator, fail):
    job_id, _other = fail(), fail(kind="greet")
    page = operator.client.get(FIRST).content.decode()
    assert f'href="{FIRST}all/"' in page
    assert f'href="{FIRST}"' in operator.list("deadletter").content.decode()
    answer = operator.client.get(f"{FIRST}?type=resize", follow=True)
    assert answer.redirect_chain == [(f"{FIRST}all/?type=resize", 302)]
    assert shown(answer) == [job_id]


def test_errors_are_filtered_and_ordered(queue, operator, fail):
    fail("disk", "disk on fire")
    fail("disk", "disk on fire")
    fail("net", "no route", error_class="TimeoutError", kind="greet")

    def found(**query):
        return [one.message for one in operator.client.get(f"{FIRST}?{urlencode(query)}").context["found"]]

    assert found(order="latest") == ["no route", "disk on fire"]
    assert found(order="largest") == ["disk on fire", "no route"]
    assert found(of="resize") == found(text="FIRE") == found(text="oserror") == ["disk on fire"]
    assert found(of="greet", text="fire") == []
    page = operator.client.get(f"{FIRST}?of=greet&text=fire").content.decode()
    assert "No dead letter has such an error." in page
    assert '<option value="greet" selected>' in page


@pytest.mark.parametrize("query", ["order=x", "text=%00", "of=%00", "text=" + "x" * 9_000, "of=%ff", "order=largest"])
def test_any_filter_has_an_answer(operator, fail, query):
    fail()
    assert operator.client.get(f"{FIRST}?{query}").status_code == 200


def test_a_group_says_how_it_was_grouped(queue, operator, fail):
    job_id = fail(
        "old", "order 17 of 'anna' is gone", traceback='  File "a.py", line 7, in f\n    raise Gone(order)\nX'
    )
    page = operator.client.get(group_address("old")).content.decode()
    assert "manage.py jobqueue regroup" in page
    queue.operator.regroup(queue.errors.outdated([job_id]))
    (group,) = operator.client.get(FIRST).context["found"]
    page = operator.client.get(group.address).content.decode()
    assert "manage.py jobqueue regroup" not in page
    assert ">raise Gone(order)</dd>" in page
    assert ">order # of “…” is gone</dd>" in page


def test_a_group_says_who_is_affected(settings, operator, fail):
    settings.JOBQUEUE = {**settings.JOBQUEUE, "RELEASE": "1.1"}
    for tenant in ("acme", "acme", None):
        fail(tenant=tenant, queue="mail")
    page = operator.client.get(group_address("disk")).content.decode()
    assert "Of all jobs with this error." in page
    assert "acme: 2 (67 %), none: 1 (33 %)" in page
    assert "mail: 3 (100 %)" in page
    assert "1.1: 3 (100 %)" in page


# One first


def test_one_is_retried_first_and_the_group_says_what_became_of_it(queue, operator, fail):
    old, new = fail(), fail()
    answer = operator.client.post(group_address("disk", "retry_one"), follow=True)
    ((there, _code),) = answer.redirect_chain
    assert there == f"{group_address('disk')}&tried={new}"
    assert statuses(queue, old, new) == ["dead_letter", "queued"]
    assert told(answer) == ["1 job is queued again."]
    assert reverse("admin:jobqueue_job_change", args=[new]) in answer.content.decode()
    assert "Reload" in answer.content.decode()
    assert "Not seen since a retry" in answer.content.decode()
    moved(queue, new, status="completed")
    assert "Retry the others now." in operator.client.get(there).content.decode()
    moved(queue, new, status="dead_letter", error_fingerprint="disk", completed_at=SYSTEM.now() + timedelta(minutes=1))
    page = operator.client.get(there).content.decode()
    assert "The job was given up again." in page
    assert "Came back after a retry" in page
    assert "Came back after a retry" in operator.client.get(FIRST).content.decode()


def test_where_it_was_the_only_one_its_own_page_is_shown(operator, fail):
    job_id = fail()
    answer = operator.client.post(group_address("disk", "retry_one"), follow=True)
    assert answer.redirect_chain[-1][0] == reverse("admin:jobqueue_job_change", args=[job_id])


@pytest.mark.parametrize("codenames", [(), ("view_job",), ("retry_job",), ("view_job", "purge_job")])
def test_one_is_retried_by_those_alone_who_may(queue, sign_in, fail, codenames):
    job_id = fail()
    assert sign_in(*codenames).client.post(group_address("disk", "retry_one")).status_code == 403
    assert statuses(queue, job_id) == ["dead_letter"]


def test_one_is_not_retried_by_a_link_nor_of_a_group_that_is_no_more(queue, operator, fail):
    job_id = fail()
    assert operator.client.get(group_address("disk", "retry_one")).status_code == 405
    for name in ("gone", "\0"):
        assert told(operator.client.post(group_address(name, "retry_one"), follow=True)) == [
            "No dead letter has this error."
        ]
    assert statuses(queue, job_id) == ["dead_letter"]


@pytest.mark.parametrize("tried", ["nosuch", "\0", "x" * 5_000])
def test_a_job_that_was_not_tried_is_not_spoken_of(operator, fail, tried):
    fail()
    answer = operator.client.get(f"{group_address('disk')}&{urlencode({'tried': tried})}")
    assert "Retried first" not in answer.content.decode()


def test_errors_of_a_type_are_one_step_from_its_dashboard(operator, fail):
    fail()
    fail("net", kind="greet")
    page = operator.client.get("/admin/jobqueue/dashboard/?type=greet").content.decode()
    assert f'href="{FIRST}?of=greet"' in page


# Secrets and markup


def test_no_page_of_groups_shows_a_secret(operator, fail):
    payload = json.dumps({"user": {"password": SECRET}})
    fail("disk", f"login with {SECRET}-x refused, token=t-987654", traceback=f"  password={SECRET!r}\n  token=t-987654")
    fail("net", "login refused", traceback=f"  {SECRET} was sent", payload=payload)
    pages = [operator.client.get(address) for address in (FIRST, group_address("disk"), group_address("net"))]
    assert ["t-987654" in page.content.decode() for page in pages] == [False] * 3
    assert SECRET not in pages[2].content.decode()
    assert "[redacted]" in pages[2].content.decode()


def test_a_payload_that_python_cannot_read_hides_no_group(queue, operator, fail):
    job_id = fail()
    with connections[queue.alias].cursor() as cursor:
        cursor.execute("UPDATE job_queue SET payload = %s WHERE id = %s", ['{"x": 1' + "0" * 5_000 + "}", job_id])
    assert operator.client.get(group_address("disk")).status_code == 200


@ON_SQLITE
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_no_page_of_groups_gets_an_element_from_data(queue, operator, fail, text):
    short = text[:60]
    fail(short, f"\x1b[2J{text}", error_class=text, traceback=text, kind=short, queue=short, tenant=short)
    answers = [operator.client.get(address) for address in (FIRST, group_address(short))]
    answers += [operator.client.post(group_address(short, verb), follow=True) for verb in ("retry", "purge")]
    assert [answer.status_code for answer in answers] == [200] * 4
    assert [Born(answer.content.decode()).found for answer in answers] == [[]] * 4
    assert all(MARK in answer.content.decode() for answer in answers[:2])


def test_pages_of_groups_read_well_and_would_do_under_a_strict_policy(operator, fail):
    fail()
    fail("net")
    answers = [operator.client.get(address) for address in (FIRST, group_address("disk"))]
    answers += [operator.client.post(group_address("disk", verb), follow=True) for verb in ("retry", "purge")]
    assert [stumbles(answer) for answer in answers] == [[]] * 4
    assert [Inline(answer.content.decode()).found for answer in answers] == [[]] * 4


# Who may


@pytest.mark.parametrize(
    ("permissions", "buttons"),
    [
        ([], []),
        (["retry_job"], ["retry"]),
        (["purge_job"], ["purge"]),
        (["retry_job", "purge_job"], ["retry", "purge"]),
        (["cancel_job", "pause_queue"], []),
    ],
)
def test_a_group_offers_what_one_may_do(sign_in, fail, permissions, buttons):
    fail()
    visitor = sign_in("view_job", *permissions)
    assert visitor.client.get(FIRST).status_code == 200
    answer = visitor.client.get(group_address("disk"))
    assert [verb.name for verb, _address in answer.context["verbs"]] == buttons
    forms = [name for verb in buttons for name in (["retry_one", verb] if verb == "retry" else [verb])]
    assert Outline(answer).own_posts == [group_address("disk", name) for name in forms]
    rows = [group_address("disk", "retry")] if "retry" in buttons else []
    assert Outline(visitor.client.get(FIRST)).own_posts == rows


@ON_SQLITE
@pytest.mark.parametrize("verb", ["retry", "purge"])
@pytest.mark.parametrize(
    "codenames", [(), ("view_job",), ("retry_job", "purge_job"), ("view_job", "retry_job"), ("view_job", "purge_job")]
)
def test_a_group_is_dealt_with_by_those_alone_who_may_see_it_and_do_that(
    queue, sign_in, fail, at_once, verb, codenames
):
    job_id = fail()
    visitor = sign_in(*codenames)
    sees = "view_job" in codenames
    assert visitor.client.get(FIRST).status_code == (200 if sees else 403)
    assert visitor.client.get(group_address("disk")).status_code == (200 if sees else 403)
    may = sees and f"{verb}_job" in codenames
    assert deal(visitor, verb).status_code == (200 if may else 403)
    if may and verb == "purge":
        carry_out(queue)
    assert statuses(queue, job_id) == [{"retry": "queued", "purge": None}[verb] if may else "dead_letter"]


def test_nobody_else_gets_in(queue, sign_in, fail):
    job_id = fail()
    for client in (Client(), sign_in("view_job", "retry_job", is_staff=False).client):
        for address in (FIRST, group_address("disk")):
            assert reverse("admin:login") in client.get(address).headers["Location"]
        assert reverse("admin:login") in client.post(group_address("disk", "retry")).headers["Location"]
    assert statuses(queue, job_id) == ["dead_letter"]


def test_looking_at_groups_changes_nothing(queue, operator, fail):
    fail()

    def everything():
        return [list(table.objects.using(queue.alias).order_by("pk").values()) for table in (Attempt, Job)]

    before = everything()
    verbs = [group_address("disk", verb) for verb in ("retry", "purge")]
    codes = [operator.client.get(address).status_code for address in (FIRST, group_address("disk"), *verbs)]
    assert codes == [200, 200, 302, 302]
    assert everything() == before
    assert not LogEntry.objects.exists()


def test_a_group_is_not_dealt_with_without_the_pages_token(queue, operator, fail):
    job_id = fail()
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(operator.user)
    for verb in ("retry", "purge"):
        assert strict.post(group_address("disk", verb), {"confirmed": "yes", "expected": "9"}).status_code == 403
    assert statuses(queue, job_id) == ["dead_letter"]


def test_a_group_costs_as_many_queries_as_another_however_many_there_are(queue, operator, fail):
    counts = []
    for number in range(2):
        for name in range(15 * number + 1):
            fail(f"error {number} {name}")
        found = []
        for address in (FIRST, group_address("error 0 0")):
            with CaptureQueriesContext(connections[queue.alias]) as queries:
                assert operator.client.get(address).status_code == 200
            unbounded = [one["sql"] for one in queries if "DISTINCT" in one["sql"] or "GROUP BY" in one["sql"]]
            assert not [one for one in unbounded if "AS walked" not in one]
            found.append(len([one for one in queries if "job_queue" in one["sql"]]))
        counts.append(found)
    assert counts[0] == counts[1]
    assert max(counts[0]) <= 16


# What is done to all of them


def test_a_group_is_retried_whole_and_others_are_left_alone(queue, operator, fail):
    ids, other = [fail() for _ in range(3)], fail("net")
    nameless = fail(None)
    asked = operator.client.post(group_address("disk", "retry"), follow=True)
    assert asked.context["affected"].total == 3
    assert statuses(queue, *ids) == ["dead_letter"] * 3
    answer = operator.agree(asked, why="the disk is new")
    # Back where one came from; nothing is left there, which leads on to the other errors.
    assert [address for address, _status in answer.redirect_chain] == [group_address("disk"), FIRST]
    assert told(answer) == ["3 jobs are queued again.", "No dead letter has this error."]
    assert statuses(queue, *ids, other, nameless) == ["queued"] * 3 + ["dead_letter"] * 2
    entries = LogEntry.objects.values_list("object_repr", "change_message", "user__username")
    assert list(entries) == [("Retry 3 jobs", "Retried: the disk is new", operator.user.username)]


def test_a_retry_at_a_pace_spreads_the_jobs_over_time(queue, operator, fail):
    ids = sorted(fail() for _ in range(5))
    deal(operator, "retry", per_minute="6")
    due = list(Job.objects.using(queue.alias).filter(pk__in=ids).order_by("pk").values_list("scheduled_at", flat=True))
    steps = [after - before for before, after in pairwise(due)]
    assert steps == [timedelta(seconds=10)] * 4
    assert abs(due[0] - SYSTEM.now()) < timedelta(seconds=30)
    assert [claim.id for claim in take(queue)] == ids[:1]


def test_a_group_is_purged_whole_with_its_history_and_others_are_left_alone(queue, operator, fail, at_once):
    ids, other = [fail() for _ in range(3)], fail("net")
    assert "Purge 3 jobs" in deal(operator, "purge").content.decode()
    carry_out(queue)
    assert statuses(queue, *ids, other) == [None] * 3 + ["dead_letter"]
    assert list(Attempt.objects.using(queue.alias).values_list("job_id", flat=True)) == [other]
    assert [one.error for one in operator.client.get(FIRST).context["found"]] == ["OSError"]


def test_the_group_of_those_without_a_fingerprint_is_dealt_with_alone(queue, operator, fail):
    nameless, other = fail(None), fail()
    deal(operator, "retry", fingerprint="")
    assert statuses(queue, nameless, other) == ["queued", "dead_letter"]


def test_who_joins_a_group_after_it_was_asked_about_is_left_alone(queue, operator, fail, at_once):
    first = fail()
    asked = operator.client.post(group_address("disk", "purge"), follow=True)
    second = fail()
    operator.agree(asked)
    carry_out(queue)
    assert statuses(queue, first, second) == [None, "dead_letter"]


def test_a_large_group_is_retried_in_the_background(queue, operator, fail, monkeypatch):
    monkeypatch.setattr("jobqueue.orders.confirmation.BATCH", 2)
    ids = [fail() for _ in range(3)]
    deal(operator, "retry", per_minute="60")
    assert statuses(queue, *ids) == ["dead_letter"] * 3
    order = Job.objects.using(queue.alias).get(type="jobqueue.operate")
    assert order.status == "queued"
    assert Order.objects.using(queue.alias).get(pk=order.payload["order"]).instruction["per_minute"] == 60


def test_a_group_with_an_impossible_fingerprint_is_refused(queue, operator, fail):
    fail()
    for verb in ("retry", "purge"):
        assert operator.client.post(group_address("\0", verb)).status_code == 400
        assert operator.client.post(group_address("x" * 65, verb), follow=True).status_code == 200
