"""Tests of schedules in the admin: the list, a schedule's page, the form with its preview, and the verbs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.urls import reverse

from jobqueue.models import Job, Schedule
from jobqueue.policy.settling import completed
from jobqueue.schedules import operation
from jobqueue.testing.contract.harness import bury, settle, take_one
from tests.attacks.test_markup import HOSTILE

ONCE = pytest.mark.parametrize("alias", ["default"], indirect=True)
pytestmark = [ONCE, pytest.mark.sqlite]
TYPES = frozenset({"send_welcome"})
FORM = {
    "name": "weekly",
    "rule": "0 3 * * MON",
    "zone": "Europe/Berlin",
    "payload_0": "8",
    "payload_1": "en",
    "queue": "mail",
    "priority": "3",
    "missed": "all",
    "missed_cap": "5",
    "overlap": "skip",
    "while_paused": "drop",
    "jitter": "0",
    "expires_after": "60",
}


@pytest.fixture
def keeper(queue, sign_in):
    """Someone who may do everything with schedules."""
    return sign_in("view_job", "edit_schedule", "pause_schedule", "run_schedule", "remove_schedule")


@pytest.fixture
def nightly(queue):
    """A schedule at 03:00."""
    fields = operation.read_fields("send_welcome", "0 3 * * *", "Asia/Kolkata", {"user_id": 7}, {})
    return operation.add("nightly", fields)


def address(name, *args):
    return reverse(f"admin:jobqueue_schedule_{name}", args=args)


def text(answer):
    return answer.content.decode()


def test_the_list_tells_the_rule_in_words_and_the_state(keeper, nightly):
    answer = text(keeper.list("schedule"))
    assert "at 03:00 every day" in answer
    assert "Asia/Kolkata" in answer
    operation.pause(nightly, "a storm")
    assert "paused" in text(keeper.list("schedule"))


def test_a_page_shows_runs_with_their_rate_and_the_next_slots_in_both_zones(queue, keeper, nightly):
    for number in range(3):
        operation.run_now(operation.find("nightly"))
        claim = take_one(queue, types=TYPES)
        bury(queue, claim) if number == 0 else settle(queue, completed(claim, "null"))
    answer = text(keeper.page(nightly.id, "schedule"))
    assert "66.6 %" in answer
    assert "03:00:00 IST" in answer
    assert answer.count('<li class="jq-completed"') == 2
    assert keeper.client.get(address("change_live", nightly.id)).json()["parts"]


def test_a_preview_shows_ten_slots_or_what_is_wrong(keeper):
    good = keeper.client.get(address("preview"), {"rule": "0 3 * * *", "zone": "Europe/Berlin"}).json()["html"]
    assert "at 03:00 every day" in good
    assert good.count("<tr>") == 11
    for query, words in (
        ({"rule": "61 * * * *", "zone": "UTC"}, "bad minute field"),
        ({"rule": "0 0 31 2 *", "zone": "UTC"}, "never fires"),
        ({"rule": "0 3 * * *", "zone": "Europe/Berlyn"}, "Europe/Berlin"),
        ({"rule": HOSTILE, "zone": "UTC"}, "fields"),
    ):
        shown = keeper.client.get(address("preview"), query).json()["html"]
        assert words in shown
        assert "<script" not in shown


def test_a_schedule_is_made_and_edited(queue, keeper):
    made = keeper.client.post(f"{address('make')}?type=send_welcome", FORM, follow=True)
    assert "The schedule weekly is stored." in text(made)
    one = operation.find("weekly")
    assert (one.rule, one.zone, one.missed, one.overlap) == ("0 3 * * MON", "Europe/Berlin", "all", "skip")
    assert (dict(one.options), one.missed_cap) == ({"queue": "mail", "priority": 3, "expires_after": 60.0}, 5)
    keeper.client.post(address("edit", one.id), {**FORM, "rule": "every 15m", "payload_0": "9"})
    after = operation.find("weekly")
    assert (after.rule, after.next_at - one.next_at < timedelta(days=7)) == ("every 15m", True)
    assert '"user_id":9' in after.payload.replace(" ", "")
    assert LogEntry.objects.count() == 2


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"rule": "* 25 * * *"}, "bad hour field"),
        ({"zone": "Mars"}, "names no time zone"),
        ({"payload_0": "eight"}, "Enter a whole number"),
        ({"priority": "11"}, "less than or equal to 10"),
        ({"name": "a b"}, "letters"),
        ({"start": "2030-01-02T00:00:00", "end": "2030-01-01T00:00:00"}, "must be after start"),
        ({"missed": "sometimes"}, "Select a valid choice"),
    ],
)
def test_a_wrong_form_is_refused_and_stores_nothing(keeper, wrong, words):
    answer = keeper.client.post(f"{address('make')}?type=send_welcome", {**FORM, **wrong})
    assert words in text(answer)
    assert not Schedule.objects.exists()


def test_verbs_ask_first_and_are_logged(queue, keeper, nightly):
    def do(verb):
        assert keeper.client.get(address(verb, nightly.id)).status_code == 200
        return text(keeper.client.post(address(verb, nightly.id), {"why": "a storm"}, follow=True))

    assert "is paused" in do("pause")
    assert operation.find("nightly").pause_reason == "a storm"
    assert "Nothing had to change" in do("pause")
    assert "is resumed" in do("resume")
    assert "is enqueued" in do("run")
    assert Job.objects.get().schedule_id == nightly.id
    assert "is removed" in do("remove")
    assert "This schedule is gone" in text(keeper.client.get(address("remove", nightly.id), follow=True))
    assert [one.change_message for one in LogEntry.objects.order_by("id")] == [
        f"{verb}: a storm" for verb in ("Pause", "Resume", "Run now", "Remove")
    ]


def test_what_a_reader_may_not_do_is_not_offered(sign_in, nightly):
    reader = sign_in("view_job")
    assert "Add a schedule" not in text(reader.list("schedule"))
    assert "jq-verbs" not in text(reader.page(nightly.id, "schedule"))


def test_secrets_of_a_payload_are_redacted(keeper, nightly):
    code = {"payload": {"user_id": 7, "password": "swordfish"}}
    payload = {"user_id": 7, "password": "hunter2222"}
    Schedule.objects.filter(pk=nightly.id).update(payload=payload, origin="code", declared=code)
    answer = text(keeper.client.get(address("change", nightly.id)))
    assert "hunter2222" not in answer
    assert "swordfish" not in answer
    assert answer.count("[redacted]") == 3
