"""Retry, cancel and purge: what they do to each status, what they tell, and what they leave in the log."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.urls import reverse

from jobqueue.admin import acting, verbs
from jobqueue.errors import DatabaseBusy
from jobqueue.models import Attempt, Job
from jobqueue.testing.contract.harness import draft, put, put_all, take_one
from tests.admin.conftest import STATUSES, row, told

GONE = None
EFFECTS = {
    "retry": {"failed": "queued", "dead_letter": "queued"},
    "cancel": {"queued": "failed", "in_progress": "in_progress"},
    "purge": {"queued": GONE, "completed": GONE, "failed": GONE, "dead_letter": GONE},
}
AGREED = {"confirmed": "yes", "expected": "1"}


def log():
    return list(LogEntry.objects.order_by("pk").values_list("object_id", "action_flag", "user__username"))


@pytest.mark.parametrize("by", ["press", "act"])
@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("verb", EFFECTS)
def test_what_a_verb_does_to_a_status(queue, operator, job_in, verb, status, by):
    job_id = job_in(status)
    answer = getattr(operator, by)(verb, job_id, **AGREED)
    fits = status in EFFECTS[verb]
    after = row(queue, job_id)
    assert (after and after.status) == EFFECTS[verb].get(status, status)
    flag = DELETION if verb == "purge" else CHANGE
    assert log() == ([(job_id, flag, operator.user.username)] if fits else [])
    (message,) = told(answer)
    assert message.startswith("1 job is" if fits else "1 job was left alone: ")
    assert fits or job_id in message
    assert verb != "cancel" or status != "in_progress" or after.cancel_requested_at


def test_a_purge_takes_the_history_along(queue, operator, job_in):
    job_id = job_in("dead_letter")
    attempts = Attempt.objects.using(queue.alias)
    assert attempts.filter(job_id=job_id).exists()
    operator.press("purge", job_id, **AGREED)
    assert not attempts.filter(job_id=job_id).exists()


@pytest.mark.parametrize("verb", EFFECTS)
def test_a_verb_is_not_done_by_following_a_link(queue, operator, job_in, verb):
    job_id = job_in("dead_letter")
    assert operator.client.get(reverse(f"admin:jobqueue_job_{verb}", args=[job_id])).status_code == 405
    assert row(queue, job_id).status == "dead_letter"


@pytest.mark.parametrize("job_id", ["nothing", "_5F", "a/b", "\0", "' OR 1=1 --", "ä" * 300])
@pytest.mark.parametrize("verb", EFFECTS)
def test_an_unknown_id_changes_nothing_and_is_told(queue, operator, job_in, verb, job_id):
    job_in("dead_letter")
    before = list(Job.objects.using(queue.alias).values())
    answer = operator.press(verb, job_id, **AGREED)
    assert answer.status_code == 200
    assert told(answer)[0].startswith("1 job was left alone: is gone")
    assert list(Job.objects.using(queue.alias).values()) == before
    assert log() == []


def test_an_unknown_id_among_the_selected_is_told(queue, operator, job_in):
    job_id = job_in("dead_letter")
    answer = operator.act("retry", job_id, "nothing")
    assert told(answer) == [
        "1 job is queued again.",
        "1 job was left alone: is gone, or no longer in this list (nothing).",
    ]
    assert operator.act("retry", "\0").status_code == 400


def test_jobs_that_a_verb_does_not_fit_are_told_with_the_reason(queue, operator, job_in):
    ids = [job_in("dead_letter"), job_in("completed"), job_in("completed")]
    answer = operator.act("retry", *ids)
    done, left = told(answer)
    assert done == "1 job is queued again."
    assert left.startswith("2 jobs were left alone: is completed; only failed jobs and dead letters are retried (")
    assert [one for one, _flag, _user in log()] == ids[:1]


def test_a_retry_that_a_newer_job_stands_in_the_way_of_says_so(queue, operator, job_in):
    job_id = job_in("failed", unique_key="one at a time")
    put(queue, unique_key="one at a time")
    (message,) = told(operator.press("retry", job_id))
    assert "a newer job holds its unique key 'one at a time'" in message


def test_more_reasons_than_fit_are_counted(rf, queue, operator, job_in):
    ids = []
    for number in range(verbs.REASONS_SHOWN + 2):
        ids.append(job_in("failed", unique_key=f"key {number}"))
        put(queue, unique_key=f"key {number}")
    assert told(operator.act("retry", *ids))[-1] == "2 more reasons are not shown."


def test_work_is_done_in_batches(queue, operator, monkeypatch):
    monkeypatch.setattr(verbs, "BATCH", 2)
    sizes = []
    cancel = type(queue).cancel
    monkeypatch.setattr(type(queue), "cancel", lambda self, ids: sizes.append(len(ids)) or cancel(self, ids))
    ids = put_all(queue, *(draft() for _ in range(5)))
    assert told(operator.act("cancel", *ids)) == ["5 jobs are cancelled; those that run are asked to stop."]
    assert sizes == [2, 2, 1]
    assert len(log()) == 5


def test_a_database_that_gives_up_midway_leaves_word_of_what_was_done(queue, operator, monkeypatch):
    monkeypatch.setattr(verbs, "BATCH", 1)
    cancel, left = type(queue).cancel, [1]

    def once(self, ids):
        if not left:
            raise DatabaseBusy("The write lock is taken.")
        left.pop()
        return cancel(self, ids)

    monkeypatch.setattr(type(queue), "cancel", once)
    answer = operator.act("cancel", *put_all(queue, draft(), draft()))
    assert told(answer) == [
        "The write lock is taken.",
        "1 job is cancelled; if it runs, it is asked to stop.",
    ]
    assert len(log()) == 1


# The question before a purge


def test_a_purge_asks_first_and_says_how_many(queue, operator, job_in):
    ids = [job_in("dead_letter"), job_in("completed"), job_in("in_progress")]
    for answer in (operator.act("purge", *ids), operator.act("purge", *ids, confirmed="yes")):
        page = answer.content.decode()
        assert "<strong>3 jobs</strong> will be deleted" in page
        assert "1 of them is running and will be left alone" in page
        assert all(job_id in page for job_id in ids)
    assert Job.objects.using(queue.alias).count() == 3
    told_after = told(operator.act("purge", *ids, confirmed="yes", expected="3"))
    assert told_after[0] == "2 jobs are deleted, with their history."
    assert "is running; cancel it first" in told_after[1]
    assert row(queue, ids[2]).status == "in_progress"


def test_a_purge_of_one_job_asks_first(queue, operator, job_in):
    job_id = job_in("dead_letter")
    answer = operator.press("purge", job_id)
    assert "<strong>1 job</strong> will be deleted" in answer.content.decode()
    assert answer.context["back"] == reverse("admin:jobqueue_job_change", args=[job_id])
    assert row(queue, job_id).status == "dead_letter"


@pytest.mark.parametrize("expected", ["", "0", "-1", "x", "1e9", "9" * 5_000])
def test_a_purge_agreed_to_in_nonsense_asks_again(queue, operator, job_in, expected):
    job_id = job_in("dead_letter")
    agreed = {"confirmed": "yes", "expected": expected}
    for answer in (operator.press("purge", job_id, **agreed), operator.act("purge", job_id, **agreed)):
        assert "<strong>1 job</strong> will be deleted" in answer.content.decode()
    assert row(queue, job_id).status == "dead_letter"


def test_a_purge_of_all_that_match_asks_again_when_more_match_than_it_said(queue, operator, job_in):
    ids = [job_in("dead_letter"), job_in("dead_letter")]
    across = {"select_across": "1", "query": "?status=dead_letter"}
    asked = operator.act("purge", ids[0], **across)
    assert asked.context["expected"] == 2
    assert asked.content.decode().count('name="_selected_action"') == 1
    job_in("dead_letter")
    kept = job_in("completed")
    again = operator.act("purge", ids[0], **across, confirmed="yes", expected="2")
    assert again.context["expected"] == 3
    operator.act("purge", ids[0], **across, confirmed="yes", expected="3")
    assert list(Job.objects.using(queue.alias).values_list("pk", flat=True)) == [kept]


def test_an_action_on_all_that_match_is_bounded_and_says_so(queue, operator, monkeypatch):
    monkeypatch.setattr(acting, "CAP", 2)
    ids = put_all(queue, *(draft() for _ in range(3)))
    answer = operator.act("cancel", ids[0], select_across="1")
    assert told(answer)[1] == "At most 2 jobs are handled at once; repeat the action for the others."
    assert row(queue, ids[0]).status == "queued"


# Dead letters


@pytest.mark.parametrize("verb", ["retry", "purge"])
def test_a_dead_letter_dealt_with_leads_back_to_the_list(queue, operator, job_in, verb):
    job_id = job_in("dead_letter")
    answer = operator.press(verb, job_id, model="deadletter", **AGREED)
    assert answer.redirect_chain == [(reverse("admin:jobqueue_deadletter_changelist"), 302)]
    # Logged as a job, so that the entry still leads somewhere.
    assert LogEntry.objects.get().content_type.model == "job"


def test_a_purge_of_dead_letters_spares_what_is_one_no_more(queue, operator, job_in):
    job_id = job_in("dead_letter")
    queue.retry([job_id])
    for answer in (
        operator.act("purge", job_id, model="deadletter", confirmed="yes", expected="1"),
        operator.press("purge", job_id, model="deadletter", **AGREED),
    ):
        assert "is gone, or no longer in this list" in told(answer)[0]
    assert row(queue, job_id).status == "queued"


def test_dead_letters_cannot_be_cancelled(operator, job_in):
    actions = operator.list("deadletter").context["action_form"].fields["action"].choices
    assert [name for name, _label in actions if name] == ["retry", "purge"]


def test_the_page_of_a_dead_letter_that_is_one_no_more_leads_to_the_job(queue, operator, job_in):
    job_id = job_in("dead_letter")
    queue.retry([job_id])
    address = reverse("admin:jobqueue_deadletter_change", args=[job_id])
    answer = operator.client.get(address, follow=True)
    assert answer.redirect_chain == [(reverse("admin:jobqueue_job_change", args=[job_id]), 302)]
    assert told(answer) == ["This job is no longer a dead letter."]


def test_what_operators_did_is_in_the_history_of_the_job(queue, operator, job_in):
    job_id = job_in("dead_letter")
    operator.press("retry", job_id, model="deadletter")
    take_one(queue)
    operator.press("cancel", job_id)
    for model in ("job", "deadletter"):
        history = operator.client.get(reverse(f"admin:jobqueue_{model}_history", args=[job_id]), follow=True)
        page = history.content.decode()
        assert "Retried." in page
        assert "Cancelled." in page
        assert operator.user.username in page
