"""Tests of workers in the admin: the running ones, their jobs, and warnings."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.db import DatabaseError, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from jobqueue.admin.operations import worker_rows
from jobqueue.clock import SYSTEM
from jobqueue.models import Job, Worker
from jobqueue.records import Progress, WorkerRequest, WorkerState
from jobqueue.testing.contract.harness import draft, put, put_all, take, take_one
from jobqueue.testing.contract.ports.registering import worker
from jobqueue.version import __version__
from tests.admin.conftest import told
from tests.admin.outline import Outline, stumbles
from tests.admin.test_pages import Inline
from tests.attacks.test_markup import HOSTILE, MARK, Born
from tests.conftest import ON_SQLITE, TABLES

FIRST = "/admin/jobqueue/worker/"


def page_of(owner):
    return reverse("admin:jobqueue_worker_change", args=[quote(owner)])


def up(queue, owner="host:1:nonce", **values):
    """Enlist a worker that started an hour ago."""
    known = {"version": __version__, "started_at": SYSTEM.now() - timedelta(hours=1)}
    queue.workers.enlist(worker(owner, **{**known, **values}))
    return owner


def silent(queue, owner, seconds):
    """Have nothing heard of a worker for some seconds."""
    Worker.objects.using(queue.alias).filter(pk=owner).update(seen_at=SYSTEM.now() - timedelta(seconds=seconds))


def plain(text):
    return str(text).replace("\xa0", " ")


# The list


def test_a_worker_is_listed_with_all_that_is_known_of_it(queue, operator):
    up(queue, name="mail-1", host="web7", pid=4711, busy=3, queues=("mail", "sms"), types=("greet", "resize"))
    answer = operator.client.get(FIRST)
    (one,) = answer.context["workers"]
    assert (one.name, one.host, one.pid, one.version, one.slots) == ("mail-1", "web7", 4711, __version__, "0/20")
    assert (str(one.state), one.queues, one.types) == ("running", "mail, sms", "greet, resize")
    assert "seconds ago" in plain(one.seen)
    assert "1 hour" in plain(one.up)
    assert answer.context["notices"] == []
    assert page_of("host:1:nonce") in answer.content.decode()


def test_the_busy_slots_are_those_of_the_jobs_that_run_now_and_not_those_of_the_last_heartbeat(queue, operator):
    owner = up(queue, busy=7)
    put_all(queue, draft(), draft())
    take(queue, owner=owner)
    (one,) = operator.client.get(FIRST).context["workers"]
    assert one.slots == "2/20"
    assert operator.client.get(page_of(owner)).context["worker"].slots == "2/20"


def test_the_duties_are_listed_with_their_worker_and_the_last_failure(queue, operator):
    owner, hour = up(queue, name="mail-1"), timedelta(hours=1)
    queue.duties.begin("sample", owner, hour)
    queue.duties.end("sample", owner, hour, timedelta(seconds=1), "OSError: password=hunter2\nis wrong")
    answer = operator.client.get(FIRST)
    duties = answer.content.decode().partition("<h2>Duties</h2>")[2]
    assert "mail-1" in duties
    assert "sample" in duties
    assert "OSError" in duties
    assert "hunter2" not in duties


def test_states_are_told_in_words_and_a_worker_that_serves_all_queues_says_all(queue, operator):
    for owner, state in (("a", WorkerState.RUNNING), ("b", WorkerState.STOPPING), ("c", WorkerState.RUNNING)):
        up(queue, owner, state=state)
    silent(queue, "c", 95)
    found = {one.name: (str(one.state), one.queues) for one in operator.client.get(FIRST).context["workers"]}
    assert found == {"a": ("running", "all"), "b": ("stopping", "all"), "c": ("silent", "all")}


def test_many_types_are_listed_in_part_and_all_of_them_on_the_page(queue, operator):
    names = tuple(f"type-{number}" for number in range(8))
    up(queue, types=names)
    (one,) = operator.client.get(FIRST).context["workers"]
    assert one.types == "type-0, type-1, type-2, type-3, type-4 and 3 more"
    assert ", ".join(names) in operator.client.get(page_of("host:1:nonce")).content.decode()


def test_without_workers_the_page_says_what_to_do(operator):
    assert operator.client.get(FIRST).context["notices"] == ["No worker is up: start one with manage.py runworker."]


def test_workers_that_keep_dying_do_not_fill_the_page(queue, operator, monkeypatch):
    monkeypatch.setattr(worker_rows, "SHOWN", 2)
    for number in range(4):
        silent(queue, up(queue, f"w{number}"), 300 - number)
    answer = operator.client.get(FIRST)
    assert [one.name for one in answer.context["workers"]] == ["w3", "w2"]
    assert "There are more workers." in answer.content.decode()


# What does not fit


def test_different_versions_side_by_side_are_told(queue, operator):
    for owner, version in (("a", "1.0"), ("b", "1.0"), ("c", "1.1")):
        up(queue, owner, version=version)
    silent(queue, up(queue, "d", version="0.9"), 100)
    notices = operator.client.get(FIRST).context["notices"]
    assert notices[0] == ("The workers run different versions: 1.0 (2), 1.1 (1). Restart the outdated ones.")


def test_workers_of_another_version_than_the_page_are_told(queue, operator):
    up(queue, version="0.0.1")
    assert operator.client.get(FIRST).context["notices"] == [
        f"The workers run version 0.0.1, but the admin runs version {__version__}."
    ]


def test_a_silent_worker_says_when_its_leases_end(queue, operator):
    up(queue, "alive")
    up(queue, "dead", name="mail-1")
    put_all(queue, draft(), draft())
    claims = take(queue, owner="dead", lease=timedelta(seconds=90))
    assert len(claims) == 2
    silent(queue, "dead", 65)
    for address in (FIRST, page_of("dead")):
        (notice,) = operator.client.get(address).context["notices"]
        assert plain(notice).startswith("mail-1 has been silent for 1 minute: it died, or can't reach the database. ")
        assert "The leases of its 2 jobs end in 1 minute at the latest, at " in plain(notice)
    Job.objects.using(queue.alias).update(lease_until=SYSTEM.now() - timedelta(seconds=5))
    (notice,) = operator.client.get(page_of("dead")).context["notices"]
    assert "The leases of its 2 jobs have ended. A live worker will recover the jobs." in notice


def test_a_silent_worker_without_jobs_says_so(queue, operator):
    up(queue, "alive")
    silent(queue, up(queue, "dead"), 65)
    (notice,) = operator.client.get(FIRST).context["notices"]
    assert notice.endswith("It holds no jobs.")
    assert operator.client.get(page_of("alive")).context["notices"] == []


def test_jobs_of_workers_that_are_not_listed_are_told(queue, operator):
    up(queue, "alive")
    put_all(queue, draft(), draft(), draft())
    take(queue, 2, owner="stranger")
    take(queue, 1, owner="alive")
    assert operator.client.get(FIRST).context["notices"] == [
        "2 running jobs are held by workers that are not listed. The jobs are recovered when their leases end."
    ]


# One worker


def test_a_workers_page_shows_what_each_slot_runs(queue, operator):
    owner = up(queue, "web/7:1:a_b c", busy=2)
    put(queue, max_retries=5)
    claim = take_one(queue, owner=owner)
    queue.progress([Progress(claim.id, claim.fence, owner, '{"percent": 42.5, "note": "x"}')])
    Job.objects.using(queue.alias).update(started_at=SYSTEM.now() - timedelta(minutes=3))
    second = put(queue, "greet", queue="mail")
    assert take_one(queue, owner=owner).id == second
    queue.operator.cancel([second])
    put(queue)
    take_one(queue, owner="other")
    answer = operator.client.get(page_of(owner))
    first, other = answer.context["jobs"]
    assert (first["id"], first["type"], first["attempt"], first["asked_to_stop"]) == (claim.id, "resize", "1/5", False)
    assert (other["id"], other["queue"], other["asked_to_stop"], other["progress"]) == (second, "mail", True, "")
    assert "3 minutes" in plain(first["since"])
    assert "42.5 %" in first["progress"]
    assert "in " in first["lease"]
    page = answer.content.decode()
    assert reverse("admin:jobqueue_job_change", args=[claim.id]) in page
    assert page.count("asked to stop") == 1


def test_an_idle_worker_says_so(queue, operator):
    assert "No jobs are running." in operator.client.get(page_of(up(queue))).content.decode()


def test_very_many_jobs_of_one_worker_are_shown_in_part(queue, operator, monkeypatch):
    monkeypatch.setattr(worker_rows, "SHOWN", 2)
    put_all(queue, draft(), draft(), draft())
    take(queue, owner=up(queue, "me"))
    answer = operator.client.get(page_of("me"))
    assert len(answer.context["jobs"]) == 2
    assert "There are more jobs. Only the 2 longest-running ones are shown." in answer.content.decode()


@pytest.mark.parametrize(
    "report",
    [
        "7",
        '"half"',
        '{"percent": "x"}',
        '{"percent": 1e999}',
        '{"percent": -1}',
        '{"percent": true}',
        "[" * 1_500 + "]" * 1_500,
    ],
)
def test_a_report_of_another_form_harms_nothing(queue, operator, report):
    owner = up(queue)
    put(queue)
    claim = take_one(queue, owner=owner)
    with connections[queue.alias].cursor() as cursor:
        try:
            cursor.execute("UPDATE job_queue SET progress = %s WHERE id = %s", [report, claim.id])
        except DatabaseError:
            pytest.skip("the database takes no such JSON")
    answer = operator.client.get(page_of(owner))
    assert [job["progress"] for job in answer.context["jobs"]] == [""]


@pytest.mark.parametrize("said", [5, True, "greet", {"a": 1}, [1, None, ["x"]], ["\ud800"]])
@pytest.mark.parametrize("column", ["types", "queues"])
def test_what_another_program_says_a_worker_serves_harms_no_page(queue, operator, column, said):
    owner = up(queue)
    try:
        Worker.objects.using(queue.alias).filter(pk=owner).update(**{column: said})
    except DatabaseError:
        pytest.skip("the database takes no such JSON")
    for address in (FIRST, page_of(owner)):
        assert operator.client.get(address).status_code == 200


@pytest.mark.parametrize("owner", ["nobody", "\0", "ä" * 300, "' OR 1=1 --"])
def test_the_page_of_an_unknown_worker_leads_to_the_list(queue, operator, owner):
    answer = operator.client.get(page_of(owner), follow=True)
    assert answer.redirect_chain == [(FIRST, 302)]
    assert told(answer)[0].startswith("This worker is gone")


def test_workers_cost_as_many_queries_however_many_there_are(queue, operator):
    counts = []
    for number in range(2):
        for one in range(10 * number + 1):
            owner = up(queue, f"w{number}-{one}")
            put(queue)
            take_one(queue, owner=owner)
            silent(queue, owner, 100 * (one % 2))
        found = []
        for address in (FIRST, page_of("w0-0")):
            with CaptureQueriesContext(connections[queue.alias]) as queries:
                assert operator.client.get(address).status_code == 200
            found.append(len([one for one in queries if "job_queue" in one["sql"]]))
        counts.append(found)
    assert counts[0] == counts[1]
    assert max(counts[0]) <= 5


# What is asked of a worker


def asking(owner, verb):
    return reverse(f"admin:jobqueue_worker_{verb}", args=[quote(owner)])


@pytest.fixture
def keeper(queue, sign_in):
    """Someone who may quiet and stop workers."""
    return sign_in("view_job", "control_worker")


@pytest.mark.parametrize(
    ("verb", "request_", "said"),
    [
        ("quiet", "quiet", "will stop taking jobs within 10 seconds"),
        ("resume", None, "will take jobs again within 10 seconds"),
        ("stop", "stop", "will begin to stop within 10 seconds"),
    ],
)
def test_a_worker_is_asked_from_its_page_and_it_is_logged(queue, keeper, verb, request_, said):
    owner = up(queue, "web/7:1:a_b c", name="mail-1")
    queue.workers.ask(owner, WorkerRequest.QUIET)
    asked = keeper.client.get(asking(owner, verb))
    assert "within ten seconds" in asked.content.decode()
    answer = keeper.client.post(asking(owner, verb), {"why": "a deploy"}, follow=True)
    assert answer.redirect_chain == [(page_of(owner), 302)]
    assert said in told(answer)[0]
    assert [one.asked for one in queue.workers.all()] == [request_]
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.object_repr, entry.user) == (owner, "mail-1", keeper.user)
    assert entry.change_message.endswith(": a deploy")


def test_a_page_offers_what_can_be_asked(queue, keeper):
    owner = up(queue)

    def offered():
        return [verb for verb, _label, _address in keeper.client.get(page_of(owner)).context["verbs"]]

    assert offered() == ["quiet", "stop"]
    queue.workers.ask(owner, WorkerRequest.QUIET)
    assert offered() == ["resume", "stop"]
    assert "asked to take no more jobs" in keeper.client.get(page_of(owner)).content.decode()
    up(queue, state=WorkerState.QUIET)
    assert offered() == ["resume", "stop"]
    assert "asked to take no more jobs" not in keeper.client.get(page_of(owner)).content.decode()
    up(queue, state=WorkerState.STOPPING)
    assert offered() == []
    up(queue)
    silent(queue, owner, 100)
    assert offered() == []


@pytest.mark.parametrize("verb", ["quiet", "resume", "stop"])
@pytest.mark.parametrize("codenames", [(), ("view_job",), ("control_worker",), ("view_job", "pause_queue")])
def test_a_worker_is_asked_by_those_alone_who_may(queue, sign_in, verb, codenames):
    visitor, owner = sign_in(*codenames), up(queue)
    queue.workers.ask(owner, WorkerRequest.QUIET)
    page = visitor.client.get(page_of(owner)).content
    assert asking(owner, verb).encode() not in page
    assert visitor.client.get(asking(owner, verb)).status_code == 403
    assert visitor.client.post(asking(owner, verb)).status_code == 403
    assert [one.asked for one in queue.workers.all()] == ["quiet"]
    assert not LogEntry.objects.exists()


def test_asking_takes_the_pages_token_and_a_worker_that_is_there(queue, keeper):
    owner = up(queue)
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(keeper.user)
    assert strict.post(asking(owner, "stop")).status_code == 403
    assert keeper.client.put(asking(owner, "stop")).status_code == 405
    assert keeper.client.post(asking(owner, "stop"), {"why": "x" * 2_000}).status_code == 200
    for gone in ("nobody", "\0", "ä" * 300):
        answer = keeper.client.post(asking(gone, "stop"), follow=True)
        assert told(answer)[0].startswith("This worker is gone")
    assert [one.asked for one in queue.workers.all()] == [None]


@pytest.mark.parametrize("page", ["live/", "change/live/"])
def test_an_open_page_of_workers_gets_what_has_changed(queue, sign_in, monkeypatch, page):
    reader, owner = sign_in("view_job"), up(queue)
    put(queue)
    moment = queue.now()
    monkeypatch.setattr(type(queue), "now", lambda self: moment)
    monkeypatch.setattr("jobqueue.admin.display.ago", lambda *_: "lately")
    address = FIRST + page if page == "live/" else f"{FIRST}{quote(owner)}/{page}"
    first = reader.client.get(address)
    (part,) = first.json()["parts"].values()
    assert reader.client.get(address, {"known": part["digest"]}).json()["parts"] == {}
    take_one(queue, owner=owner)
    (later,) = reader.client.get(address, {"known": part["digest"]}).json()["parts"].values()
    assert "1/20" in later["html"]
    queue.workers.dismiss(owner)
    gone = reader.client.get(address).json()["parts"]
    assert page == "live/" or "This worker is gone" in gone["worker"]["html"]
    assert sign_in("control_worker").client.get(address).status_code == 403
    assert reader.client.post(address).status_code == 405


# Who may


@pytest.mark.parametrize("codenames", [(), ("retry_job", "pause_queue"), ("view_job",)])
def test_workers_are_shown_to_those_alone_who_may_see_jobs(queue, sign_in, codenames):
    visitor, owner = sign_in(*codenames), up(queue)
    code = 200 if "view_job" in codenames else 403
    assert [visitor.client.get(address).status_code for address in (FIRST, page_of(owner))] == [code, code]
    index = visitor.client.get(reverse("admin:index")).content.decode()
    assert (FIRST in index) == (code == 200)


def test_nobody_else_gets_in(queue, sign_in):
    owner = up(queue)
    for client in (Client(), sign_in("view_job", is_staff=False).client):
        for address in (FIRST, page_of(owner)):
            assert reverse("admin:login") in client.get(address).headers["Location"]


def test_there_is_nothing_to_press_and_nothing_changes(queue, sign_in):
    root, owner = sign_in(is_superuser=True), up(queue)
    put(queue)
    take_one(queue, owner=owner)

    def everything():
        return [list(table.objects.using(queue.alias).order_by("pk").values()) for table in TABLES]

    before = everything()
    for address in (FIRST, page_of(owner)):
        assert Outline(root.client.get(address)).own_posts == []
        root.client.post(address, {"name": "x", "_save": "1"})
    for page in ("add/", f"{quote(owner)}/delete/", f"{quote(owner)}/history/"):
        assert root.client.get(f"{FIRST}{page}").status_code == 404
    assert everything() == before


# How it reads


@ON_SQLITE
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_no_page_of_workers_gets_an_element_from_data(queue, operator, text):
    short = text[:80]
    owner = up(queue, f"\x1b{short}", name=short, host=short, version=text[:30], queues=(text,), types=(text,))
    job_id = put(queue, short, queue=short)
    claim = take_one(queue, owner=owner, types=frozenset({short}))
    assert claim.id == job_id
    answers = [operator.client.get(address) for address in (FIRST, page_of(owner))]
    silent(queue, owner, 100)
    answers += [operator.client.get(address) for address in (FIRST, page_of(owner))]
    assert [answer.status_code for answer in answers] == [200] * 4
    assert [Born(answer.content.decode()).found for answer in answers] == [[]] * 4
    assert all(MARK in answer.content.decode() for answer in answers)


def test_pages_of_workers_read_well_and_would_do_under_a_strict_policy(queue, operator):
    owner = up(queue)
    put(queue)
    claim = take_one(queue, owner=owner)
    queue.progress([Progress(claim.id, claim.fence, owner, '{"percent": 5}')])
    silent(queue, up(queue, "dead"), 100)
    answers = [operator.client.get(address) for address in (FIRST, page_of(owner), page_of("dead"))]
    assert [stumbles(answer) for answer in answers] == [[]] * 3
    assert [Inline(answer.content.decode()).found for answer in answers] == [[]] * 3
