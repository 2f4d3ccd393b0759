"""Tests of lists: searches, filters, limited counts and scans, and columns that are never fetched."""

from __future__ import annotations

import json
import re
import tracemalloc
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from jobqueue.admin.lists.jobs import ReadingJobs
from jobqueue.admin.search import results
from jobqueue.admin.search.query import parse, spelled
from jobqueue.backends.sql.search import plan, walk
from jobqueue.clock import SYSTEM
from jobqueue.handlers.registry import registry
from jobqueue.ids import least_id
from jobqueue.models import Job
from jobqueue.orders import shown as listing_shown
from jobqueue.records import Scope
from jobqueue.testing.contract.harness import draft, put, put_all, take_one
from tests.admin.conftest import STATUSES, list_address, shown
from tests.conftest import ON_SQLITE


def choices(response, title):
    """What one filter offers."""
    (found,) = [spec for spec in response.context["cl"].filter_specs if str(spec.title) == title]
    return [str(one["display"]) for one in found.choices(response.context["cl"]) if "display" in one]


def test_queues_are_offered_that_only_the_table_knows(queue, operator, job_in):
    for status in reversed(STATUSES):  # the queued one last, or it would be taken
        job_in(status, queue=f"of {status}")
    offered = {f"of {status}" for status in STATUSES} - {"of completed"}
    assert offered <= {*choices(operator.list(), "queue")}


# Search


def test_a_job_is_found_by_id_by_its_beginning_and_in_small_letters(queue, operator):
    ids = put_all(queue, *(draft(id=f"01M7QNW73V4P5RQS9WP6M1XX1{end}") for end in "ABC"))
    other = put_all(queue, draft(id="01M7QNW84V4P5RQS9WP6M1XX1A"))
    assert shown(operator.list(q=ids[0])) == ids[:1]
    assert shown(operator.list(q=f" {ids[1].lower()} ")) == ids[1:2]
    assert shown(operator.list(q=ids[0][:10])) == ids[::-1]
    assert shown(operator.list(q=ids[0][:5])) == other + ids[::-1]


def test_an_id_of_another_form_is_found_by_all_of_it(queue, operator):
    put(queue, id="import:7/a_b")
    assert shown(operator.list(q="import:7/a_b")) == ["import:7/a_b"]
    assert shown(operator.list(q="import")) == []
    assert operator.page("import_3A7_2Fa_5Fb").status_code == 200


def test_a_job_is_found_by_key_type_and_tenant(queue, operator):
    keyed = put(queue, idempotency_key="order-7")
    rare = put(queue, "rare")
    theirs = put(queue, tenant="acme")
    assert [shown(operator.list(q=term)) for term in ("order-7", "rare", "acme")] == [[keyed], [rare], [theirs]]


@pytest.mark.parametrize("term", ["image_id", "%", "_", "'", '"', "\\", "\0", "order", "ä" * 500, "0" * 26, "resiz"])
def test_a_search_for_anything_else_finds_nothing_and_harms_nothing(queue, operator, term):
    put(queue, idempotency_key="order-7")
    answer = operator.list(q=term)
    assert answer.status_code == 200
    assert term == "\0" or shown(answer) == []


@ON_SQLITE
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("statsu:failed", "There is no “statsu:”. Did you mean “status:”?"),
        ("<b>:x", "There is no “&lt;b&gt;:”."),
        ("payload.password:hunter2", "“password” looks like a secret"),
        ("error:" + "x" * 201, "“error:” takes at most 200 characters"),
        ("status:queued status:failed", "No job is both “status:queued” and “status:failed”."),
    ],
)
def test_a_search_that_cannot_be_read_finds_nothing_and_says_why(queue, operator, text, said):
    put(queue)
    answer = operator.list(q=text)
    assert (answer.status_code, shown(answer)) == (200, [])
    page = answer.content.decode()
    assert said in page.split('id="jq-complaint"')[1].split("</p>")[0]
    assert 'aria-invalid="true"' in page


def test_an_action_on_all_that_a_bad_search_finds_does_nothing_and_says_why(queue, operator, job_in):
    job_id = job_in("dead_letter")
    answer = operator.act("retry", job_id, query="?q=statsu:failed", select_across="1")
    assert answer.status_code == 200
    assert Job.objects.using(queue.alias).get(pk=job_id).status == "dead_letter"
    assert "Did you mean" in answer.content.decode()


@pytest.mark.parametrize("text", ["type:\0", "\0", '"' * 1_999, "type:x," * 250, "payload.a:" + "(" * 900, "x" * 9_000])
def test_a_search_that_nobody_would_type_finds_nothing(queue, operator, text):
    put(queue)
    answer = operator.list(q=text)
    assert (answer.status_code, shown(answer)) == (200, [])


@pytest.mark.parametrize("parameter", ["q", "type", "p"])
def test_an_address_without_end_is_refused(queue, operator, parameter):
    assert operator.list(**{parameter: "x" * 10_000_000}).status_code == 400


def test_the_box_offers_what_can_be_asked_for_and_the_names_that_are_known(queue, operator):
    queue.operator.pause(Scope.QUEUE, "the closed one")
    page = operator.list().content.decode()
    offered = page.split('<datalist id="jq-suggestions">')[1].split("</datalist>")[0]
    for word in (
        "type:",
        "status:dead_letter",
        "type:resize_image",
        "queue:images",
        "queue:&quot;the closed one&quot;",
        "payload.image_id:",
        "died:",
    ):
        assert f'<option value="{word}">' in offered
    assert 'list="jq-suggestions"' in page
    assert "payload.image_id:7" in page.split('class="jq-help"')[1].split("</details>")[0]


def test_what_is_typed_and_what_is_chosen_hold_together(queue, operator, job_in):
    dead = job_in("dead_letter", tenant="acme")
    job_in("dead_letter", tenant="other")
    failed = job_in("failed", tenant="acme", priority=1)
    assert shown(operator.list(q="tenant:acme", status="dead_letter")) == [dead]
    assert shown(operator.list(q="tenant:acme status:dead_letter,failed", created="1h")) == [failed, dead]
    answer = operator.list(q="tenant:acme status:queued", status="failed")
    assert shown(answer) == []
    assert "No job is both “status:queued” and “status:failed”." in answer.content.decode()
    assert "No job is both" in operator.list("deadletter", q="status:queued").content.decode()


# Payloads and errors


def test_a_payload_is_searched_by_path_and_type(queue, operator):
    number, text, other = put_all(
        queue,
        draft(payload='{"image_id": 7, "tags": ["a", {"b": true}]}'),
        draft(payload='{"image_id": "7", "tags": []}'),
        draft(payload='{"image_id": 8}'),
    )
    assert shown(operator.list(q="payload.image_id:7")) == [text, number]
    assert shown(operator.list(q='payload.image_id:"7"')) == [text]
    assert shown(operator.list(q="payload.tags.0:a payload.image_id:7")) == [number]
    assert shown(operator.list(q="payload.tags.1.b:true")) == [number]
    assert shown(operator.list(q="payload.image_id:8")) == [other]
    assert shown(operator.list(q="payload.image_id__gt:1")) == []


HIDDEN = {
    "payload.headers.0.value:canary": {"headers": [{"name": "X-Api-Key", "value": "canary"}]},
    "payload.command.2:canary": {"command": ["tool", "--token", "canary"]},
    "payload.value:canary": {"key": "password", "value": "canary"},
}
SHOWN = {
    "payload.headers.0.value:canary": {"headers": [{"name": "X-Request-Id", "value": "canary"}]},
    "payload.command.2:canary": {"command": ["tool", "--name", "canary"]},
    "payload.value:canary": {"key": "colour", "value": "canary"},
}


@pytest.mark.parametrize("text", HIDDEN)
@pytest.mark.parametrize("also", ["", " status:queued"])
def test_what_redaction_hides_by_its_neighbours_is_not_found(queue, operator, text, also):
    put(queue, payload=json.dumps(HIDDEN[text]))
    seen = put(queue, payload=json.dumps(SHOWN[text]))
    assert shown(operator.list(q=text + also)) == [seen]
    assert results.counted(parse(text + also)).found == 1


def test_an_error_is_searched_as_it_is_shown(queue, operator, job_in):
    """Ours are stored without secrets; another program's may not be, and their words must not be guessed."""
    dead, foreign = job_in("dead_letter"), job_in("dead_letter")
    said = "login failed: password=canary-hunter2, host=db"
    Job.objects.using(queue.alias).filter(pk=foreign).update(error=said)
    assert shown(operator.list(q="error:FIRE")) == [dead]
    for known in ("login", '"host=db"'):
        assert shown(operator.list(q=f"error:{known} status:dead_letter")) == [foreign]
    for guess in ("canary", "hunter2", "y-hunter2, host"):
        for also in ("", " status:dead_letter", " status:dead_letter,failed"):
            assert shown(operator.list(q=f'error:"{guess}"{also}')) == []


def test_matches_that_were_not_checked_for_secrets_are_owned_up_to_whether_there_are_any_or_not(
    queue, operator, monkeypatch
):
    monkeypatch.setattr(results, "CAP_OF_CHECKED", 3)
    for status in ("completed", "dead_letter"):
        old = stored(queue, 1, error="on canary fire", status=status)
        assert note(operator.list(q=f"error:canary status:{status}")) == ""
        stored(queue, 4, error="password=canary-hunter2", status=status)
        answer = operator.list(q=f"error:canary status:{status}")
        assert shown(answer) == []
        assert note(answer).startswith("Each match is checked for secrets before it is shown. Only the newest 3")
        assert note(operator.list(q=f"error:nothing status:{status}")) == note(answer)
        assert shown(operator.list(q=f"id:{old[0]} error:canary")) == old


def test_a_search_in_large_payloads_holds_few_of_them_at_a_time(queue, operator, monkeypatch):
    monkeypatch.setattr(listing_shown, "LETTERS_HELD", 500_000)
    payload = {"env": [{"name": "REGION", "value": "canary"}], "body": "x" * 200_000}
    ids = stored(queue, 40, payload=payload)
    tracemalloc.start()
    try:
        assert results.counted(parse("payload.env.0.value:canary")).found == len(ids)
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4_000_000  # all of them are 8 million letters


# How far is looked


@pytest.fixture
def few(monkeypatch):
    """Bounds that ten jobs meet."""
    monkeypatch.setattr(plan, "NEWEST", 10)
    monkeypatch.setattr(plan, "SCATTERED", 8)
    monkeypatch.setattr(plan, "EXACT", 20)


def stored(queue, count, every=timedelta(minutes=1), **values):
    """Store jobs that were created one after another, the last one just now; return their ids, newest first."""
    now = SYSTEM.now()
    moments = [now - every * place for place in range(count)][::-1]
    defaults = {"type": "resize", "status": "completed", "payload": {}}
    rows = [
        Job(id=draft().id, created_at=one, updated_at=one, scheduled_at=one, **defaults | values) for one in moments
    ]
    Job.objects.using(queue.alias).bulk_create(rows)
    return [row.pk for row in reversed(rows)]


@pytest.mark.parametrize(
    ("asked", "number"),
    [
        ("status:dead_letter", 21),
        ("status:dead_letter queue:default", 21),
        ("status:dead_letter queue:default type:resize", 21),
        ("status:dead_letter queue:other", 0),
        ("status:failed", 0),
    ],
)
def test_what_an_index_tells_is_counted_though_it_lies_behind_all_that_is_looked_at(queue, few, asked, number):
    stored(queue, 21, status="dead_letter", every=timedelta(days=1), completed_at=SYSTEM.now())
    stored(queue, 12)
    assert results.counted(parse(asked)) == (number, False, False)


NOTE = "Only the newest 10 jobs were searched, back to"


def note(answer):
    return answer.context["cl"].note


@pytest.mark.parametrize("text", ["type:old", "tenant:acme", "error:fire", "payload.x:1", "status:completed type:old"])
def test_where_no_index_leads_only_the_newest_are_looked_at_and_the_page_says_so(queue, operator, few, text):
    about = {"type": "old", "tenant": "acme", "error": "on fire", "payload": {"x": 1}}
    ids = stored(queue, 5, **about)
    answer = operator.list(q=text)
    assert (shown(answer), note(answer)) == (ids, "")
    newer = stored(queue, 7)
    answer = operator.list(q=text)
    assert shown(answer) == ids[:3]
    assert note(answer).startswith(NOTE)
    assert note(answer) in answer.content.decode()
    assert results.counted(parse(text)) == (3, False, True)
    assert shown(operator.list(q=text, o="1")) == ids[2::-1]
    assert newer


@pytest.mark.parametrize(
    "text",
    [
        "status:dead_letter",
        "status:dead_letter error:fire",
        "status:dead_letter,failed tenant:acme",
        "status:dead_letter fingerprint:3f2a",
        "status:dead_letter payload.x:1 after:1h",
        "key:order-7",
    ],
)
def test_what_an_index_leads_to_is_found_however_old_it_is(queue, operator, few, text):
    about = {"status": "dead_letter", "tenant": "acme", "error": "on fire", "payload": {"x": 1}}
    (old,) = stored(queue, 1, error_fingerprint="3f2a", idempotency_key="order-7", **about)
    stored(queue, 30)
    answer = operator.list(q=text)
    assert (shown(answer), note(answer)) == ([old], "")
    assert not results.counted(parse(text)).is_part
    assert shown(operator.list(q=text, o="1")) == [old]


@pytest.mark.parametrize("status", ["queued", "failed", "dead_letter", "in_progress"])
def test_of_a_status_that_has_many_as_much_is_found_as_its_index_allows(queue, operator, few, status, monkeypatch):
    monkeypatch.setattr(ReadingJobs, "list_per_page", 6)
    ids = stored(queue, 8, status=status)
    stored(queue, 12)

    def pages(*numbers, **query):
        return [job_id for number in numbers for job_id in shown(operator.list(status=status, p=number, **query))]

    assert pages(1, 2) == ids
    assert pages(1, 2, o="1") == ids[::-1]
    ids = stored(queue, 7, status=status) + ids
    stored(queue, 12)
    answer = operator.list(status=status)
    if status == "in_progress":  # its index has nothing but leases
        assert (shown(answer), bool(note(answer))) == ([], True)
        return
    assert note(answer) == ""
    assert pages(1, 2, 3) == ids
    assert pages(1, 2, 3, o="1") == ids[::-1]
    assert pages(1, 2, 3, type="resize") == ids
    newest = stored(queue, 6, status=status)
    stored(queue, 12)
    answer = operator.list(status=status)
    if status == "queued":
        assert (shown(answer), note(answer).startswith(NOTE)) == ([], True)
        return
    assert (shown(answer), note(answer)) == (newest, "")
    assert answer.context["cl"].result_count == 21


PARTLY = [
    ("type:old", {"type": "old"}),
    ("status:dead_letter payload.x:1", {"status": "dead_letter", "payload": {"x": 1}}),
]


@pytest.mark.parametrize(("text", "values"), PARTLY)
def test_a_list_looks_further_back_until_everything_is_seen(queue, operator, few, monkeypatch, text, values):
    monkeypatch.setattr(plan, "FURTHER", 20)
    monkeypatch.setattr(walk, "WALKED", 10)
    ids = stored(queue, 3, **values)
    newer = stored(queue, 45, status=values.get("status", "completed"))
    answer = operator.list(q=text)
    page = answer.content.decode()
    assert (shown(answer), note(answer).startswith("Only the newest 10 jobs")) == ([], True)
    assert "No result so far" in page
    assert "None found so far" in page
    assert not re.search(r"\b0 (results|jobs|dead letters)", page)
    looks = 0
    while further := answer.context["cl"].further:
        assert f'<a href="{further.replace("&", "&amp;")}">Look further back</a>' in answer.content.decode()
        answer, looks = operator.client.get(list_address("job") + further), looks + 1
    assert (shown(answer), note(answer), looks) == (ids, "", 2)
    assert operator.client.get(list_address("job") + answer.context["cl"].from_the_first).context["cl"].further
    assert newer


def test_beyond_the_last_page_a_list_goes_on(queue, operator, few, monkeypatch):
    monkeypatch.setattr(results, "CAP", 6)
    monkeypatch.setattr(ReadingJobs, "list_per_page", 4)
    ids = stored(queue, 9, status="dead_letter")
    first, last = operator.list("deadletter"), operator.list("deadletter", p=2)
    assert (first.context["cl"].further, shown(last)) == ("", ids[4:6])
    rest = operator.client.get(list_address("deadletter") + last.context["cl"].further)
    assert (shown(rest), rest.context["cl"].further) == (ids[6:], "")


def test_another_filter_begins_with_the_newest_again(queue, operator, few):
    stored(queue, 45)
    listed = operator.list(q="type:old").context["cl"]
    answer = operator.client.get(list_address("job") + listed.further)
    page, below = answer.content.decode(), f"below={listed.matches.rest_before}"
    links = re.findall(r'href="(\?[^"]*)"', page)
    assert [link for link in links if below in link] == []
    assert any("status=queued" in link and "q=type" in link for link in links)
    assert 'name="below"' not in page


def test_where_a_list_begins_is_any_text(queue, operator):
    put(queue)
    for below in ("", "0", "zzz", "%00", "a" * 300, "\u2028", "ä"):
        assert operator.list(below=below).status_code == 200, below
    assert operator.list(below="a\0").context["cl"].complaint


@pytest.mark.parametrize(("text", "values"), PARTLY)
def test_all_that_match_are_offered_though_none_is_found_yet(queue, operator, few, monkeypatch, text, values):
    monkeypatch.setattr(walk, "WALKED", 10)
    stored(queue, 3, **values)
    stored(queue, 25, status=values.get("status", "completed"))
    page = operator.list(q=text)
    assert (shown(page), page.context["cl"].might_match, page.context["cl"].offers_all) == ([], True, True)
    assert '<input type="checkbox" name="select_across" value="1">' in page.content.decode()
    data = {"action": "purge", "index": 0, "select_across": ["0", "1"]}
    asked = operator.client.post(f"{list_address('job')}?{urlencode({'q': text})}", data, follow=True)
    assert "Purge" in asked.context["title"]


def test_all_that_match_are_not_offered_where_none_can_match_or_all_are_shown(queue, operator, few):
    stored(queue, 3)
    for text in ("", "type:nonsense", "statsu:failed"):
        answer = operator.list(q=text)
        assert not answer.context["cl"].offers_all, text
        assert 'select_across" value="1"' not in answer.content.decode()


def test_jobs_since_a_moment_are_all_found_if_the_newest_reach_back_to_it(queue, operator, few):
    ids = stored(queue, 30)
    answer = operator.list(q="after:5m type:resize")
    assert (len(shown(answer)), note(answer)) == (5, "")
    answer = operator.list(q="after:20m type:resize")
    assert shown(answer) == ids[:10]
    assert note(answer).startswith(NOTE)


def test_jobs_before_a_moment_are_looked_for_from_that_moment_on(queue, operator, few):
    now = SYSTEM.now()

    def created(days):
        moment = now - timedelta(days=days)
        about = {"type": "resize", "status": "completed", "payload": {}, "scheduled_at": moment}
        ids = [f"{least_id(moment)}{number:016d}" for number in range(12)]
        rows = [Job(id=job_id, created_at=moment, updated_at=moment, **about) for job_id in ids]
        Job.objects.using(queue.alias).bulk_create(rows)
        return ids[::-1]

    created(days=1)
    before, long_before = created(days=5), created(days=9)
    answer = operator.list(q="before:3d type:resize")
    assert shown(answer) == before[:10]
    assert note(answer).startswith("Only the newest 10 jobs before that time were searched, back to")
    assert shown(operator.list(q="before:8d type:resize")) == long_before[:10]
    assert shown(operator.list(q="before:8d type:resize", o="1")) == long_before[9::-1]
    answer = operator.list(q="before:20d")
    assert (shown(answer), note(answer)) == ([], "")


def test_children_are_all_found_however_long_ago_they_were_enqueued(queue, operator, few):
    old = stored(queue, 12, parent_id="p")
    assert len(stored(queue, 30, parent_id="another's")) == 30
    answer = operator.list(q="parent:p")
    assert (shown(answer), note(answer)) == (old, "")
    assert shown(operator.list(q="parent:p", o="1")) == old[::-1]
    rows = Job.objects.using(queue.alias)
    rows.filter(pk__in=(old[0], old[-1])).update(tenant="acme")
    # With more to ask for, each has to be looked at.
    answer = operator.list(q="parent:p tenant:acme")
    assert (shown(answer), note(answer).startswith(NOTE)) == (old[:1], True)
    rows.filter(pk__in=old[1:4]).delete()
    answer = operator.list(q="parent:p tenant:acme status:completed")
    assert (shown(answer), note(answer)) == ([old[0], old[-1]], "")


def test_a_worker_is_asked_for_what_it_runs(queue, operator, few):
    put(queue)
    claim = take_one(queue, owner="host:1:2")
    stored(queue, 30)
    answer = operator.list(q="worker:host:1:2")
    assert (shown(answer), note(answer)) == ([claim.id], "")


def test_an_id_that_begins_so_is_found_among_all(queue, operator, few):
    ids = stored(queue, 30)
    assert shown(operator.list(q=f"id:{ids[0][:4]}*")) == ids
    assert shown(operator.list(q=f"id:{ids[-1]}*")) == ids[-1:]
    assert shown(operator.list(q=f"id:{ids[-1]}* type:resize")) == ids[-1:]
    answer = operator.list(q=f"id:{ids[0][:4]}* type:resize")
    assert shown(answer) == ids[:10]
    assert note(answer).startswith(NOTE)


def test_every_filter_of_a_list_has_an_address_of_its_own(queue, operator, job_in):
    dead = job_in("dead_letter", tenant="the big one")
    job_in("completed")
    text = spelled(parse('status:dead_letter tenant:"the big one" after:1h'))
    assert shown(operator.list(q=text)) == [dead]


# Columns


def test_a_list_tells_how_long_a_job_took_and_how_far_it_is(queue, operator):
    put_all(queue, *(draft() for _ in range(4)))
    claims = [take_one(queue, owner=f"w{number}") for number in range(3)]
    now = SYSTEM.now()
    rows = Job.objects.using(queue.alias)
    rows.filter(pk=claims[0].id).update(progress={"percent": 42.5, "step": "x"})
    rows.filter(pk=claims[1].id).update(progress={"percent": "<b>"}, started_at=now - timedelta(hours=3))
    rows.filter(pk=claims[2].id).update(
        progress=[1], status="completed", started_at=now - timedelta(seconds=9), completed_at=now - timedelta(seconds=7)
    )
    page = operator.list().content.decode()
    assert (
        '<progress class="jq-progress" max="100" value="42.5" aria-label="Progress"></progress> <span>42.5 %</span>'
        in page
    )
    assert page.count("<progress") == 1
    assert '<span class="jq-small">running for 3 hours</span>' in page.replace("\xa0", " ")
    assert '<span class="jq-small">took 2.0 s</span>' in page
    assert page.count('<span class="jq-small">attempt 1 of 3</span>') == 3


@pytest.mark.parametrize("percent", ["nan", "1e999", -1, 101, None, True, {}, [7], "7" * 500])
def test_progress_that_is_none_is_not_shown(queue, operator, percent):
    put(queue)
    Job.objects.using(queue.alias).update(progress={"percent": percent})
    answer = operator.list()
    assert (answer.status_code, "<progress" in answer.content.decode()) == (200, False)


# Filters


def test_each_status_has_its_filter(queue, operator, job_in):
    ids = {status: job_in(status) for status in STATUSES if status != "queued"} | {"queued": job_in("queued")}
    assert {status: shown(operator.list(status=status)) for status in STATUSES} == {
        status: [job_id] for status, job_id in ids.items()
    }


def test_types_and_queues_are_filtered_by_names_that_are_known(queue, operator):
    rare, elsewhere = put(queue, "rare"), put(queue, queue="elsewhere")
    assert shown(operator.list(type="rare")) == [rare]
    assert shown(operator.list(queue="elsewhere")) == [elsewhere]
    queue.operator.pause(Scope.QUEUE, "closed")
    response = operator.list()
    assert choices(response, "type") == ["All", *sorted(registry.names)]
    assert choices(response, "queue") == [
        "All",
        *sorted({"closed", "default", "elsewhere"} | {kind.options.queue for kind in registry}),
    ]
    assert "rare" in choices(operator.list(type="rare"), "type")


def test_the_time_of_creation_is_filtered(queue, operator):
    now = SYSTEM.now()
    ages = {"15m": 14, "1h": 59, "1d": 23 * 60, "7d": 6 * 24 * 60, None: 8 * 24 * 60}
    ids = put_all(queue, *(draft() for _ in ages))
    for job_id, minutes in zip(ids, ages.values(), strict=True):
        Job.objects.using(queue.alias).filter(pk=job_id).update(created_at=now - timedelta(minutes=minutes))
    for found, window in enumerate(["15m", "1h", "1d", "7d"], start=1):
        assert shown(operator.list(created=window)) == ids[:found][::-1]


@pytest.mark.parametrize("query", [{"status": "x"}, {"type": "\0"}, {"queue": "'"}, {"created": "1y"}])
def test_a_filter_for_what_does_not_exist_finds_nothing(queue, operator, query):
    put(queue)
    answer = operator.list(**query)
    assert (answer.status_code, shown(answer)) == (200, [])


def test_a_page_or_an_order_that_does_not_exist_harms_nothing(queue, operator):
    put(queue)
    for query in ({"p": "99"}, {"p": "x"}, {"o": "99.-3"}):
        assert operator.list(**query).status_code in (200, 302)


@pytest.mark.parametrize("lookup", ["payload__password__startswith", "result__contains", "error__contains", "nonsense"])
def test_what_is_not_shown_cannot_be_asked_for_in_the_address(queue, operator, lookup):
    put(queue, payload='{"password": "hunter2"}')
    assert operator.list(**{lookup: "h"}).status_code == 400


def test_many_types_are_offered_in_a_box_to_search_in(queue, operator, monkeypatch):
    monkeypatch.setattr("jobqueue.admin.lists.filters.MANY", 3)
    put(queue)
    page = operator.list().content.decode()
    assert 'class="django-admin-list-filter admin-autocomplete"' in page
    assert "django_admin_list_filter.js" in page
    assert "?type=resize_image" in page


def test_dead_letters_are_a_list_of_their_own(queue, operator, job_in):
    dead = job_in("dead_letter")
    job_in("failed")
    assert shown(operator.list("deadletter")) == [dead]
    assert shown(operator.list("deadletter", q=dead[:12])) == [dead]


# Counting


def test_a_count_stops_at_the_cap_and_says_that_there_are_more(queue, operator, monkeypatch):
    monkeypatch.setattr(results, "CAP", 3)
    put_all(queue, *(draft() for _ in range(3)))
    response = operator.list()
    assert response.context["cl"].result_count == 3
    assert "jq-more" not in response.content.decode()
    put(queue)
    response = operator.list()
    assert response.context["cl"].result_count == 3
    assert "More than 3 jobs match." in response.content.decode()


QUERIES = {
    "everything": {},
    "a status": {"status": "completed"},
    "a status with an index": {"status": "queued"},
    "dead letters": {"q": "status:dead_letter error:fire"},
    "several statuses": {"q": "status:failed,dead_letter"},
    "a type of a queue among dead letters": {"q": "status:dead_letter type:resize queue:default"},
    "an error": {"q": "error:fire"},
    "a payload": {"q": "payload.image_id:7"},
    "a tenant": {"q": "tenant:acme"},
    "a word": {"q": "acme"},
    "oldest first": {"o": "1"},
}


def test_a_list_fetches_no_large_column_and_no_more_queries_for_more_rows(queue, operator, job_in):
    def look(query):
        with CaptureQueriesContext(connections[queue.alias]) as queries:
            rows = operator.list(**query).context["cl"].result_list
        (page,) = [one["sql"] for one in queries if "error_start" in one["sql"]]
        selected = page.split(" FROM ")[0]
        assert not [name for name in ("payload", "result", "context") if f'."{name}"' in selected]
        assert all({"payload", "result", "context", "progress", "error"} <= row.get_deferred_fields() for row in rows)
        assert not [one for one in queries if "DISTINCT" in one["sql"]]
        return len(queries)

    for status in ("dead_letter", "completed"):
        job_in(status, tenant="acme")
    job_in("queued", tenant="acme")
    before = {name: look(query) for name, query in QUERIES.items()}
    put_all(queue, *(draft(tenant="acme") for _ in range(100)))
    for status in ("failed", "dead_letter", "completed"):
        job_in(status, tenant="acme", priority=1)
    assert {name: look(query) for name, query in QUERIES.items()} == before


def searched_on(visitor, listed, model="job"):
    """What the parts of a search say, of a list that goes on by itself, until it ends."""
    address, query = listed.goes_on
    told = []
    while query:
        answer = visitor.client.get(address + query)
        assert (answer.status_code, "no-store" in answer.headers["Cache-Control"]) == (200, True)
        told.append(answer.json())
        query = told[-1]["next"]
    return told


@pytest.mark.parametrize("status", ["dead_letter", "failed"])
def test_a_search_of_jobs_that_wait_for_somebody_goes_on_until_all_were_searched(
    queue, operator, few, monkeypatch, status
):
    monkeypatch.setattr(plan, "FURTHER", 20)
    monkeypatch.setattr(walk, "WALKED", 10)
    found = stored(queue, 3, status=status, payload={"x": 1})
    stored(queue, 45, status=status)
    listed = operator.list(q=f"status:{status} payload.x:1").context["cl"]
    told = searched_on(operator, listed)
    assert [one["found"] for one in told] == ["", "3 more results further back"]
    assert told[0]["said"].startswith("The search goes on: all back to 20")
    assert told[1]["said"] == "All jobs of this status were searched."
    assert shown(operator.client.get(list_address("job") + told[0]["next"])) == found


def test_a_search_that_finds_more_than_a_list_has_stops_there(queue, operator, few, monkeypatch):
    monkeypatch.setattr(walk, "WALKED", 10)
    monkeypatch.setattr(results, "CAP", 6)
    stored(queue, 9, status="dead_letter", payload={"x": 1})
    stored(queue, 10, status="dead_letter")
    (told,) = searched_on(operator, operator.list("deadletter", q="payload.x:1").context["cl"])
    assert (told["found"], told["next"]) == ("6+ more results further back", "")


def test_only_a_search_of_jobs_that_wait_for_somebody_goes_on_by_itself(queue, operator, few, sign_in):
    stored(queue, 45)
    listed = operator.list(q="type:old").context["cl"]
    assert (bool(listed.further), listed.goes_on) == (True, None)
    address = reverse("admin:jobqueue_job_further")
    for query in (
        listed.further,
        "?q=statsu:x&below=0",
        "?q=status:failed",
        "?below=a%00&status=failed",
        "?q=" + "x" * 40_000,
    ):
        assert operator.client.get(address + query).status_code == 400
    assert operator.client.post(f"{address}?q=status:failed&below=z").status_code == 405
    assert sign_in("retry_job").client.get(f"{address}?q=status:failed&below=z").status_code == 403


def test_a_list_that_is_complete_does_not_go_on(queue, operator, few):
    stored(queue, 3, status="dead_letter", payload={"x": 1})
    assert operator.list(q="status:dead_letter payload.x:1").context["cl"].goes_on is None


@ON_SQLITE
@pytest.mark.parametrize("model", ["job", "deadletter"])
def test_each_example_could_find_something_in_its_list(queue, operator, model):
    for example in operator.list(model).context["cl"].examples:
        assert operator.list(model, q=example).context["cl"].complaint == "", example
