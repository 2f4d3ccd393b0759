"""Tests of a job's timeline: the order of events, their actors and reasons, future events, and omissions."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from html.parser import HTMLParser

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.urls import reverse

from jobqueue.admin.job import history, timeline
from jobqueue.admin.links import Links
from jobqueue.clock import SYSTEM
from jobqueue.models import Attempt, Job
from jobqueue.policy.redaction import redact_end
from jobqueue.policy.settling import completed, released, settled
from jobqueue.records import Again, Alone, Dead, Ending, Failure, Later, Stopped
from jobqueue.testing.contract.harness import draft, failing, put, put_all, settle, take_one

#: A timeline does not depend on the database.
SQLITE_ALONE = True

SECRET = "hunter2-and-more"


class Story(HTMLParser):
    """Reads the ordered list of a page: the titles, and what each entry says."""

    def __init__(self, response):
        super().__init__()
        self.titles, self.texts, self.moments = [], [], []
        self._within = self._bold = False
        self._depth = 0
        self.feed(response.content.decode())

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "ol" and given.get("class") == "jq-timeline":
            self._within = True
        if not self._within:
            return
        if tag in ("li", "ul"):
            self._depth += tag == "li"
        if tag == "li" and "data-jq-key" in given:
            self.texts.append("")
            self.moments.append([])
        if tag == "strong" and "class" not in given:
            self._bold = True
            self.titles.append("")
        if tag == "time":
            self.moments[-1].append(given["datetime"])

    def handle_endtag(self, tag):
        self._bold = self._bold and tag != "strong"
        if tag == "ol":
            self._within = False

    def handle_data(self, data):
        if self._within and self.texts:
            self.texts[-1] = " ".join(f"{self.texts[-1]} {data}".split())
        if self._bold:
            self.titles[-1] += data


@pytest.fixture
def story(operator):
    return lambda job_id: Story(operator.page(job_id))


def change(queue, job_id, **values):
    Job.objects.using(queue.alias).filter(pk=job_id).update(**values)


def log(queue, visitor, job_id, words, at=None):
    """Note what an operator did, as if it were then."""
    (made,) = LogEntry.objects.log_actions(
        visitor.user.pk, [Job.objects.using(queue.alias).get(pk=job_id)], CHANGE, words
    )[:1]
    if at is not None:
        LogEntry.objects.filter(pk=made.pk).update(action_time=at)


def newest_deed():
    return LogEntry.objects.latest("pk")


# The order, for jobs of every status and history


def test_a_job_that_waits_for_a_worker(queue, story):
    assert story(put(queue)).titles == ["Queued", "Attempt 1 of 3, once a worker takes the job"]


def test_a_job_that_is_scheduled(queue, story):
    job_id = put(queue, delay=timedelta(hours=3, minutes=30))
    assert story(job_id).titles == ["Queued", "Attempt 1 of 3 in 3\xa0hours"]


def test_a_job_that_runs(queue, story, job_in):
    assert story(job_in("in_progress")).titles == ["Queued", "Attempt 1 of 3 began"]


def test_a_job_that_is_completed(queue, story, job_in):
    found = story(job_in("completed"))
    assert found.titles == ["Queued", "Attempt 1 of 3 began", "Completed"]
    assert "worker me" in found.texts[1]


def test_a_job_that_was_cancelled_before_it_ran(queue, story, operator):
    job_id = put(queue)
    operator.press("cancel", job_id)
    assert story(job_id).titles == ["Queued", "visitor0, in the admin", "Cancelled"]


def test_a_job_that_came_too_late(queue, story):
    job_id = put(queue)
    change(queue, job_id, expires_at=SYSTEM.now() - timedelta(seconds=1))
    queue.sweep(lambda expired: pytest.fail("nothing ran"))
    assert story(job_id).titles == ["Queued", "Expired before it ran"]


def test_a_job_that_waits_for_its_next_attempt(queue, story):
    job_id = put(queue)
    assert settle(queue, failing(take_one(queue), Again(timedelta(seconds=40)))) == ()
    found = story(job_id)
    assert found.titles[:3] == ["Queued", "Attempt 1 of 3 began", "Attempt 1: failed"]
    assert re.fullmatch(r"Attempt 2 of 3 in (39|40) seconds", found.titles[3])


def test_a_job_that_is_given_up(queue, story, job_in):
    found = story(job_in("dead_letter"))
    assert found.titles == ["Queued", "Attempt 1 of 3 began", "Attempt 1: failed", "Given up: attempts used up"]
    assert "OSError : disk on fire" in found.texts[2]
    assert "after 2.0 s" in found.texts[2]
    assert "worker me" in found.texts[1]
    assert "worker me" in found.texts[2]


def test_a_job_that_says_itself_that_it_stops(queue, story):
    job_id = put(queue)
    assert settle(queue, failing(take_one(queue), Stopped("cancelled"), Ending.CANCELLED)) == ()
    assert story(job_id).titles == ["Queued", "Attempt 1 of 3 began", "Attempt 1: cancelled", "Cancelled"]


def test_a_job_that_is_asked_to_stop_and_does(queue, story, operator):
    job_id = put(queue)
    claim = take_one(queue)
    operator.press("cancel", job_id)
    asked = ["visitor0, in the admin", "Asked to stop"]
    assert story(job_id).titles == ["Queued", "Attempt 1 of 3 began", *asked]
    assert settle(queue, failing(claim, Stopped("cancelled"), Ending.CANCELLED)) == ()
    begun = ["Queued", "Attempt 1 of 3 began"]
    assert story(job_id).titles == [*begun, *asked, "Attempt 1: cancelled", "Cancelled"]


@pytest.mark.parametrize(
    ("decision", "ending", "words"),
    [
        (Later(timedelta(0)), Ending.SNOOZED, "snoozed"),
        (Alone(), Ending.CRASHED, "crashed"),
        (Again(timedelta(0)), Ending.TIMED_OUT, "timed out"),
        (Again(timedelta(0)), Ending.LEASE_LOST, "lease lost"),
    ],
)
def test_an_attempt_is_told_by_its_ending(queue, story, decision, ending, words):
    job_id = put(queue)
    assert settle(queue, failing(take_one(queue), decision, ending)) == ()
    number = 2 if isinstance(decision, Again) else 1
    counted = ", not counted" if isinstance(decision, Alone) else ""
    assert story(job_id).titles == [
        "Queued",
        "Attempt 1 of 3 began",
        f"Attempt 1{counted}: {words}",
        f"Attempt {number} of 3, once a worker takes the job",
    ]


def test_an_attempt_that_was_given_back_is_counted_again(queue, story):
    job_id = put(queue)
    assert settle(queue, released(take_one(queue), "the worker stopped")) == ()
    claim = take_one(queue)
    assert settle(queue, completed(claim, "null")) == ()
    assert story(job_id).titles == ["Queued", "Attempt 1: released", "Attempt 1 of 3 began", "Completed"]


def test_a_job_that_an_operator_brought_back(queue, story, operator, job_in):
    job_id = job_in("dead_letter")
    operator.press("retry", job_id)
    Attempt.objects.using(queue.alias).update(duration=0.001)
    begun = ["Queued", "Attempt 1 of 3 began", "Attempt 1: failed", "visitor0, in the admin"]
    assert story(job_id).titles == [*begun, "Attempt 1 of 3, once a worker takes the job"]
    claim = take_one(queue)
    assert story(job_id).titles == [*begun, "Attempt 1 of 3 began"]
    assert settle(queue, failing(claim, Dead("attempts used up"))) == ()
    again = ["Attempt 1 of 3 began", "Attempt 1: failed"]
    assert story(job_id).titles == [*begun, *again, "Given up: attempts used up"]
    Attempt.objects.using(queue.alias).update(duration=0.001)
    operator.press("retry", job_id)
    assert settle(queue, completed(take_one(queue), "null")) == ()
    assert story(job_id).titles == [
        *begun,
        *again,
        "visitor0, in the admin",
        "Attempt 1 of 3 began",
        "Completed",
    ]


def test_a_job_that_another_program_gave_up(queue, story):
    job_id = put(queue)
    change(queue, job_id, status="dead_letter", error="it says nothing else", attempts=3)
    found = story(job_id)
    assert found.titles == ["Queued", "An attempt failed", "Given up: no reason is known"]
    assert "it says nothing else" in found.texts[1]
    assert found.moments[2] == []


@pytest.mark.parametrize("status", ["queued", "in_progress", "completed", "failed", "dead_letter"])
def test_whatever_the_clocks_say_it_begins_with_the_beginning_and_ends_with_the_end(queue, operator, story, status):
    job_id, now = put(queue), SYSTEM.now()
    log(queue, operator, job_id, "Later.", at=now + timedelta(days=2))
    log(queue, operator, job_id, "Earlier.", at=now - timedelta(days=2))
    for fence, at in ((1, now + timedelta(days=1)), (2, now - timedelta(days=1))):
        Attempt.objects.using(queue.alias).create(
            job_id=job_id, fence=fence, attempt=fence, owner="me", ending="failed", ended_at=at
        )
    change(queue, job_id, status=status, started_at=now, completed_at=now, attempts=2, fence=3)
    titles = story(job_id).titles
    assert titles[0] == "Queued"
    assert titles[1:3] == ["visitor0, in the admin", "Attempt 2: failed"]
    assert "Attempt 2 of 3 began" in titles
    last = {
        "queued": "Attempt 3 of 3, once a worker takes the job",
        "in_progress": "visitor0, in the admin",
        "completed": "Completed",
        "failed": "Cancelled",
        "dead_letter": "Given up: no reason is known",
    }
    assert titles[-1] == last[status]


def test_a_deed_comes_before_the_attempt_that_it_led_to_though_it_was_logged_after_it(queue, operator, story, job_in):
    job_id = job_in("in_progress")
    began = Job.objects.using(queue.alias).get(pk=job_id).started_at
    log(queue, operator, job_id, "Retried.", at=began + timedelta(milliseconds=300))
    assert story(job_id).titles == ["Queued", "visitor0, in the admin", "Attempt 1 of 3 began"]
    LogEntry.objects.update(action_time=began + timedelta(seconds=5))
    assert story(job_id).titles == ["Queued", "Attempt 1 of 3 began", "visitor0, in the admin"]


# What an entry says


def test_each_past_entry_has_its_moment_for_machines(queue, story, job_in):
    found = story(job_in("dead_letter"))
    assert [len(moments) for moments in found.moments] == [1, 1, 1, 1]
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\dT[\d:.]+\+00:00", moment) for (moment,) in found.moments)


def test_who_enqueued_a_job_is_told_where_it_is_known(queue, story):
    context = {
        "user": "ada",
        "request_id": "r-4711",
        "language": "de",
        "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    }
    parent, child = put_all(queue, draft(), draft(parent_id="01PARENT", context=json.dumps(context)))
    change(queue, child, schedule_id="nightly", slot_at=SYSTEM.now())
    text = story(child).texts[0]
    for part in ("as a follow-up of 01PARENT", "by the schedule nightly", "by ada", "request r-4711", "language de"):
        assert part in text
    assert "trace 4bf92f3577b34da6a3ce929d0e0e4736" in text
    assert "00f067aa0ba902b7" not in text
    assert story(parent).texts[0].startswith("○ Queued 20")


@pytest.mark.parametrize(
    "context",
    [
        [1],
        "text",
        7,
        {"user": {"name": "ada"}, "request_id": None, "language": True, "traceparent": []},
        {"user": ""},
        {"user": "x" * 100_000},
        {"traceparent": "nonsense"},
    ],
)
def test_a_context_of_any_form_harms_nothing(queue, operator, context):
    job_id = put(queue, context=json.dumps(context))
    answer = operator.page(job_id)
    assert Story(answer).titles[0] == "Queued"
    assert len(answer.content) < 400_000


def test_the_trace_of_sentry_is_told_where_there_is_no_other(queue, story):
    trace, own = "4bf92f3577b34da6a3ce929d0e0e4736", "a" * 32
    with_both = {"traceparent": f"00-{own}-00f067aa0ba902b7-01", "sentry-trace": f"{trace}-00f067aa0ba902b7-1"}
    one, both = put_all(
        queue,
        draft(context=json.dumps({"sentry-trace": f"{trace}-00f067aa0ba902b7"})),
        draft(context=json.dumps(with_both)),
    )
    assert f"trace {trace}" in story(one).texts[0]
    assert f"trace {own}" in story(both).texts[0]


def test_how_long_it_waited_and_ran(queue, story, job_in):
    job_id = job_in("completed")
    begin = SYSTEM.now() - timedelta(hours=1)
    change(
        queue,
        job_id,
        created_at=begin,
        scheduled_at=begin + timedelta(seconds=10),
        started_at=begin + timedelta(seconds=15),
        completed_at=begin + timedelta(seconds=18),
    )
    found = story(job_id)
    assert "after waiting 5.0 s" in found.texts[1]
    assert "ran for 3.0 s" in found.texts[2]
    assert "since it was queued 18.0 s" in found.texts[2]


def test_a_wait_begins_when_the_attempt_before_has_ended_and_is_never_negative(queue, story):
    job_id = put(queue)
    assert settle(queue, released(take_one(queue), "the worker stopped")) == ()
    take_one(queue)
    begin = SYSTEM.now() - timedelta(hours=1)
    Attempt.objects.using(queue.alias).filter(job_id=job_id).update(ended_at=begin + timedelta(seconds=100))
    moments = {"created_at": begin, "scheduled_at": begin, "started_at": begin + timedelta(seconds=104)}
    change(queue, job_id, **moments)
    assert "after waiting 4.0 s" in story(job_id).texts[2]
    change(queue, job_id, scheduled_at=begin + timedelta(days=1))
    assert "after waiting 0 ms" in story(job_id).texts[2]


def test_what_operators_did_is_told_with_who_and_why(queue, operator, story, job_in):
    job_id = job_in("dead_letter")
    log(queue, operator, job_id, "Retried. Why: the provider <is> back")
    other = job_in("dead_letter")
    log(queue, operator, other, "Of another job.")
    found = story(job_id)
    assert "visitor0, in the admin" in found.texts[3]
    assert "Retried. Why: the provider <is> back" in found.texts[3]
    assert "Of another job." not in " ".join(found.texts)


def test_operators_are_told_with_the_time_zones_off(queue, operator, story, settings):
    settings.USE_TZ = False
    job_id = put(queue)
    log(queue, operator, job_id, "Retried.")
    assert story(job_id).titles[:2] == ["Queued", "visitor0, in the admin"]


def test_an_attempt_leads_to_its_worker_and_a_follow_up_to_its_parent(queue, operator, job_in):
    job_id = job_in("dead_letter", parent_id="01PARENT")
    page = operator.page(job_id).content.decode()
    links = Links("admin")
    assert f'<a class="jq-mono" href="{links.worker("me")}">me</a>' in page
    assert f'href="{links.job("01PARENT")}"' in page


def test_a_site_without_such_pages_has_no_links_to_them():
    links = Links("admin")
    assert links.worker("") == ""
    assert links._to("nothing_change", "7") == ""
    assert links.worker("host:1:ab\n<x>").startswith("/admin/")


# What it does not tell


def test_no_entry_tells_a_secret(queue, operator):
    payload = json.dumps({"password": SECRET, "api_key": "k-123456"})
    context = json.dumps({"user": f"ada token={SECRET}", "first": {"payload": {"password": "hunter2-the-first"}}})
    job_id = put(queue, payload=payload, context=context)
    failure = Failure.of(
        Ending.FAILED,
        error_class="OSError",
        message=f"login with {SECRET} and k-123456 and hunter2-the-first refused, token=t-987654",
        traceback=f"  password={SECRET!r}\n  'hunter2-the-first'\n  token=t-987654",
    )
    assert settle(queue, settled(take_one(queue), Dead("attempts used up"), failure)) == ()
    log(queue, operator, job_id, f"Retried. Why: the password is {SECRET}, token=t-987654")
    page = operator.page(job_id).content.decode()
    assert [one for one in ("hunter2", "k-123456", "t-987654") if one in page] == []
    assert "login with [redacted]" in page


def test_a_long_history_shows_its_end_and_says_so(queue, operator, story, job_in, monkeypatch):
    monkeypatch.setattr(history, "ATTEMPTS_SHOWN", 2)
    job_id = job_in("dead_letter")
    Attempt.objects.using(queue.alias).bulk_create(
        Attempt(job_id=job_id, fence=fence, attempt=fence, owner="me", ending="failed", ended_at=SYSTEM.now())
        for fence in (2, 3)
    )
    assert story(job_id).titles == [
        "Queued",
        "Earlier attempts are not shown.",
        "Attempt 2: failed",
        "Attempt 3: failed",
        "Given up: attempts used up",
    ]


def test_of_long_tracebacks_the_newest_are_shown_and_of_the_others_their_ends(queue, operator, story, monkeypatch):
    monkeypatch.setattr(history, "LETTERS_SHOWN", 1_000)
    monkeypatch.setattr(history, "LETTERS_OF_EACH", 50)
    job_id = put(queue)
    for number in range(1, 4):
        traceback = f"begin {number} " + "x" * 600 + f" end {number}"
        Attempt.objects.using(queue.alias).create(
            job_id=job_id,
            fence=number,
            attempt=number,
            owner="me",
            ending="failed",
            traceback=traceback,
            message=f"words {number}",
            ended_at=SYSTEM.now(),
        )
    texts = story(job_id).texts
    assert ["begin" in text for text in texts[1:4]] == [False, False, True]
    assert all(f"end {number}" in texts[number] and f"words {number}" in texts[number] for number in (1, 2, 3))
    assert ["The end of the traceback" in text for text in texts[1:4]] == [True, True, False]
    assert [len(text) for text in texts[1:3]] == sorted(len(text) for text in texts[1:3])


@pytest.mark.parametrize("length", range(100, 160, 3))
def test_no_secret_is_cut_in_two_where_the_end_of_a_traceback_begins(length):
    text = "a " * 9_000 + SECRET + " b" * 60
    shown, is_all = redact_end(text, length, [SECRET])
    assert not any(part in shown for part in ("hunter2", "and-more", "more", "re b"))
    assert len(shown) <= length
    assert not is_all


def test_the_end_of_a_short_text_is_all_of_it():
    assert redact_end("token=abcdef", 100) == ("token=[redacted]", True)
    assert redact_end("abcdef", 6) == ("abcdef", True)
    assert redact_end("abcdef", 5) == ("bcdef", False)


def test_many_deeds_show_their_end_and_say_so(queue, operator, story, monkeypatch):
    monkeypatch.setattr(history, "ACTIONS_SHOWN", 2)
    job_id = put(queue)
    for number in range(3):
        log(queue, operator, job_id, f"Deed {number}.")
    found = story(job_id)
    assert "see “History”" in found.titles[1]
    assert [f"Deed {number}." in " ".join(found.texts) for number in range(3)] == [False, True, True]


def test_only_the_newest_entries_of_the_log_are_looked_at_and_it_says_so(queue, operator, story, monkeypatch):
    monkeypatch.setattr(history, "LOG_LOOKED_AT", 3)
    job_id, other = put(queue), put(queue)
    log(queue, operator, job_id, "Long ago.")
    for _ in range(3):
        log(queue, operator, other, "Of another job.")
    found = story(job_id)
    assert "Long ago." not in " ".join(found.texts)
    assert "see “History”" in found.titles[1]
    # All of the log since this one was queued has been looked at.
    LogEntry.objects.filter(pk__lte=newest_deed().pk - 3).update(action_time=SYSTEM.now() - timedelta(days=1))
    assert not any("History" in title for title in story(other).titles)


def test_the_history_has_all_that_was_done_page_by_page(queue, operator, monkeypatch):
    assert "Nobody" in operator.client.get(reverse("admin:jobqueue_job_history", args=[put(queue)])).content.decode()
    monkeypatch.setattr(history, "HISTORY_SHOWN", 2)
    monkeypatch.setattr(history, "HISTORY_LOOKED_AT", 3)
    job_id, other = put(queue, payload='{"password": "hunter2-and-more"}'), put(queue)
    for number in range(5):
        log(queue, operator, job_id, f"Deed {number}, with {SECRET}.")
    for _ in range(5):
        log(queue, operator, other, "Of another job.")
    log(queue, operator, job_id, "The last deed.")
    address, pages = reverse("admin:jobqueue_job_history", args=[job_id]), []
    while address and len(pages) < 20:
        pages.append(operator.client.get(address).content.decode())
        older = re.search(r'href="(\?below=\d+)"', pages[-1])
        address = older and reverse("admin:jobqueue_job_history", args=[job_id]) + older[1]
    told = re.findall(r"Deed \d, with \[redacted\]\.|The last deed|Of another job", "".join(pages))
    assert told == ["The last deed", *(f"Deed {number}, with [redacted]." for number in (4, 3, 2, 1, 0))]
    assert "There are no actions since" in pages[1]


def test_a_retry_that_nobody_noted_is_told_from_the_numbers(queue, story, operator, job_in):
    anew, waits = "Retried, with all its attempts", "Attempt 1 of 3, once a worker takes the job"
    job_id = job_in("dead_letter")
    queue.operator.retry([job_id])
    began = "Attempt 1 of 3 began"
    assert story(job_id).titles == ["Queued", began, "Attempt 1: failed", anew, waits]
    assert settle(queue, released(take_one(queue))) == ()  # not counted, so the next has its number
    assert settle(queue, failing(take_one(queue), Dead("attempts used up"))) == ()
    assert story(job_id).titles.count(anew) == 1
    operator.press("retry", job_id)
    found = story(job_id)
    assert found.titles[-3:] == ["Attempt 1: failed", "visitor0, in the admin", waits]
    assert found.titles.count(anew) == 1
    assert "not in the admin" in found.texts[found.titles.index(anew)]


# Hostile values


@pytest.mark.parametrize("duration", [-5.0, 1e300, 0.0])
def test_a_duration_that_is_none_harms_nothing(queue, story, job_in, duration):
    job_id = job_in("dead_letter")
    Attempt.objects.using(queue.alias).update(duration=duration)
    assert story(job_id).titles == ["Queued", "Attempt 1 of 3 began", "Attempt 1: failed", "Given up: attempts used up"]


@pytest.mark.parametrize(("duration", "seconds"), [(5.0, 5), (50_000.0, 40), (None, None), (-1.0, None), (1e300, None)])
def test_an_attempt_began_as_long_ago_as_it_took_but_not_before_the_one_before_it_ended(
    queue, story, duration, seconds
):
    job_id, now = put(queue), SYSTEM.now()
    change(queue, job_id, created_at=now - timedelta(hours=1))
    for fence, ago, took in ((1, 100, 2.0), (2, 60, duration)):
        Attempt.objects.using(queue.alias).create(
            job_id=job_id,
            fence=fence,
            attempt=fence,
            owner="me",
            ending="failed",
            duration=took,
            ended_at=now - timedelta(seconds=ago),
        )
    change(queue, job_id, attempts=2, fence=2)
    found = story(job_id)
    begins = {title: moments for title, moments in zip(found.titles, found.moments, strict=True) if "began" in title}
    second = begins.get("Attempt 2 of 3 began")
    assert (second is None) == (seconds is None)
    if second is not None:
        assert second[0] == (now - timedelta(seconds=60 + seconds)).isoformat()


def test_an_attempt_that_was_not_counted_says_so(queue, story):
    """A job that may have been killed because of another one runs once more by itself."""
    job_id = put(queue, max_retries=1)
    assert settle(queue, failing(take_one(queue), Alone(), Ending.CRASHED)) == ()
    assert settle(queue, failing(take_one(queue), Dead("crashed"), Ending.CRASHED)) == ()
    ended = [title for title in story(job_id).titles if "began" not in title]
    assert ended == ["Queued", "Attempt 1, not counted: crashed", "Attempt 1: crashed", "Given up: crashed"]


def test_turned_writing_turns_nothing_around(queue, operator, job_in):
    name = "a\u202eb\u2066c"
    job_id = put(queue, name, parent_id=name)
    failure = Failure.of(Ending.FAILED, error_class=name, message=name, traceback=name)
    claim = take_one(queue, owner=name, types=frozenset({name}))
    assert settle(queue, settled(claim, Dead(name), failure)) == ()
    log(queue, operator, job_id, name)
    User.objects.filter(pk=operator.user.pk).update(username=name)
    page = operator.page(job_id).content.decode()
    ordered = page.split('<ol class="jq-timeline"')[1].split("</ol>")[0]
    assert "\u202e" not in ordered
    assert "\u2066" not in ordered
    assert "a\ufffdb" in ordered


@pytest.mark.sqlite
@pytest.mark.parametrize("alias", ["default"], indirect=True)
def test_a_nul_in_what_another_program_wrote_is_not_handed_on(queue, story, job_in):
    job_id = job_in("dead_letter")
    Attempt.objects.using(queue.alias).update(message="a\0b", traceback="c\0d", owner="e\0f")
    text = " ".join(story(job_id).texts)
    assert "\0" not in text
    assert "a\ufffdb" in text


def test_what_is_to_come_is_told_of_queued_jobs_alone(queue, job_in):
    job = Job.objects.using(queue.alias).get(pk=job_in("completed"))
    assert timeline.to_come(job, SYSTEM.now()) is None
