"""Tests of an operator's work in a real browser with a real worker: pages update without a reload."""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import pairwise

import pytest

from jobqueue.clock import SYSTEM
from jobqueue.models import Job
from jobqueue.orders.job import TYPE
from jobqueue.policy.settling import settled
from jobqueue.records import Dead, Ending, Failure, Progress
from jobqueue.testing.contract.harness import draft, put_all, settle, take
from tests.app.jobs import keep, resize_image
from tests.app.worker_jobs import heed, hold, note_run, pick
from tests.browser.places import NARROW, WIDE, address, ask
from tests.browser.scene import rewinding
from tests.conftest import ON_BOTH
from tests.worker.harness import database_of, freeze, thaw, until

QUEUED, IN_PROGRESS = (f"[data-jq-part=now] .jq-tile:nth-child({place}) .jq-figure" for place in (1, 3))
COMPLETED = "[data-jq-part=window] .jq-tile:first-child .jq-figure"
STATUS = ".jq-summary [data-jq-key=status]"

#: What the pages do is the same whichever database they ask; some flows go through both.
SQLITE_ALONE = True
TRACEBACK = 'Traceback (most recent call last):\n  File "shop/labels.py", line 7, in print_label\nOSError: disk on fire'


@pytest.fixture
def start(start_worker, alias):
    """A function that starts a worker for what these tests enqueue, which carries out operators' orders too."""
    application = {"JOBQUEUE_TEST_APPLICATION": json.dumps({"database": database_of("default")})}
    settings = {"settings": "tests.admin.worker_settings", "jobqueue": {"DATABASE": alias}}
    return lambda **constants: start_worker("--skip-checks", **settings, environment=application, constants=constants)


@pytest.fixture
def dead(queue):
    """A function that makes dead letters of a type that have one error."""

    def make(handler, *payloads):
        ids = put_all(queue, *(draft(handler.name, payload=json.dumps(one)) for one in payloads))
        told = {"error_class": "OSError", "message": "disk on fire", "traceback": TRACEBACK, "fingerprint": "disk"}
        for claim in take(queue, len(ids), types=frozenset({handler.name})):
            assert settle(queue, settled(claim, Dead("attempts used up"), Failure.of(Ending.FAILED, **told))) == ()
        return sorted(ids)

    return make


# One job


@ON_BOTH
def test_a_dead_job_is_retried_and_completes_while_one_looks(tab, dead, start, ledger):
    (job_id,) = dead(hold, {"gate": "go"})
    tab.open(address("job_change", job_id))
    tab.sees("dead letter", STATUS)
    tab.press("Retry")
    tab.sees("queued", STATUS)
    with tab.staying():
        tab.click(".jq-timeline summary")
        start()
        tab.sees("in progress", STATUS)
        tab.sees("Attempt 1 of 3 began", ".jq-timeline")
        ledger.open_gate("go")
        tab.sees("completed", STATUS)
        tab.sees("fence 2", "[data-jq-parts=result]")
        tab.sees("The job has completed.", "[data-jq-said]")
        assert tab.ask("document.querySelector('.jq-timeline details').open"), "what was unfolded stays so"
        tab.is_hidden("[data-jq-pause]")


def test_a_job_is_retried_with_a_payload_that_fits_after_one_that_did_not(tab, dead, start, jobs):
    (job_id,) = dead(pick, {"parcel": "seven", "colour": "red"})
    start()
    tab.open(address("job_change", job_id))
    tab.follow("Retry with another payload")
    tab.fill("Payload:", '{"parcel": "eight", "colour": "red"}')
    tab.press("Review the changes")
    tab.sees("parcel", ".errorlist")
    tab.sees("valid integer", ".errorlist")
    assert jobs.statuses(job_id) == ["dead_letter"]
    tab.fill("Payload:", '{"parcel": 8, "colour": "red"}')
    tab.fill("Why:", "the number was written out")
    tab.press("Review the changes")
    tab.sees('"seven"', "del")
    tab.sees("8", "ins")
    tab.press("Retry with this payload")
    tab.sees("The job is queued again with another payload.")
    with tab.staying():
        tab.sees("completed", STATUS)
    tab.sees("8 red", "[data-jq-parts=result]")
    tab.sees("seven", "[aria-labelledby=jq-payload]")
    assert jobs.get(job_id).payload == {"parcel": 8, "colour": "red"}


def test_a_running_job_is_cancelled_and_ends_while_one_looks(tab, start, jobs, ledger):
    receipt = heed.enqueue(gate="never")
    start()
    until(lambda: ledger.started(receipt.id))
    tab.open(address("job_change", receipt.id))
    tab.sees("in progress", STATUS)
    tab.press("Cancel")
    tab.sees("asked to stop", ".messagelist")
    with tab.staying():
        tab.sees("cancelled", STATUS)
        tab.sees("Cancelled", ".jq-timeline")
    assert jobs.statuses(receipt.id) == ["failed"]


def test_a_job_is_retried_by_keyboard_alone(tab, dead):
    (job_id,) = dead(note_run, {"number": 1})
    tab.open(address("job_change", job_id))
    tab.walk_to("Retry")
    tab.strike("Enter")
    tab.sees("queued", STATUS)


def test_what_one_reads_and_where_one_is_stays_while_the_page_is_brought_up_to_date(tab, start, ledger):
    parent = hold.enqueue(gate="go")
    tab.open(address("job_change", parent.id))
    tab.walk_to("Cancel")
    with tab.staying():
        start()
        tab.sees("in progress", STATUS)
        tab.has_focus(".jq-verbs button[formaction*='/cancel/']")
        ledger.open_gate("go")
        tab.sees("completed", STATUS)
        assert tab.ask("document.activeElement !== document.body"), "the focus is not lost with what it was on"


def test_progress_moves_and_what_was_folded_in_it_stays_so(tab, queue):
    receipt = hold.enqueue(gate="go")
    (claim,) = take(queue, 1, types=frozenset({hold.name}))

    def tell(percent):
        report = json.dumps({"percent": percent, "step": f"page {percent}"})
        queue.progress([Progress(claim.id, claim.fence, claim.owner, report)])

    tell(40)
    tab.open(address("job_change", receipt.id))
    tab.sees("40 %", ".jq-bar")
    tab.click("[data-jq-parts=progress] summary")
    with tab.staying():
        tell(90)
        tab.sees("90 %", ".jq-bar")
    assert not tab.ask("document.querySelector('[data-jq-parts=progress] details').open")


def test_an_open_job_rests_while_its_updates_are_paused(tab, queue):
    receipt = hold.enqueue(gate="go")
    tab.hold_time()
    tab.open(address("job_change", receipt.id))
    tab.press("Pause updates")
    queue.operator.cancel([receipt.id])
    tab.pass_time(60)
    assert tab.asked("/live/") == 0
    tab.press("Pause updates")
    tab.pass_time(1)
    tab.sees("cancelled", STATUS)
    assert tab.asked("/live/") == 1


def test_json_is_copied(tab, dead):
    (job_id,) = dead(pick, {"parcel": 7, "colour": "red"})
    tab.open(address("job_change", job_id))
    tab.click("[aria-labelledby=jq-payload] [data-jq-copy]")
    tab.sees("Copied", "[aria-labelledby=jq-payload] [role=status]")
    assert json.loads(tab.ask("navigator.clipboard.readText()")) == {"parcel": 7, "colour": "red"}


# Many jobs


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_three_clicks_lead_from_the_dashboard_to_all_of_an_error_retried_slowly_and_well(
    open_tab, operator, dead, start, jobs, ledger, size
):
    ids = dead(note_run, *({"number": number} for number in range(3)))
    start()
    tab = open_tab(operator, size=size)
    tab.open(address("dashboard_changelist"))
    tab.sees("3 dead letters wait for a decision.", "[data-jq-part=findings]")
    tab.follow("Dead letters", "[data-jq-part=findings]")
    tab.press("Retry all with the error OSError")
    tab.fill("At most … a minute:", "60")
    tab.fill("Why:", "the disk was replaced")
    tab.press("Retry 3 jobs")
    with tab.staying():
        tab.sees("3 jobs are queued again.", ".messagelist")
        tab.sees("completed: 3", "[data-jq-part=jobs]")
    tab.follow("Back to where the order was given")
    tab.sees("There are no dead letters.")
    moments = [run.started for run in ledger.runs()]
    assert min(after - before for before, after in pairwise(moments)) > 0.8
    tab.open(address("job_history", ids[0]))
    tab.sees("Retried: the disk was replaced")


@ON_BOTH
def test_a_large_selection_is_done_in_the_background_by_a_job_whose_progress_moves(tab, queue, alias, start, jobs):
    ids = put_all(queue, *(draft("greet.v2", payload='{"name": "x"}') for _ in range(600)))
    ended = {"status": "dead_letter", "completed_at": SYSTEM.now() - timedelta(minutes=5)}
    Job.objects.using(alias).filter(pk__in=ids).update(**ended)
    ask(tab, "purge", "status:dead_letter", "all")
    tab.sees("by a job of the queue")
    tab.press("Purge 600 jobs")
    tab.sees("The order begins in")
    job_id = Job.objects.using(alias).get(type=TYPE).pk
    tab.open(address("job_change", job_id))
    tab.sees("queued", STATUS)
    with tab.staying():
        worker = start(**{"jobqueue.orders.execution.BATCH": 2})
        until(lambda: (jobs.get(job_id).progress or {}).get("percent", 0) > 0, what="progress")
        freeze(*worker.family)
        done = jobs.get(job_id).progress["percent"]
        tab.sees(f"{done:g} %".replace(".0 ", " "), ".jq-bar")
        thaw(*worker.family)
        tab.sees("completed", STATUS)
        tab.sees("600", "[data-jq-parts=result]")
    assert not Job.objects.using(alias).filter(pk__in=ids).exists()


def test_jobs_are_found_by_words_that_the_box_offers_and_explains(tab, queue, dead):
    (job_id,) = dead(pick, {"parcel": 7, "colour": "red"})
    keep.enqueue(1)
    tab.open(address("job_changelist"))
    tab.sees_count("#result_list tbody tr", 2)
    tab.type_into("Search", "stat")
    assert "status:" in tab.ask("Array.from(document.getElementById('searchbar').list.options, (one) => one.value)")
    tab.type_into("Search", "us:dead_letter ")
    offered = tab.ask("Array.from(document.getElementById('searchbar').list.options, (one) => one.value)")
    assert "status:dead_letter type:pick" in offered
    tab.type_into("Search", "type:pick payload.parcel:7")
    tab.press("Search")
    tab.sees_count("#result_list tbody tr", 1)
    tab.sees(job_id, "#result_list")
    tab.fill("Search", "statsu:dead_letter")
    tab.press("Search")
    tab.sees("Did you mean “status:”?", "#jq-complaint")
    tab.click(".jq-help summary")
    tab.sees("Jobs of this tenant.", ".jq-help")
    tab.follow("tenant:acme status:queued,in_progress")
    tab.sees("0 results")


def test_a_slash_leads_to_the_search_box_unless_one_types(tab, dead):
    dead(pick, {"parcel": 7})
    tab.open(f"{address('job_changelist')}?q=type:pick")
    tab.ask("document.activeElement.blur()")
    tab.strike("/")
    tab.has_focus("#searchbar")
    tab.strike("End")
    tab.strike("/")
    assert tab.ask("document.getElementById('searchbar').value") == "type:pick/"
    tab.fill("Save this search as", "")
    tab.type_into("Save this search as", "7/8")
    assert tab.ask("document.querySelector('.jq-saved [name=name]').value") == "7/8"


def test_a_search_is_saved_used_and_deleted(tab, dead):
    (job_id,) = dead(pick, {"parcel": 7})
    keep.enqueue(1)
    tab.open(f"{address('job_changelist')}?q=type:pick")
    tab.fill("Save this search as", "Parcels of a day")
    tab.press("Save")
    tab.sees("The search “Parcels of a day” is saved.", "body")
    tab.open(address("job_changelist"))
    tab.sees_count("#result_list tbody tr", 2)
    tab.follow("Parcels of a day")
    tab.sees_count("#result_list tbody tr", 1)
    tab.sees(job_id, "#result_list")
    tab.press("Delete the saved search “Parcels of a day”")
    tab.sees_count(".jq-saved li", 0)


# Queues


def test_a_queue_is_paused_with_a_reason_and_resumed(tab, start, jobs):
    tab.open(address("queue_changelist"))
    tab.follow("Pause queue images")
    tab.fill("Why", "the disk is full")
    tab.press("Pause")
    tab.sees("The queue images is paused", ".messagelist")
    waiting = resize_image.enqueue(image_id=7)
    start()
    jobs.until("completed", note_run.enqueue(number=1))
    assert jobs.statuses(waiting) == ["queued"]
    tab.open(address("job_change", waiting.id))
    tab.sees("the disk is full", "[aria-labelledby=jq-why]")
    with tab.elsewhere(address("queue_changelist")) as other:
        other.sees("the disk is full", "main")
        other.follow("Resume queue images")
        other.press("Resume")
        other.sees("The queue images is resumed.", ".messagelist")
    with tab.staying():
        tab.sees("completed", STATUS)


def test_the_rows_of_an_open_list_keep_up_and_stay_where_they_are(tab, queue, monkeypatch, start, ledger):
    monkeypatch.setattr("jobqueue.admin.lists.change_list.EVERY", 1)
    receipt = hold.enqueue(gate="go")
    tab.open(address("job_changelist"))
    tab.tick("input.action-select")
    with tab.staying():
        start()
        tab.sees("in progress", "#result_list")
        assert tab.ask("document.querySelector('input.action-select').checked")
        hold.enqueue(gate="never")
        tab.sees("The rows of this list have changed.", "#jq-list-live")
        tab.sees_count("#result_list tbody tr", 1)
        tab.press("Pause updates")
        ledger.open_gate("go")
    tab.follow("Reload", "#jq-list-live")
    tab.sees_count("#result_list tbody tr", 2)
    assert receipt.id in tab.ask("document.querySelector('#result_list').textContent")


# The dashboard


@ON_BOTH
def test_an_open_dashboard_tells_what_happens(tab, queue, monkeypatch, start, ledger):
    monkeypatch.setattr("jobqueue.admin.live.EVERY", 1)
    tab.open(address("dashboard_changelist"))
    tab.reads("0", QUEUED)
    with tab.staying():
        hold.enqueue(gate="go")
        tab.reads("1", QUEUED)
        tab.sees("No worker is up", "[data-jq-part=findings]")
        worker = start()
        tab.reads("1", IN_PROGRESS)
        tab.reads("0", QUEUED)
        tab.misses("no worker", "[data-jq-part=findings]")
        ledger.open_gate("go")
        tab.reads("0", IN_PROGRESS)
        worker.stop()  # it notes in the figures what it did, which it else does every ten seconds
        tab.reads("1", COMPLETED)


def test_an_open_dashboard_rests_while_it_is_paused(tab, queue):
    tab.hold_time()
    tab.open(address("dashboard_changelist"))
    tab.press("Pause updates")
    hold.enqueue(gate="go")
    tab.pass_time(120)
    assert tab.asked("/live/") == 0
    tab.press("Go on")
    tab.reads("1", QUEUED)
    assert tab.asked("/live/") == 1
    hold.enqueue(gate="go")
    tab.pass_time(5)
    tab.reads("2", QUEUED)


def test_who_is_signed_out_is_told_on_the_open_pages(tab, operator):
    receipt = hold.enqueue(gate="go")
    tab.hold_time()
    tab.open(address("dashboard_changelist"))
    with tab.elsewhere(address("job_change", receipt.id)) as other:
        operator.client.logout()
        other.pass_time(1)
        other.sees("This page is no longer updated.", "[data-jq-trouble]")
    until(lambda: tab.pass_time(10) or "sign in again" in tab.ask("document.getElementById('jq-news').textContent"))


# The badge


def test_the_number_of_problems_stands_beside_the_name_of_the_app_and_of_no_other(tab, queue):
    with rewinding(queue, timedelta(hours=1)) as past:
        past.put("pick", {"parcel": 7})  # which no worker runs
    tab.open(address("deadletter_changelist"))
    tab.reads("1", ".breadcrumbs .jq-badge")
    tab.reads("1", ".module.app-jobqueue caption .jq-badge")
    tab.sees_count(".jq-badge", 2)


# A search that goes on


def test_a_search_of_dead_letters_goes_on_by_itself_to_those_that_died_first(tab, queue, dead, monkeypatch):
    monkeypatch.setattr("jobqueue.backends.sql.search.walk.WALKED", 2)
    monkeypatch.setattr("jobqueue.backends.sql.search.plan.FURTHER", 3)
    (first,) = dead(pick, {"parcel": 7, "colour": "red"})
    dead(pick, *({"parcel": number} for number in range(8, 15)))
    (last,) = dead(pick, {"parcel": 7})
    query = "payload.parcel:7"
    tab.open(f"{address('deadletter_all')}?q={query}")
    tab.sees(last, "#result_list")
    tab.sees("All jobs of this status were searched.", "#jq-further")
    tab.is_hidden("#jq-note")
    tab.follow("1 more result further back", "#jq-further")
    tab.sees(first, "#result_list")
    tab.sees_count("#result_list tbody tr", 1)
    # A page without results leads to the first ones.
    tab.open(f"{address('deadletter_all')}?q=payload.colour:red")
    tab.sees(first, "#result_list")
