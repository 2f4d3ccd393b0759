"""Tests of queues in the admin: their metrics, their workers, and pauses."""

from __future__ import annotations

import re
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from jobqueue.admin import display
from jobqueue.admin.operations import queue_rows
from jobqueue.clock import SYSTEM
from jobqueue.models import Job, Worker
from jobqueue.records import QueueOptions, Scope, Tally, WorkerState
from jobqueue.testing.contract.harness import draft, put, put_all, take, take_one
from jobqueue.testing.contract.ports.registering import worker
from tests.admin.conftest import shown, told
from tests.admin.outline import Outline, stumbles
from tests.admin.test_pages import Inline
from tests.attacks.test_markup import HOSTILE, MARK, Born
from tests.conftest import ON_SQLITE, TABLES

FIRST = "/admin/jobqueue/queue/"


def steering(verb, scope, name):
    return f"{FIRST}{verb}/?{urlencode({'scope': scope, 'name': name})}"


@pytest.fixture
def keeper(queue, sign_in):
    """Someone who may pause queues."""
    return sign_in("view_job", "pause_queue")


@pytest.fixture
def reader(queue, sign_in):
    """Someone who may look, and nothing else."""
    return sign_in("view_job")


def row_of(answer, name, queue=None):
    """What the page shows of one queue, or of one type in a queue."""
    rows = answer.context["queues"] if queue is None else answer.context["types"]
    (found,) = [row for row in rows if row.name == name and queue in (None, row.queue)]
    return found


# What is shown


def test_each_queue_is_shown_with_its_figures(queue, operator):
    put_all(queue, *(draft(queue="mail") for _ in range(3)), draft(queue="mail", delay=timedelta(hours=1)))
    take_one(queue)
    old = put(queue, "greet", queue="mail")
    Job.objects.using(queue.alias).filter(pk=old).update(scheduled_at=SYSTEM.now() - timedelta(minutes=5))
    answer = operator.client.get(FIRST)
    mail = row_of(answer, "mail")
    assert (mail.waiting, mail.due, mail.running) == ("4", "3", "1")
    assert "5 minutes" in mail.oldest.replace("\xa0", " ")
    resize, greet = row_of(answer, "resize", "mail"), row_of(answer, "greet", "mail")
    assert [(one.waiting, one.due, one.running) for one in (resize, greet)] == [("3", "2", "1"), ("1", "1", "0")]


def test_a_queue_with_a_capacity_shows_how_full_it_is_and_what_it_has_shed(queue, reader, settings):
    settings.JOBQUEUE = settings.JOBQUEUE | {"QUEUES": {"images": {"capacity": 4, "when_full": "shed"}}}
    put_all(queue, *(draft("resize_image", queue="images") for _ in range(3)), draft("send_welcome"))
    queue.gauges.add_shed("images", 1_234)
    answer = reader.client.get(FIRST)
    assert row_of(answer, "images").capacity == "75 % of 4"
    assert row_of(answer, "images").shed.startswith("1,234 jobs shed, the last ")
    assert (row_of(answer, "default").capacity, row_of(answer, "default").shed) == ("", "")
    text = reader.client.get(f"{FIRST}one/?queue=images").content.decode()
    assert "75 % of 4" in text
    assert "1,234 jobs shed" in text


def test_a_fair_queue_shows_who_has_which_share(queue, reader, settings):
    settings.JOBQUEUE = settings.JOBQUEUE | {"QUEUES": {"images": {"fair": "tenant", "weights": {"acme": 3}}}}
    put_all(queue, *(draft(queue="images", fair_key=key) for key in ["acme", "acme", "<b>", ""]))
    options = {"images": QueueOptions(fair="tenant", weights={"acme": 3.0})}
    take(queue, 2, queue_options=options, entries=("images",))
    page = f"{FIRST}one/?queue=images"
    cells = [
        [cell.strip() for cell in re.findall("<t[hd][^>]*>(.*?)</t[hd]>", row)]
        for row in re.findall("<tr><th.*?</tr>", _html(reader, page))
    ]
    cells = [row for row in cells if row[0] != "Value"]
    assert cells[:1] == [["acme", "3", "1", "1", "1", "50 %"]]
    assert ["without a value", "1", "1", "0", "0", "0 %"] in cells or ["&lt;b&gt;", "1", "1", "0", "0", "0 %"] in cells
    assert "<b>" not in _html(reader, page)
    assert "Turns" not in _html(reader, f"{FIRST}one/?queue=mail")


def _html(reader, page):
    return reader.client.get(page).content.decode()


def test_the_last_hour_is_told_from_the_figures(queue, operator):
    put(queue, queue="images")
    now = queue.now()
    queue.metrics.add(
        now, [Tally("images", "resize", completed=1_999, dead_lettered=1), Tally("images", "greet", stopped=1)]
    )
    answer = operator.client.get(FIRST)
    assert row_of(answer, "images").ended == "1,999 completed, 99.9 %"
    assert row_of(answer, "resize", "images").ended == "1,999 completed, 99.9 %"
    assert row_of(answer, "default").ended == ""
    put(queue, "greet", queue="images")
    assert row_of(operator.client.get(FIRST), "greet", "images").ended == "0 completed"


def test_queues_and_types_without_jobs_are_shown_where_the_code_or_a_pause_names_them(queue, operator):
    queue.operator.pause(Scope.QUEUE, "closed", "stocktaking")
    queue.operator.pause(Scope.TYPE, "unheard_of")
    queue.workers.enlist(worker(queues=("served",)))
    answer = operator.client.get(FIRST)
    assert {"default", "images", "closed", "served"} <= {row.name for row in answer.context["queues"]}
    assert {("resize_image", "images"), ("unheard_of", "")} <= {
        (row.name, row.queue) for row in answer.context["types"]
    }
    assert (row_of(answer, "closed").reason, row_of(answer, "closed").waiting) == ("stocktaking", "0")
    assert row_of(answer, "unheard_of", "").paused


def test_figures_lead_to_the_jobs_they_count(queue, operator):
    running, waiting = put(queue, queue="my mail"), put(queue, queue="my mail")
    assert take_one(queue).id == running
    put(queue, queue="other")
    row = row_of(operator.client.get(FIRST), "my mail")
    assert shown(operator.client.get(row.waiting_address)) == [waiting]
    assert shown(operator.client.get(row.running_address)) == [running]
    assert shown(operator.client.get(row.dead_address)) == []


# One queue, and pages that keep up


def test_the_page_of_a_queue_shows_what_waits_in_it_over_time(queue, reader):
    put_all(queue, *(draft(queue="my mail") for _ in range(3)), draft("greet", queue="other"))
    assert queue.metrics.sample(queue.now())
    answer = reader.client.get(row_of(reader.client.get(FIRST), "my mail").address)
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "Queue my mail" in page
    assert "waiting: at most 3, at last 3." in page
    assert "resize" in page
    assert "greet" not in page
    assert 'aria-current="true">Last hour' in page
    assert Inline(page).found == []
    assert stumbles(answer) == []


@ON_SQLITE
@pytest.mark.parametrize("name", ["nothing", *HOSTILE, "ä" * 300, "a\0b", "a\u202eb"])
def test_the_page_of_any_queue_can_be_asked_for(queue, reader, name):
    answer = reader.client.get(f"{FIRST}one/", {"queue": name, "window": "nonsense"})
    assert answer.status_code == 200
    assert Inline(answer.content.decode()).found == []


def test_a_queue_that_is_not_named_has_no_page(queue, reader):
    assert reader.client.get(f"{FIRST}one/").headers["Location"] == FIRST


@pytest.mark.parametrize("page", ["live/", "one/live/?queue=mail"])
def test_an_open_page_gets_what_has_changed(queue, reader, monkeypatch, page):
    put(queue, queue="mail")
    moment = queue.now()
    monkeypatch.setattr(type(queue), "now", lambda self: moment)
    first = reader.client.get(FIRST + page)
    assert "no-store" in first.headers["Cache-Control"]
    known = ",".join(part["digest"] for part in first.json()["parts"].values())
    joint = "&" if "?" in page else "?"
    again = reader.client.get(f"{FIRST}{page}{joint}known={known}").json()["parts"]
    assert again == {}
    put(queue, queue="mail")
    later = reader.client.get(f"{FIRST}{page}{joint}known={known}").json()["parts"]
    assert "types" in later
    assert reader.client.post(FIRST + page).status_code == 405


@pytest.mark.parametrize("page", ["live/", "one/?queue=mail", "one/live/?queue=mail"])
def test_the_pages_of_queues_take_the_permission_to_see_jobs(queue, sign_in, page):
    assert sign_in("pause_queue").client.get(FIRST + page).status_code == 403
    assert b"Pause<span" not in sign_in("view_job").client.get(FIRST + page).content


def test_a_backlog_without_a_live_worker_is_told_in_words(queue, operator):
    put(queue, queue="mail")

    def troubles():
        answer = operator.client.get(FIRST)
        return row_of(answer, "mail").troubles[:1], row_of(answer, "resize", "mail").troubles[:1]

    assert troubles() == (["No worker is up."], ["No worker is up."])
    queue.workers.enlist(worker("a", queues=("other",), types=("resize",)))
    assert troubles() == (["No live worker serves this queue."], ["No live worker serves this queue."])
    queue.workers.enlist(worker("b", queues=("mail",), types=("greet",)))
    assert troubles() == (["No live worker for this type: resize."], ["No live worker for this type."])
    queue.workers.enlist(worker("c", types=("resize",), state=WorkerState.STOPPING))
    assert troubles()[1] == ["The workers that could run these jobs are quiet or stopping."]
    queue.workers.enlist(worker("d", types=("resize",)))
    assert row_of(operator.client.get(FIRST), "mail").troubles == []
    Worker.objects.using(queue.alias).update(seen_at=SYSTEM.now() - timedelta(hours=1))
    assert troubles() == (["No worker is up."], ["No worker is up."])


def test_a_type_that_waits_for_another_release_says_so(queue, operator):
    put(queue, "unheard_of")
    queue.workers.enlist(worker(types=("unheard_of",)))
    answer = operator.client.get(FIRST)
    assert row_of(answer, "unheard_of", "default").troubles == ["This release has no handler for this type."]


def test_depths_stop_at_the_cap(queue, operator, monkeypatch):
    monkeypatch.setattr(queue_rows, "depths", lambda: queue.metrics.depths(cap=2))
    put_all(queue, *(draft("resize", queue="mail") for _ in range(3)), draft("greet", queue="mail"))
    put_all(queue, *(draft(queue="other", delay=timedelta(hours=1)) for _ in range(3)))
    mail, other = (row_of(operator.client.get(FIRST), name) for name in ("mail", "other"))
    assert (mail.waiting, mail.due) == ("3+", "3+")
    assert (other.waiting, other.due) == ("2+", "0")


def test_the_page_costs_as_many_queries_however_many_queues_there_are(queue, operator):
    counts = []
    for number in range(2):
        put_all(queue, *(draft(queue=f"queue-{number}-{one}") for one in range(20 * number + 1)))
        with CaptureQueriesContext(connections[queue.alias]) as queries:
            assert operator.client.get(FIRST).status_code == 200
        counts.append(len([one for one in queries if "job_queue" in one["sql"]]))
    assert counts[0] == counts[1]
    assert counts[0] <= 20


# Pausing


def test_a_paused_queue_is_left_alone_by_claims_until_it_is_resumed(queue, keeper):
    held, free = put(queue, queue="mail"), put(queue, queue="other")
    answer = keeper.client.post(steering("pause", "queue", "mail"), {"why": "the provider is down"}, follow=True)
    assert answer.redirect_chain == [(FIRST, 302)]
    assert told(answer) == [
        "The queue mail is paused. Running jobs continue, and no more jobs are taken from the queue."
    ]
    assert [claim.id for claim in take(queue)] == [free]
    (pause,) = queue.operator.pauses()
    assert (pause.scope, pause.name, pause.reason) == (Scope.QUEUE, "mail", "the provider is down")
    page = keeper.client.get(FIRST).content.decode()
    assert "the provider is down" in page
    answer = keeper.client.post(steering("resume", "queue", "mail"), {"why": ""}, follow=True)
    assert told(answer) == ["The queue mail is resumed."]
    assert [claim.id for claim in take(queue)] == [held]


def test_a_paused_type_is_left_alone_in_every_queue(queue, keeper):
    put_all(queue, draft("greet"), draft("greet", queue="mail"))
    free = put(queue, queue="mail")
    keeper.client.post(steering("pause", "type", "greet"), {"why": "wrong words"})
    assert [claim.id for claim in take(queue)] == [free]
    answer = keeper.client.get(FIRST)
    assert [row.reason for row in answer.context["types"] if row.name == "greet"] == ["wrong words"] * 2
    keeper.client.post(steering("resume", "type", "greet"))
    assert len(take(queue)) == 2


def test_what_a_pause_and_its_end_mean_is_told_before(queue, keeper):
    put_all(queue, draft(queue="mail"), draft(queue="mail", delay=timedelta(hours=1)), draft())
    page = keeper.client.get(steering("pause", "queue", "mail"))
    assert (page.context["sum"].queued, page.context["sum"].due) == ("2", "1")
    assert "no more jobs from the queue <strong><bdi>mail</bdi></strong>" in page.content.decode()
    queue.operator.pause(Scope.QUEUE, "mail", "the provider is down")
    page = keeper.client.get(steering("resume", "queue", "mail")).content.decode()
    assert "the provider is down" in page
    assert "Due jobs start at once" in page


def test_a_pause_needs_a_reason_and_a_short_one(queue, keeper):
    for why in ("", "  ", "x" * 501, "a\0b", "a\nb", "a\u202eb"):
        answer = keeper.client.post(steering("pause", "queue", "mail"), {"why": why})
        assert (answer.status_code, bool(answer.context["form"].errors)) == (200, True)
    assert queue.operator.pauses() == []
    assert not LogEntry.objects.exists()


def test_pausing_twice_keeps_the_first_reason_and_resuming_twice_does_nothing(queue, keeper):
    first = steering("pause", "queue", "mail")
    keeper.client.post(first, {"why": "first"}, follow=True)
    assert told(keeper.client.post(first, {"why": "second"}, follow=True)) == [
        "The queue mail was already paused, and keeps its first reason."
    ]
    assert [one.reason for one in queue.operator.pauses()] == ["first"]
    keeper.client.post(steering("resume", "queue", "mail"), follow=True)
    answer = keeper.client.post(steering("resume", "queue", "mail"), follow=True)
    assert told(answer) == ["The queue mail was not paused."]
    assert LogEntry.objects.count() == 2


def test_who_paused_what_and_why_is_in_the_log_and_on_the_page(queue, keeper):
    keeper.client.post(steering("pause", "queue", "mail"), {"why": "the provider is down"})
    keeper.client.post(steering("resume", "queue", "mail"), {"why": "it is up again"})
    entries = LogEntry.objects.order_by("pk").values_list(
        "content_type__model", "object_id", "object_repr", "change_message", "user__username"
    )
    who = keeper.user.username
    assert list(entries) == [
        ("queue", "mail", "queue mail", "Paused: the provider is down", who),
        ("queue", "mail", "queue mail", "Resumed: it is up again", who),
    ]
    page = keeper.client.get(FIRST).content.decode().split('id="jq-changes"')[1]
    assert page.index("Resumed: it is up again") < page.index("Paused: the provider is down")
    assert who in page
    assert keeper.client.get(reverse("admin:index")).status_code == 200


def test_a_name_that_no_queue_can_have_is_refused_in_words(queue, keeper):
    answer = keeper.client.post(steering("pause", "queue", "a b"), {"why": "x"}, follow=True)
    assert "must be letters" in told(answer)[0]
    assert queue.operator.pauses() == []


@pytest.mark.parametrize(("scope", "name"), [("job", "x"), ("", ""), ("queue", "\0"), ("type", "x" * 101)])
def test_an_address_that_means_nothing_is_refused(keeper, scope, name):
    for verb in ("pause", "resume"):
        assert keeper.client.get(steering(verb, scope, name)).status_code == 400
        assert keeper.client.post(steering(verb, scope, name), {"why": "x"}).status_code == 400


# Who may


@ON_SQLITE
@pytest.mark.parametrize("verb", ["pause", "resume"])
@pytest.mark.parametrize(
    "codenames",
    [(), ("view_job",), ("pause_queue",), ("view_job", "retry_job", "move_job"), ("view_job", "pause_queue")],
)
def test_a_queue_is_paused_by_those_alone_who_may(queue, sign_in, verb, codenames):
    if verb == "resume":
        queue.operator.pause(Scope.QUEUE, "letters", "before")
    visitor = sign_in(*codenames)
    sees, may = "view_job" in codenames, set(codenames) >= {"view_job", "pause_queue"}
    page = visitor.client.get(FIRST)
    assert page.status_code == (200 if sees else 403)
    if sees:
        assert [one for one in Outline(page).buttons if "queue" in one or "type" in one] == [] or may
        assert bool([one for one in Outline(page).buttons if one.endswith("queue letters")]) == (
            may and verb == "resume"
        )
    address = steering(verb, "queue", "letters")
    assert visitor.client.get(address).status_code == (200 if may else 403)
    assert visitor.client.post(address, {"why": "x"}).status_code == (302 if may else 403)
    assert bool(queue.operator.pauses()) == (may == (verb == "pause"))


def test_nobody_else_gets_in(queue, sign_in):
    for client in (Client(), sign_in("view_job", "pause_queue", is_staff=False).client):
        for address in (FIRST, steering("pause", "queue", "mail")):
            assert reverse("admin:login") in client.get(address).headers["Location"]
        answer = client.post(steering("pause", "queue", "mail"), {"why": "x"})
        assert reverse("admin:login") in answer.headers["Location"]
    assert queue.operator.pauses() == []


def test_looking_changes_nothing(queue, keeper):
    queue.operator.pause(Scope.QUEUE, "mail", "before")
    put(queue)

    def everything():
        return [list(table.objects.using(queue.alias).order_by("pk").values()) for table in TABLES]

    before = everything()
    addresses = [FIRST, *(steering(verb, "queue", name) for verb in ("pause", "resume") for name in ("mail", "other"))]
    assert [keeper.client.get(address).status_code for address in addresses] == [200] * 5
    assert keeper.client.put(steering("pause", "queue", "x")).status_code == 405
    assert everything() == before
    assert not LogEntry.objects.exists()


def test_nothing_is_paused_without_the_pages_token(queue, keeper):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(keeper.user)
    address = steering("pause", "queue", "mail")
    assert strict.post(address, {"why": "x"}).status_code == 403
    assert queue.operator.pauses() == []
    token = str(strict.get(address).context["csrf_token"])
    assert strict.post(address, {"why": "x", "csrfmiddlewaretoken": token}).status_code == 302
    assert len(queue.operator.pauses()) == 1


def test_there_are_no_pages_for_forms(sign_in):
    root = sign_in(is_superuser=True)
    for page in ("add/", "1/change/", "1/delete/", "1/history/"):
        assert root.client.get(f"{FIRST}{page}").status_code == 404


# How it reads


@ON_SQLITE
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_no_page_of_queues_gets_an_element_from_data(queue, keeper, text):
    short = text[:90]
    put(queue, short, queue=f"\x1b{short[:80]}")
    put(queue, short, queue=short)
    queue.operator.pause(Scope.QUEUE, short, text)
    queue.operator.pause(Scope.TYPE, short, text)
    queue.workers.enlist(worker(short, types=("resize",)))
    answers = [keeper.client.get(FIRST)]
    answers += [keeper.client.get(steering(verb, "queue", short)) for verb in ("pause", "resume")]
    answers += [keeper.client.post(steering("resume", "type", short), {"why": text[:500]}, follow=True)]
    assert [answer.status_code for answer in answers] == [200] * 4
    assert [Born(answer.content.decode()).found for answer in answers] == [[]] * 4
    assert all(MARK in answer.content.decode() for answer in answers)


def test_pages_of_queues_read_well_and_would_do_under_a_strict_policy(queue, keeper):
    put(queue, queue="mail")
    keeper.client.post(steering("pause", "queue", "mail"), {"why": "x"})
    answers = [
        keeper.client.get(FIRST),
        *(keeper.client.get(steering(verb, "queue", "mail")) for verb in ("pause", "resume")),
    ]
    answers.append(keeper.client.post(steering("pause", "queue", "mail"), {"why": ""}))
    assert [stumbles(answer) for answer in answers] == [[]] * 4
    assert [Inline(answer.content.decode()).found for answer in answers] == [[]] * 4
    assert answers[0].content.decode().split('id="content-main"')[1].count("<table") == 3


def test_the_log_is_that_of_queues_alone(queue, keeper, operator, job_in):
    operator.press("retry", job_in("dead_letter"))
    page = keeper.client.get(FIRST)
    assert list(page.context["changes"]) == []


def test_a_warning_stays_one_line_however_many_types_nobody_runs(queue, operator):
    put_all(queue, *(draft(f"type-{number:02}", queue="mail") for number in range(34)))
    queue.workers.enlist(worker(types=("resize",)))
    (trouble,) = row_of(operator.client.get(FIRST), "mail").troubles
    assert trouble == "No live worker for 34 types: type-00, type-01, type-02 and 31 more."


def test_times_have_one_format(queue, keeper):
    keeper.client.post(steering("pause", "queue", "mail"), {"why": "the provider is down"})
    when = LogEntry.objects.get().action_time
    assert str(display.at(when)) in keeper.client.get(FIRST).content.decode()
