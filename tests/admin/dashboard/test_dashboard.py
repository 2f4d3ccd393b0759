"""Tests of the dashboard: permissions, correct metrics, warnings, and updates of an open page."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import timedelta
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import pytest
from django.contrib import admin
from django.contrib.auth.models import AnonymousUser
from django.db import connections
from django.template import Context, Template
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import resolve, reverse
from django.utils import translation
from django.utils.functional import Promise

from jobqueue.admin.dashboard import panels, snapshot
from jobqueue.admin.dashboard import warnings as warned
from jobqueue.models import Dashboard
from jobqueue.observe.health import observation
from jobqueue.observe.health.workers import PATIENCE
from jobqueue.policy.histogram import buckets
from jobqueue.records import MOST_GROUPS, Lengths, Scope, Tally, WorkerRecord, WorkerState
from jobqueue.records.worker import SILENT_FOR
from jobqueue.testing import VirtualClock
from jobqueue.testing.clock import NOON
from jobqueue.testing.contract.harness import draft, put, put_all, take
from tests.admin.conftest import ALL, shown
from tests.admin.outline import Outline, stumbles
from tests.admin.test_pages import Inline
from tests.attacks.test_markup import HOSTILE, MARK, SHORT, Born
from tests.conftest import ON_SQLITE

PAGE = "/admin/jobqueue/dashboard/"
LIVE = f"{PAGE}live/"
APP = "/admin/jobqueue/"
WINDOWS = ("hour", "day", "week")
PARTS = ["findings", "now", "window", "throughput", "depth", "waited", "ran", "oldest", "types", "queues"]
HOUR = timedelta(hours=1)
SCRIPTS = ["attention.js", "dashboard.js"]
BADGE = f"{PAGE}attention/"


@pytest.fixture(autouse=True)
def clock(queue, monkeypatch):
    """The moment it is: no stretch of time ends while a test looks."""
    monkeypatch.setattr(queue, "clock", VirtualClock(NOON + timedelta(minutes=34, seconds=30)))
    return queue.clock


@pytest.fixture(autouse=True)
def types(monkeypatch):
    """The types that the tests use, as if this release had handlers for them."""
    monkeypatch.setattr(observation, "registry", SimpleNamespace(names={"resize", "greet", "rare"}))


@pytest.fixture
def reader(queue, sign_in):
    """Someone who may look, and nothing else."""
    return sign_in("view_job")


@pytest.fixture
def enlist(queue):
    """A function that enlists a worker."""

    def make(name="one", **values):
        about = {"host": "host", "pid": 1, "version": "0.1.0", "started_at": queue.now(), "seen_at": queue.now()}
        room = {"processes": 1, "slots": 10, "types": ("resize", "greet")}
        queue.workers.enlist(WorkerRecord(**{"owner": f"host:1:{name}", "name": name, **about, **room, **values}))

    return make


def tally(queue, ago=timedelta(0), job_type="resize", place="default", waited=(), ran=(), **counts):
    """Note what happened so long ago."""
    took = {name: Lengths(Counter(buckets(some)), sum(some)) for name, some in (("waited", waited), ("ran", ran))}
    one = Tally(place, job_type, **counts, **took)
    assert queue.metrics.add(queue.now() - ago, [one])


def part(answer, name):
    """The markup of one part, read as XML."""
    body = {one.name: one.body for one in answer.context["panels"]}[name]
    return ElementTree.fromstring(f"<div>{body}</div>")  # noqa: S314 - our own


def words(element):
    return " ".join("".join(element.itertext()).split())


def tiles(answer, name="now"):
    """Each figure by its label, with what is said below it."""
    found = [tile for tile in part(answer, name).iter("div") if tile.find("dt") is not None]
    return {words(tile.find("dt")): words(tile.find("dd")) for tile in found}


def warnings(answer):
    return [words(one) for one in part(answer, "findings").iter("li")]


def table(answer, name):
    """The rows of a table, by what they are called."""
    rows = [row for row in part(answer, name).iter("tr") if row.find("td") is not None]
    return {words(row.find("th")): [words(cell) for cell in row.findall("td")] for row in rows}


# Who may


@pytest.mark.parametrize("address", [PAGE, LIVE, BADGE])
def test_the_dashboard_is_for_those_who_may_view_jobs(queue, sign_in, address):
    everything_else = [name for name in ALL if name != "view_job"]
    assert sign_in("view_job").client.get(address).status_code == 200
    assert sign_in(*everything_else).client.get(address).status_code == 403
    assert sign_in().client.get(address).status_code == 403
    assert sign_in("view_job", is_staff=False).client.get(address).status_code == 302
    assert reverse("admin:login") in Client().get(address).headers["Location"]


def test_nobody_adds_changes_or_deletes_a_dashboard(queue, sign_in, rf_for):
    tally(queue, completed=1)
    visitor = sign_in(is_superuser=True)
    entry = admin.site.get_model_admin(Dashboard)
    request = rf_for(visitor.user)
    assert entry.get_model_perms(request) == {"add": False, "change": False, "delete": False, "view": True}
    key = Dashboard.objects.using(queue.alias).first().pk
    for end in ("add/", f"{key}/change/", f"{key}/delete/", f"{key}/history/", f"{key}/"):
        assert visitor.client.get(PAGE + end).status_code == 404
        assert visitor.client.post(PAGE + end, {"completed": 7}).status_code == 404
    assert [visitor.client.post(one).status_code for one in (PAGE, LIVE)] == [405, 405]


@pytest.fixture
def rf_for():
    """A function that makes a request of a user for the app's page."""

    def make(user):
        request = RequestFactory().get(APP)
        request.user, request.resolver_match = user, resolve(APP)
        return request

    return make


TAG = "{% load jobqueue_dashboard %}{% dashboard %}"


def test_the_apps_page_shows_it_to_whom_may_see_it_alone(queue, reader, sign_in, rf_for):
    page = reader.client.get(APP).content.decode()
    assert page.index('id="jq-board"') < page.index("model-dashboard")
    for user in (sign_in(*(name for name in ALL if name != "view_job")).user, AnonymousUser()):
        assert Template(TAG).render(Context({"request": rf_for(user)})).strip() == ""
    assert 'id="jq-board"' in Template(TAG).render(Context({"request": rf_for(reader.user)}))


def test_a_site_that_has_no_dashboard_shows_none(queue, reader, rf_for):
    request = rf_for(reader.user)
    request.resolver_match.func.admin_site = admin.AdminSite("other")
    try:
        assert Template(TAG).render(Context({"request": request})).strip() == ""
    finally:
        request.resolver_match.func.admin_site = admin.site


# Whether it is a page


@ON_SQLITE
@pytest.mark.parametrize("address", [PAGE, APP])
@pytest.mark.parametrize("window", WINDOWS)
def test_a_page_is_whole_and_would_do_under_a_strict_policy(queue, reader, enlist, address, window):
    put(queue)
    put(queue, "rare")
    enlist()
    queue.operator.pause(Scope.QUEUE, "default", "the printer burns")
    tally(queue, completed=3, retried=1, dead_lettered=1, stopped=1, lost=1, waited=[0.01, 200], ran=[1.5])
    assert queue.metrics.sample(queue.now())
    answer = reader.client.get(address, {"window": window})
    assert answer.status_code == 200
    assert Inline(answer.content.decode()).found == []
    assert stumbles(answer) == []
    assert re.findall(r'data-jq-part="(\w+)"', answer.content.decode()) == PARTS
    assert Outline(answer).headings.count(2) == len(PARTS)
    assert re.findall(r'<script src="/static/jobqueue/([\w.]+)" defer>', answer.content.decode()) == SCRIPTS
    assert answer.content.decode().count("jobqueue/charts.css") == 1


def test_without_its_script_a_page_can_be_reloaded_and_nothing_else_is_offered(queue, reader):
    answer = reader.client.get(PAGE, {"window": "day", "type": "resize"})
    page = answer.content.decode()
    assert re.search(r'id="jq-reload" href="\?window=day&amp;type=resize"', page)
    assert re.search(r'<button type="button" class="button" id="jq-pause" hidden>', page)
    assert Outline(answer).own_posts == []


@pytest.mark.parametrize("address", [PAGE, APP, LIVE])
def test_the_same_number_of_queries_serves_any_number_of_rows(queue, reader, enlist, address):
    counts = []
    for number in (1, 12):
        for one in range(number):
            put_all(queue, draft(f"kind{number}-{one}", queue=f"queue{number}-{one}"), draft("resize"))
            tally(queue, timedelta(minutes=one), f"kind{number}-{one}", f"queue{number}-{one}", completed=1, ran=[1])
            enlist(f"{number}-{one}")
            queue.operator.pause(Scope.QUEUE, f"queue{number}-{one}")
        with CaptureQueriesContext(connections["default"]) as first:
            if queue.alias == "default":
                assert reader.client.get(address).status_code == 200
            else:
                with CaptureQueriesContext(connections[queue.alias]) as second:
                    assert reader.client.get(address).status_code == 200
        asked = [one["sql"] for one in (first if queue.alias == "default" else [*first, *second])]
        counts.append(len(asked))
        assert not [sql for sql in asked if "DISTINCT" in sql]
    assert counts[0] == counts[1]
    # Postgres is told how to read each sum, and asked how far.
    assert counts[0] <= (30 if queue.alias == "default" else 66)


# What it shows


def test_the_figures_of_now_are_right(queue, reader, enlist, job_in):
    job_in("dead_letter")
    put_all(queue, draft(), draft("greet"), draft("greet"))
    assert len(take(queue, 2)) == 2
    put_all(queue, draft(scheduled_at=queue.now() + HOUR), draft(scheduled_at=queue.now() - timedelta(minutes=7)))
    enlist(busy=2)
    enlist("two", slots=5, busy=1, queues=("images",))
    enlist("old", types=())
    found = tiles(reader.client.get(PAGE))
    assert found == {
        "Queued": "3 2 due, 1 later",
        "Oldest due job": "7 minutes",
        "In progress": "2",
        "Dead letters": "1",
        "Workers alive": "3 3 of 25 slots busy",
    }


def test_a_silent_worker_is_not_counted(reader, enlist, clock):
    enlist(busy=2)
    clock.advance(SILENT_FOR)
    assert tiles(reader.client.get(PAGE))["Workers alive"] == "0 0 of 0 slots busy"


@pytest.mark.parametrize("in_part", [False, True])
def test_dead_letters_are_counted_to_a_cap_and_lead_to_their_errors(queue, reader, job_in, monkeypatch, in_part):
    if in_part:  # there are more queues and types than are counted
        monkeypatch.setattr(snapshot, "CAP", 2)
        monkeypatch.setattr(observation, "MOST_GROUPS", 1)
    else:
        counted = type(queue.health).dead_letters
        monkeypatch.setattr(type(queue.health), "dead_letters", lambda self, *_caps: counted(self, cap=2))
    ids = [job_in("dead_letter"), job_in("dead_letter")]
    assert tiles(reader.client.get(PAGE))["Dead letters"] == "2"
    job_in("dead_letter")
    answer = reader.client.get(PAGE, {"type": "resize"})
    assert tiles(answer)["Dead letters"] == "2+"
    (link,) = [one.get("href") for one in part(answer, "now").iter("a") if "deadletter" in one.get("href")]
    (group,) = reader.client.get(link).context["found"]
    assert (group.type, group.count) == ("resize", "3")
    listed = shown(reader.client.get(group.list_address))
    assert set(ids) < set(listed)
    assert len(listed) == 3


def test_the_figures_of_a_window_are_right(queue, reader):
    counts = {"completed": 197, "dead_lettered": 1, "retried": 20, "stopped": 2, "lost": 3}
    tally(queue, **counts, waited=[0.5] * 100, ran=[2.0] * 98 + [40.0] * 2)
    tally(queue, timedelta(hours=2), completed=1000)
    answer = reader.client.get(PAGE)
    found = tiles(answer, "window")
    assert {name: said for name, said in found.items() if "p50" not in name} == {
        "Completed": "197 3.3 per minute",
        "Retried": "20 0.33 per minute",
        "Dead letters": "1 0.017 per minute",
        "Cancelled": "2 0.033 per minute",
        "Lost": "3 0.05 per minute",
        "Success rate": "99.4 %",
    }
    assert abs(_length(found["Waited, p50"].split(" p95")[0]) - 0.5) < 0.05
    assert abs(_length(found["Ran, p50"].split(" p95")[0]) - 2) < 0.2
    assert abs(_length(found["Ran, p50"].split("p99 ")[1]) - 40) < 4
    assert tiles(reader.client.get(PAGE, {"window": "day"}), "window")["Completed"].startswith("1,197 ")


def _length(text):
    number, unit = text.split()
    return float(number) * {"ms": 0.001, "s": 1, "min": 60}[unit]


@pytest.mark.parametrize("window", WINDOWS)
def test_the_charts_have_the_figures_of_each_stretch(queue, reader, window):
    minutes = {"hour": 1, "day": 10, "week": 60}[window]
    put(queue)
    assert queue.metrics.sample(queue.now())
    tally(queue, completed=30 * minutes, dead_lettered=minutes, waited=[3.0], ran=[0.25])
    tally(queue, timedelta(minutes=2 * minutes), retried=5 * minutes)
    answer = reader.client.get(PAGE, {"window": window})
    ended = list(table(answer, "throughput").values())
    assert len(ended) == {"hour": 60, "day": 144, "week": 168}[window]
    assert ended[0] == ["30", "0", "1", "0", "0"]
    assert ended[2] == ["0", "5", "0", "0", "0"]
    assert ended[1] == ended[3] == ended[-1] == ["0"] * 5
    depth = list(table(answer, "depth").values())
    assert depth[0] == ["1", "0"]
    assert depth[1:] == [["-", "-"]] * (len(ended) - 1)
    assert sum(row != ["-"] * 3 for row in table(answer, "waited").values()) == 1
    for name in ("throughput", "depth", "waited", "ran", "oldest"):
        assert part(answer, name).find("figure/svg[@role='img']") is not None


def test_each_type_and_queue_has_a_row_and_leads_to_its_own_figures(queue, reader):
    put(queue, "rare", queue="images")
    tally(queue, completed=3, dead_lettered=1, ran=[1.0, 1.0])
    tally(queue, job_type="greet", completed=9)
    answer = reader.client.get(PAGE, {"window": "day"})
    assert list(table(answer, "types")) == ["greet", "resize", "rare"]
    assert table(answer, "types")["resize"] == ["0", "0", "3", "0", "1", "0", "0", "75.0 %", "1 s"]
    assert table(answer, "types")["rare"] == ["1", "0", "0", "0", "0", "0", "0", "-", "-"]
    assert table(answer, "queues")["default"][2:5] == ["12", "0", "1"]
    assert table(answer, "queues")["images"][0] == "1"
    (link,) = [one.get("href") for one in part(answer, "types").iter("a") if one.text == "greet"]
    assert parse_qs(urlsplit(link).query) == {"window": ["day"], "type": ["greet"]}
    narrowed = reader.client.get(link)
    assert tiles(narrowed, "window")["Completed"].startswith("9 ")
    assert table(narrowed, "queues")["default"][2] == "9"


def test_a_type_or_a_queue_narrows_everything(queue, reader, enlist, job_in):
    job_in("dead_letter")
    put_all(queue, draft("rare", queue="images"), draft("rare"), draft("greet", queue="images"))
    tally(queue, job_type="rare", place="images", completed=2)
    tally(queue, job_type="greet", place="images", completed=3)
    queue.operator.pause(Scope.QUEUE, "images")
    queue.operator.pause(Scope.TYPE, "greet")
    enlist(types=("rare",), queues=("images",))
    enlist("two", types=("greet",))
    answer = reader.client.get(PAGE, {"type": "rare", "queue": "images"})
    assert tiles(answer)["Queued"].startswith("1 ")
    assert tiles(answer)["Dead letters"] == "0"
    assert tiles(answer)["Workers alive"].startswith("1 ")
    assert tiles(answer, "window")["Completed"].startswith("2 ")
    assert [one for one in warnings(answer) if "greet" in one] == []
    assert list(table(answer, "types")) == ["rare"]
    assert re.findall(r'<option value="(\w+)" selected>', answer.content.decode()) == ["rare", "images"]
    only_queue = reader.client.get(PAGE, {"queue": "images"})
    assert tiles(only_queue)["Queued"].startswith("2 ")
    assert tiles(only_queue, "window")["Completed"].startswith("5 ")


def test_an_empty_database_has_a_page_without_a_warning(queue, reader):
    answer = reader.client.get(PAGE)
    assert warnings(answer) == []
    assert words(part(answer, "findings")) == "✓Nothing needs attention."
    assert tiles(answer)["Oldest due job"] == "-"
    assert tiles(answer, "window")["Success rate"] == "-"
    assert words(part(answer, "types")) == "No data."
    assert [words(part(answer, name).find(".//svg/desc")) for name in PARTS[3:8]] == [
        "No job ended.",
        "No data.",
        "No job was started.",
        "No job ended.",
        "No data.",
    ]


# What it warns of


def test_it_warns_that_no_worker_is_up(queue, reader, clock):
    put_all(queue, draft(), draft())
    assert warnings(reader.client.get(PAGE)) == []  # a deploy may restart the worker
    clock.advance(PATIENCE)
    answer = reader.client.get(PAGE)
    assert warnings(answer) == ["✕No worker is up: 2 jobs are due. Start a worker with manage.py runworker. Workers"]
    (link,) = part(answer, "findings").iter("a")
    assert reader.client.get(link.get("href")).status_code == 200


def test_jobs_that_are_not_due_yet_need_no_worker(queue, reader, clock):
    put(queue, delay=HOUR)
    assert warnings(reader.client.get(PAGE)) == []
    clock.advance(2 * HOUR)
    assert len(warnings(reader.client.get(PAGE))) == 1


def test_it_does_not_say_of_a_part_that_no_worker_is_up_while_one_is(queue, reader, enlist, clock):
    put(queue, "rare")
    enlist(types=("greet",))
    clock.advance(PATIENCE)
    answer = reader.client.get(PAGE, {"type": "rare"})
    (found,) = warnings(answer)
    assert found.startswith("✕No live worker takes jobs of type rare: 1 job waits. Deploy a worker")
    assert tiles(answer)["Workers alive"].startswith("0 ")


def test_it_warns_of_a_job_that_can_neither_be_run_nor_ended(queue, reader, enlist):
    stuck = put(queue)
    enlist(left_out={stuck: "invalid byte", "<b>": "<i>"})
    answer = reader.client.get(PAGE)
    first, *parts = warnings(answer)
    assert first.startswith("✕2 jobs can neither be run nor ended. Correct or delete such rows")
    assert set(parts) == {
        f"Job {stuck} can neither be run nor ended, and worker one leaves it out: invalid byte. Show it",
        "Job <b> can neither be run nor ended, and worker one leaves it out: <i>. Show it",
    }
    assert [stuck] in [
        shown(reader.client.get(one.get("href"))) for one in list(part(answer, "findings").iter("a"))[1:]
    ]


def test_it_warns_of_a_queue_and_a_type_that_no_live_worker_takes(queue, reader, enlist, clock):
    lonely = put(queue, "rare")
    put(queue, "rare", queue="images")
    put(queue, "greet", queue="images")
    put(queue, "resize")
    enlist(queues=("default",))
    enlist("leaving", types=("rare",), state=WorkerState.STOPPING)
    clock.advance(PATIENCE)
    answer = reader.client.get(PAGE)
    first, second = warnings(answer)
    assert first.startswith("✕No live worker serves the queue images: 2 jobs wait.")
    assert second.startswith("✕The workers that take jobs of type rare are quiet or stopping: 1 job waits.")
    first, second = (one.get("href") for one in part(answer, "findings").iter("a"))
    assert len(shown(reader.client.get(first))) == 2
    assert lonely in shown(reader.client.get(second))
    enlist("late", types=("rare", "greet"))
    assert warnings(reader.client.get(PAGE)) == []


def test_it_warns_of_what_is_paused_with_reason_and_since_when(queue, reader, enlist, clock):
    queue.operator.pause(Scope.QUEUE, "images", "the <disk> burns")
    queue.operator.pause(Scope.TYPE, "greet")
    clock.advance(2 * HOUR)
    enlist()
    answer = reader.client.get(PAGE)
    both, first, second = warnings(answer)
    assert both.startswith("!2 queues and types have been paused for up to 2 hours, and 0 jobs are due: images, greet.")
    since = "has been paused for 2 hours, since 2026-01-16 13:34:30 CET, and 0 jobs are due"
    assert first == f"The queue images {since}: the <disk> burns. Queues"
    assert second == f"The job type greet {since}. Queues"
    links = {one.get("href") for one in part(answer, "findings").iter("a")}
    assert links == {reverse("admin:jobqueue_queue_changelist")}


def test_it_warns_of_jobs_that_wait_for_long_unless_that_is_explained_already(queue, reader, enlist):
    enlist(types=("resize", "greet"))
    long_ago = queue.now() - timedelta(hours=3)
    late = put(queue, scheduled_at=long_ago)
    put(queue, "greet", scheduled_at=queue.now() - timedelta(minutes=59))
    put(queue, "resize", queue="closed", scheduled_at=long_ago)
    queue.operator.pause(Scope.QUEUE, "closed")
    put(queue, "rare", scheduled_at=long_ago)
    tally(queue, completed=1)  # or the queue would be stalled
    answer = reader.client.get(PAGE)
    told = [one for one in warnings(answer) if "has been due for" in one]
    assert len(told) == 1
    assert told[0].startswith("✕A job of type resize in the queue default has been due for 3 hours.")
    (link,) = [one.find("a").get("href") for one in part(answer, "findings").iter("li") if words(one) == told[0]]
    assert shown(reader.client.get(link)) == [late]


def test_one_cause_is_one_line_that_unfolds(queue, reader, monkeypatch):
    monkeypatch.setattr(warned, "PARTS_SHOWN", 2)
    for number in range(5):
        queue.operator.pause(Scope.QUEUE, f"queue{number}")
    answer = reader.client.get(PAGE)
    (line,) = part(answer, "findings").findall("ul/li")
    assert words(line).startswith("!5 queues and types have been paused for up to 0 seconds")
    assert words(line.find("details/summary")) == "Show all 5"
    assert len(line.findall("details/ul/li")) == 2
    assert words(line.find("details/p")) == "and 3 more"


def test_the_badge_counts_problems_and_not_notices(queue, reader, clock):
    queue.operator.pause(Scope.QUEUE, "images")
    assert reader.client.get(BADGE).json() == {"count": 0, "text": "0 problems need attention"}
    put(queue)
    clock.advance(PATIENCE)
    answer = reader.client.get(BADGE)
    assert answer.json() == {"count": 1, "text": "1 problem needs attention"}
    assert "no-store" in answer.headers["Cache-Control"]


# What is asked for


@ON_SQLITE
@pytest.mark.parametrize(
    "query",
    [
        *({"window": name} for name in ("year", "\0", "")),
        *({"type": name} for name in ("\0", "x" * 5_000, "%s%(x)s{}")),
        *({"queue": name} for name in ("a\0b", "'")),
        {"known": "\0" * 500},
        {"nonsense": "1"},
    ],
)
@pytest.mark.parametrize("address", [PAGE, LIVE, APP])
def test_nonsense_in_the_address_is_answered_sanely(queue, reader, address, query):
    tally(queue, completed=7)
    answer = reader.client.get(address, query)
    assert answer.status_code == 200
    if address != LIVE:
        named = {"type", "queue"} & set(query)
        assert tiles(answer, "window")["Completed"].startswith("0 " if named else "7 ")
        assert answer.context["asked"].window.name == "hour"


def test_a_window_can_be_bookmarked_and_says_which_it_is(queue, reader):
    answer = reader.client.get(PAGE, {"window": "week", "queue": "images"})
    page = answer.content.decode()
    assert re.findall(r'aria-current="true">([^<]+)<', page) == ["Last week"]
    links = re.findall(r'<a href="(\?window=\w+[^"]*)"(?: aria-current="true")?>Last', page)
    assert links == [f"?window={name}&amp;queue=images" for name in WINDOWS]
    assert 'name="window" value="week"' in page


@ON_SQLITE
@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_no_page_gets_an_element_or_an_attribute_from_a_name(queue, reader, enlist, number):
    text = HOSTILE[number]
    short = text[:SHORT]
    put(queue, short, queue=short, scheduled_at=queue.now() - timedelta(hours=2))
    queue.operator.pause(Scope.TYPE, short, text)
    tally(queue, job_type=short, place=short, completed=1, ran=[1.0])
    enlist(short)
    for query in ({}, {"type": short, "queue": short, "window": short}):
        for address in (PAGE, APP):
            answer = reader.client.get(address, query)
            assert MARK in answer.content.decode()
            assert Born(answer.content.decode()).found == []
        live = json.loads(reader.client.get(LIVE, query).content)
        bodies = "".join(one["html"] for one in live["parts"].values())
        assert MARK in bodies
        assert Born(bodies).found == []


# What an open page is sent


def test_an_open_page_is_sent_what_changed_alone(queue, reader, enlist, clock):
    enlist()
    page = reader.client.get(PAGE, {"window": "day"}).content.decode()
    address = re.search(r'data-jq-address="([^"]+)"', page)[1].replace("&amp;", "&")
    known = dict(re.findall(r'data-jq-part="(\w+)" data-jq-digest="(\w+)"', page))
    assert parse_qs(urlsplit(address).query) == {"window": ["day"]}
    assert list(known) == PARTS

    def ask():
        answer = reader.client.get(f"{address}&known={','.join(known.values())}")
        assert answer.headers["Content-Type"] == "application/json"
        assert "no-store" in answer.headers["Cache-Control"]
        return json.loads(answer.content)

    assert ask()["parts"] == {}
    put(queue)
    changed = ask()["parts"]
    assert set(changed) == {"now", "types", "queues"}
    assert "1 due, 0 later" in changed["now"]["html"]
    known |= {name: one["digest"] for name, one in changed.items()}
    assert ask()["parts"] == {}
    clock.advance(5)
    late = ask()
    assert late["at"] == "13:34:35"
    assert set(late["parts"]) == {"now"}
    assert "5 seconds" in late["parts"]["now"]["html"]


def test_who_knows_nothing_is_sent_everything_as_the_page_has_it(queue, reader):
    tally(queue, completed=5)
    answer = reader.client.get(PAGE)
    sent = json.loads(reader.client.get(LIVE).content)["parts"]
    assert list(sent) == PARTS
    assert {name: one["html"] for name, one in sent.items()} == {one.name: one.body for one in answer.context["panels"]}


# In which words


def test_nothing_is_translated_before_it_is_known_who_reads():
    assert all(isinstance(label, Promise) for label in panels.WINDOW_LABELS.values())
    assert all(isinstance(label, Promise) for _name, label in panels.OUTCOMES)


def test_numbers_are_written_as_the_reader_writes_them(queue, reader):
    tally(queue, completed=12_345)
    with translation.override("de"):
        answer = reader.client.get(PAGE)
    assert "12.345" in words(part(answer, "window"))


def test_running_jobs_are_counted_to_the_last_one_among_more_queues_than_are_listed(queue, reader):
    put_all(queue, *(draft(queue=f"queue-{number:03}") for number in range(20)))
    assert len(take(queue, 20)) == 20
    put_all(queue, *(draft(queue=f"a-queue-{number:03}", delay=HOUR) for number in range(MOST_GROUPS - 3)))
    answer = reader.client.get(PAGE)
    assert tiles(answer)["In progress"] == "20"
    assert tiles(reader.client.get(PAGE, {"queue": "queue-019"}))["In progress"] == "1"
