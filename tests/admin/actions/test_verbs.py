"""Tests of the operator's actions: their effect on each status, their messages, and their log entries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.urls import reverse

from jobqueue.admin.actions import verbs
from jobqueue.clock import SYSTEM
from jobqueue.errors import DatabaseBusy
from jobqueue.models import Attempt, Job, Order
from jobqueue.orders import VERBS, Instruction, execution
from jobqueue.testing.contract.harness import draft, put, put_all, take_one
from tests.admin.conftest import PERMISSIONS, STATUSES, carry_out, is_question, row, told
from tests.conftest import ON_SQLITE

GONE = None
EFFECTS = {
    "retry": {"failed": "queued", "dead_letter": "queued"},
    "run_now": {"queued": "queued"},
    "reschedule": {"queued": "queued"},
    "prioritise": {"queued": "queued"},
    "move": {"queued": "queued"},
    "cancel": {"queued": "failed", "in_progress": "in_progress"},
    "purge": {"queued": GONE, "completed": GONE, "failed": GONE, "dead_letter": GONE},
}
#: What a verb has to be told.
TOLD = {"reschedule": {"amount": "2", "unit": "hours"}, "prioritise": {"priority": "1"}, "move": {"queue": "mail"}}
AGREED = {"agreed": True}
PLAIN = ("retry", "run_now", "cancel")
LATER = {"delay": timedelta(days=1)}


def log():
    return list(LogEntry.objects.order_by("pk").values_list("object_id", "action_flag", "user__username"))


def said():
    return list(LogEntry.objects.order_by("pk").values_list("change_message", flat=True))


def test_the_verbs_are_these_and_an_order_knows_them():
    assert set(VERBS) == set(EFFECTS) == set(PERMISSIONS) == set(Instruction.model_fields["verb"].annotation.__args__)
    assert {verb.name: verb.permission for verb in VERBS.values()} == {
        name: f"jobqueue.{codename}" for name, codename in PERMISSIONS.items()
    }
    assert {verb.name for verb in VERBS.values() if not verb.asks_first} == set(PLAIN)


@pytest.mark.parametrize(
    ("alias", "by"),
    [
        pytest.param("default", "button", marks=pytest.mark.sqlite),
        pytest.param("default", "list", marks=pytest.mark.sqlite),
        pytest.param("postgres", "list", marks=pytest.mark.postgres),  # a button leads to the same statements
    ],
    indirect=["alias"],
)
@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("verb", EFFECTS)
def test_what_a_verb_does_to_a_status(queue, operator, job_in, at_once, verb, status, by):
    job_id = job_in(status, **(LATER if status == "queued" else {}))
    fits, values = status in EFFECTS[verb], TOLD.get(verb, {})
    asked = operator.act(verb, job_id) if by == "list" else operator.press(verb, job_id)
    answer = operator.agree(asked, **values) if is_question(asked) and fits else asked
    if verb == "purge" and fits:
        carry_out(queue)
    after = row(queue, job_id)
    assert (after and after.status) == EFFECTS[verb].get(status, status)
    if is_question(answer):
        assert not fits
        assert "There is nothing to do" in answer.content.decode()
        assert f"{after.get_status_display()} (1): " in answer.content.decode()
    elif verb != "purge":
        (message,) = told(answer)
        assert message.startswith("1 job is" if fits else "1 job was left alone: ") or "1 job has" in message
        assert fits or job_id in message
    # A button that acts at once is logged with the job, everything else with its order.
    (logged,) = log() if fits else [None]
    is_order = by == "list" or verb not in PLAIN
    assert logged in (
        [None]
        if not fits
        else [(Order.objects.using(queue.alias).get().pk if is_order else job_id, CHANGE, operator.user.username)]
    )
    assert verb != "cancel" or status != "in_progress" or after.cancel_requested_at


def test_a_job_is_made_due_put_off_moved_and_given_another_priority(queue, operator):
    job_id = put(queue, **LATER)
    began = SYSTEM.now()
    operator.press("run_now", job_id)
    assert abs(row(queue, job_id).scheduled_at - began) < timedelta(minutes=1)
    operator.press("reschedule", job_id, **AGREED, amount="2", unit="hours")
    assert abs(row(queue, job_id).scheduled_at - began - timedelta(hours=2)) < timedelta(minutes=1)
    operator.press("reschedule", job_id, **AGREED, scheduled_at="2099-07-01T12:30")
    assert row(queue, job_id).scheduled_at == datetime(2099, 7, 1, 10, 30, tzinfo=UTC)
    operator.press("prioritise", job_id, **AGREED, priority="2")
    operator.press("move", job_id, **AGREED, queue="mail", why="the others are busy")
    assert (row(queue, job_id).priority, row(queue, job_id).queue) == (2, "mail")
    assert said() == [
        "Made due now.",
        *(one for one in said() if one.startswith("Rescheduled to ")),
        "Priority changed to 2.",
        "Moved to the queue mail: the others are busy",
    ]
    assert len(said()) == 5


@pytest.mark.parametrize(
    ("verb", "data", "reason"),
    [
        ("run_now", {}, "is already due"),
        ("prioritise", {"priority": "5"}, "already has that priority"),
        ("move", {"queue": "default"}, "is already in that queue"),
    ],
)
def test_what_would_change_nothing_is_left_alone(queue, operator, verb, data, reason):
    job_id = put(queue)
    before = row(queue, job_id)
    (message,) = told(operator.press(verb, job_id, **AGREED, **data))
    assert message == f"1 job was left alone: it {reason} ({job_id})."
    assert (row(queue, job_id).scheduled_at, row(queue, job_id).updated_at) == (before.scheduled_at, before.updated_at)


def test_who_is_asked_to_stop_twice_is_logged_once(queue, operator, job_in):
    job_id = job_in("in_progress")
    operator.press("cancel", job_id)
    asked_at = row(queue, job_id).cancel_requested_at
    (message,) = told(operator.press("cancel", job_id))
    assert "was already asked to stop" in message
    assert row(queue, job_id).cancel_requested_at == asked_at
    assert len(log()) == 1


def test_a_purge_takes_the_history_along(queue, operator, job_in, at_once):
    job_id = job_in("dead_letter")
    attempts = Attempt.objects.using(queue.alias)
    assert attempts.filter(job_id=job_id).exists()
    operator.press("purge", job_id, **AGREED)
    carry_out(queue)
    assert not attempts.filter(job_id=job_id).exists()


@ON_SQLITE
@pytest.mark.parametrize("page", ["{}", "everything_{}"])
@pytest.mark.parametrize("verb", EFFECTS)
def test_a_link_to_a_verb_asks_and_does_nothing(queue, operator, job_in, verb, page):
    job_id = job_in("dead_letter")
    before = list(Job.objects.using(queue.alias).values())
    args = [job_id] if page == "{}" else []
    address = reverse(f"admin:jobqueue_job_{page.format(verb)}", args=args)
    assert is_question(operator.client.get(address, AGREED, follow=True))
    for method in ("head", "put", "delete", "options"):
        assert getattr(operator.client, method)(address, AGREED).status_code == 405
    assert list(Job.objects.using(queue.alias).values()) == before
    assert log() == []


@ON_SQLITE
@pytest.mark.parametrize("job_id", ["nothing", "_5F", "a/b", "\0", "' OR 1=1 --", "ä" * 300])
@pytest.mark.parametrize("verb", EFFECTS)
def test_an_unknown_id_changes_nothing_and_is_told(queue, operator, job_in, verb, job_id):
    job_in("dead_letter")
    before = list(Job.objects.using(queue.alias).values())
    answer = operator.press(verb, job_id, **AGREED)
    assert answer.status_code == 200
    assert told(answer)[0].startswith("1 job was left alone: it is gone")
    assert list(Job.objects.using(queue.alias).values()) == before
    assert log() == []


def test_an_unknown_id_among_the_selected_is_told(queue, operator, job_in):
    job_id = job_in("dead_letter")
    asked = operator.act("retry", job_id, "nothing")
    assert "1 job: gone or no longer in this list" in asked.content.decode()
    assert told(operator.agree(asked)) == ["1 job is queued again."]
    assert operator.act("retry", "\0").status_code == 400


def test_jobs_that_a_verb_does_not_fit_are_told_with_the_reason(queue, operator, job_in):
    ids = [job_in("dead_letter"), job_in("completed"), job_in("completed")]
    asked = operator.act("retry", *ids)
    assert "completed (2): only cancelled jobs and dead letters can be retried" in asked.content.decode()
    assert told(operator.agree(asked)) == ["1 job is queued again."]
    assert [row(queue, job_id).status for job_id in ids] == ["queued", "completed", "completed"]


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
    assert told(operator.do("retry", *ids))[-1] == "2 more reasons are not shown."


def test_work_is_done_in_batches(queue, operator, monkeypatch):
    monkeypatch.setattr(execution, "BATCH", 2)
    sizes = []
    cancel = type(queue.operator).cancel
    monkeypatch.setattr(type(queue.operator), "cancel", lambda self, ids: sizes.append(len(ids)) or cancel(self, ids))
    ids = put_all(queue, *(draft() for _ in range(5)))
    assert told(operator.do("cancel", *ids)) == ["5 jobs are cancelled; those that are running are asked to stop."]
    assert sizes == [2, 2, 1]
    assert len(log()) == 1


def test_a_database_that_gives_up_midway_leaves_word_of_what_was_done(queue, operator, monkeypatch):
    monkeypatch.setattr(execution, "BATCH", 1)
    cancel, left = type(queue.operator).cancel, [1]

    def once(self, ids):
        if not left:
            raise DatabaseBusy("The write lock is taken.")
        left.pop()
        return cancel(self, ids)

    monkeypatch.setattr(type(queue.operator), "cancel", once)
    answer = operator.do("cancel", *put_all(queue, draft(), draft()))
    assert told(answer) == [
        "The database was busy for too long. The remaining jobs were left alone. Try again.",
        "1 job is cancelled; if it is running, it is asked to stop.",
    ]
    order = Order.objects.using(queue.alias).get()
    assert (order.state, order.done, order.total) == ("stopped", 1, 2)


@pytest.mark.parametrize("alias", [pytest.param("default", marks=pytest.mark.sqlite)], indirect=True)
def test_no_change_is_stored_without_its_entry_in_the_log(queue, operator, job_in, monkeypatch):
    job_id = job_in("dead_letter")

    def full(*_args, **_given):
        raise DatabaseBusy("The log is full.")

    monkeypatch.setattr(type(LogEntry.objects), "log_actions", full)
    assert "busy for too long" in told(operator.press("retry", job_id))[0]
    assert row(queue, job_id).status == "dead_letter"


# Why


@ON_SQLITE
@pytest.mark.parametrize(
    "why",
    [
        "provider is back",
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "%(count)d %s {0} {{ 7|add:7 }}",
        "[{'added': {}}]",
        "ü" * 500,
    ],
)
def test_a_reason_is_kept_as_it_is_and_shown_as_text(queue, operator, job_in, why):
    by_button, by_action = job_in("dead_letter"), job_in("dead_letter")
    operator.press("retry", by_button, why=why)
    operator.do("retry", by_action, why=f"  {why} ")
    assert said() == [f"Retried: {why}"] * 2
    for job_id in (by_button, by_action):
        page = operator.client.get(reverse("admin:jobqueue_job_history", args=[job_id])).content.decode()
        assert "Retried: " in page
        assert "<script>alert" not in page
        assert "<img" not in page


@ON_SQLITE
@pytest.mark.parametrize("why", ["a\nb", "a\x1b[2Jb", "\x00", "a\u2028b", "\u202egnp.exe", "x" * 501])
def test_a_reason_that_cannot_be_read_asks_again_and_changes_nothing(queue, operator, job_in, why):
    job_id = job_in("dead_letter")
    asked = operator.act("retry", job_id)
    for answer in (operator.agree(operator.press("retry", job_id, why=why), why=why), operator.agree(asked, why=why)):
        assert answer.context["form"].errors["why"]
        assert 'class="errorlist"' in answer.content.decode()
    assert row(queue, job_id).status == "dead_letter"
    assert log() == []


# Dead letters


def test_a_dead_letter_dealt_with_leads_back_to_the_list(queue, operator, job_in):
    job_id = job_in("dead_letter")
    answer = operator.press("retry", job_id, model="deadletter", **AGREED)
    assert answer.redirect_chain == [(reverse("admin:jobqueue_deadletter_changelist"), 302)]
    # Logged as a job, so that the entry still leads somewhere.
    assert LogEntry.objects.get().content_type.model == "job"


def test_a_purge_of_dead_letters_spares_what_is_one_no_more(queue, operator, job_in, at_once):
    job_id = job_in("dead_letter")
    asked = operator.act("purge", job_id, model="deadletter")
    queue.operator.retry([job_id])
    operator.agree(asked)
    carry_out(queue)
    assert row(queue, job_id).status == "queued"
    order = Order.objects.using(queue.alias).get()
    assert (order.done, order.left_alone) == (0, 1)
    assert list(order.account["reasons"]) == ["has changed since the jobs were counted"]
    assert "is gone or no longer in this list" in told(operator.press("purge", job_id, model="deadletter"))[0]


def test_dead_letters_are_retried_and_purged_and_nothing_else(operator, job_in):
    job_in("dead_letter")
    actions = operator.list("deadletter").context["action_form"].fields["action"].choices
    assert [name for name, _label in actions if name] == ["retry", "purge"]


def test_the_page_of_a_dead_letter_that_is_one_no_more_leads_to_the_job(queue, operator, job_in):
    job_id = job_in("dead_letter")
    queue.operator.retry([job_id])
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
