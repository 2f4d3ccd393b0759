"""Tests of the reasons why a job isn't running: translated on pages, in English in commands."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import translation

from jobqueue.admin.display import WORDING
from jobqueue.cli import reason_text as told_by_commands
from jobqueue.observe import reasons as observed
from jobqueue.observe.reasons import ITS_TURN, Scene, reasons
from jobqueue.records import (
    JobRecord,
    Limit,
    LimitKind,
    LimitUse,
    PauseRecord,
    Scope,
    WorkerRecord,
    WorkerState,
)
from jobqueue.testing.clock import NOON

LATER, EARLIER = NOON + timedelta(minutes=5), NOON - timedelta(minutes=5)


def job(status="queued", **values):
    usual = {"payload": None, "payload_version": 1, "attempts": 1, "max_retries": 3, "fence": 1, "priority": 5}
    moments = {"scheduled_at": NOON, "created_at": NOON, "updated_at": NOON}
    return JobRecord(**{"id": "7", "type": "resize", "queue": "images", "status": status} | usual | moments | values)


def worker(**values):
    usual = {"owner": "host:1:ab", "name": "one", "host": "host", "pid": 1, "version": "0", "processes": 1, "slots": 2}
    return WorkerRecord(**usual | {"types": ("resize",), "started_at": NOON, "seen_at": NOON} | values)


def scene(one, *workers, pauses=(), ahead=0, known=frozenset({"resize"}), **values):
    return Scene(now=NOON, job=one, pauses=pauses, workers=workers, known_types=known, ahead=ahead, **values)


def use(used=3, key="", per=0.0, **values):
    """Make the use of a limit of 3 that is used up."""
    limit = Limit(Scope.TYPE, "resize", LimitKind.RATE if per else LimitKind.CONCURRENCY, 3, per, key)
    return [LimitUse(limit, "7" if key else "", used, **values)]


def limited(**values):
    return scene(job(), worker(), used_up=use(**values))


SCENES = {
    "relayed": scene(job(), relays_to="shared"),
    "limit_used_up": limited(running=("01J", "02J", "03J")),
    "limit_used_up, of a key": limited(key="account", running=("01J",)),
    "rate_used_up": limited(per=60.0, next_start=timedelta(seconds=1.25)),
    "rate_used_up, of a key": limited(per=0.5, key="account", next_start=timedelta(seconds=1)),
    "running": scene(job("in_progress", lease_owner="me", started_at=EARLIER)),
    "running, asked to stop": scene(job("in_progress", lease_owner="me", cancel_requested_at=EARLIER)),
    "lease_expired": scene(job("in_progress", lease_owner="me", lease_until=EARLIER)),
    "lease_expired, somebody sweeps": scene(job("in_progress", lease_owner="me", lease_until=EARLIER), worker()),
    "completed": scene(job("completed", completed_at=EARLIER)),
    "failed": scene(job("failed", end_reason="cancelled", completed_at=EARLIER)),
    "failed, too late": scene(job("failed", end_reason="expired")),
    "failed, for a reason": scene(job("failed", end_reason="a reason")),
    "failed, for none": scene(job("failed")),
    "dead_letter": scene(job("dead_letter", end_reason="attempts used up", attempts=3, error="disk on fire")),
    "dead_letter, for none": scene(job("dead_letter")),
    "paused": scene(job(), worker(), pauses=[PauseRecord(Scope.QUEUE, "images", "a reason", EARLIER)]),
    "paused, its type": scene(job(), worker(), pauses=[PauseRecord(Scope.TYPE, "resize", "", EARLIER)]),
    "scheduled": scene(job(scheduled_at=LATER), worker()),
    "debounced": scene(job(scheduled_at=LATER, unique_key="page 7", context={"max_wait": 600}), worker()),
    "scheduled, with a key": scene(job(scheduled_at=LATER, unique_key="page 7", context={"language": "de"}), worker()),
    "scheduled, with a foreign wait": scene(
        job(scheduled_at=LATER, unique_key="page 7", context={"max_wait": "1e999"}), worker()
    ),
    "scheduled, with an endless wait": scene(
        job(scheduled_at=LATER, unique_key="page 7", context={"max_wait": 1e11}), worker()
    ),
    "waiting_for_retry": scene(job(scheduled_at=LATER, error="disk on fire"), worker()),
    "no_worker": scene(job()),
    "no_worker, one is silent": scene(job(), worker(seen_at=NOON - timedelta(hours=1))),
    "queue_not_served": scene(job(), worker(queues=("mail",))),
    "type_not_served": scene(job(), worker(types=("other",))),
    "type_not_served, nor known": scene(job(), worker(types=("other",)), known=frozenset()),
    "workers_stopping": scene(job(), worker(state=WorkerState.STOPPING)),
    "slots_busy": scene(job(), worker(busy=2), ahead=7),
    "slots_busy, the only one": scene(job(), worker(busy=1, slots=1)),
    "behind_others": scene(job(), worker(), ahead=1),
    "behind_others, many": scene(job(), worker(), ahead=1_000, cap=1_000),
    "next": scene(job(), worker()),
}


@pytest.fixture
def foreign(monkeypatch):
    """A language in which every word is marked."""

    def marked(text):
        return f"«{text}»" if translation.get_language() else text

    monkeypatch.setattr(observed, "gettext", marked)
    monkeypatch.setattr(observed, "ngettext", lambda one, many, count: marked(one if count == 1 else many))


@pytest.mark.parametrize("name", SCENES)
def test_each_reason_has_its_code_and_a_sentence(name):
    (found,) = reasons(SCENES[name], WORDING)
    assert found.code == name.split(",")[0]
    assert found.text.endswith(".")
    assert "%" not in found.text
    assert found.text[0].isupper() or found.text[0].isdigit()


def test_there_is_a_scene_for_each_reason():
    codes = set(re.findall(r'Reason\(\s*"(\w+)"', Path(observed.__file__).read_text(encoding="utf-8")))
    assert {name.split(",")[0] for name in SCENES} | {"behind_turns"} == codes  # tests/cli/test_turns has that one


def test_a_limit_says_what_uses_it_up():
    said = {name: reasons(SCENES[name], WORDING)[0].text for name in SCENES}
    assert said["limit_used_up"] == "3 of 3 jobs of the type resize run now: 01J, 02J, 03J."
    assert said["limit_used_up, of a key"] == "3 of 3 jobs of the type resize with account 7 run now: 01J, …."
    assert said["rate_used_up"] == "The rate of 3 in 60 s of the type resize is used up; the next start is in 1.2 s."


@pytest.mark.parametrize("name", SCENES)
def test_a_page_tells_it_in_the_language_of_its_reader_and_a_command_in_english(name, foreign):
    with translation.override("de"):
        (page,) = reasons(SCENES[name], WORDING)
        (command,) = told_by_commands.reasons(SCENES[name])
    assert ("«" in page.text) == (not name.startswith("paused"))
    assert "«" not in command.text
    assert command.code == page.code
    with translation.override("de"):
        assert translation.get_language() == "de"


def test_a_debounced_job_says_until_when_calls_move_it():
    (found,) = told_by_commands.reasons(SCENES["debounced"])
    assert found.text.startswith("It waits until 2026-01-16T12:05:00Z, for 5m")
    assert found.text.endswith(", because each new call moves it, at the latest to 2026-01-16T12:10:00Z.")


def test_what_only_depends_on_its_turn_is_known():
    found = {name.split(",")[0] for name, one in SCENES.items() if "due" in reasons(one, WORDING)[0].text}
    assert found == ITS_TURN


def test_numbers_are_written_as_whoever_tells_it_writes_them():
    one = SCENES["behind_others, many"]
    assert "behind 1,000 or more due jobs" in reasons(one, WORDING)[0].text
    with translation.override("de"):
        assert "1.000" in reasons(one, WORDING)[0].text
        assert "1,000" in told_by_commands.reasons(one)[0].text


def test_an_error_is_told_beside_the_sentence_and_without_secrets():
    hidden = job("dead_letter", error="login with hunter2 refused", payload={"password": "hunter2"})
    (found,) = reasons(scene(hidden), WORDING)
    assert (found.error, "login" in found.text) == ("login with [redacted] refused", False)
    (told,) = told_by_commands.reasons(scene(hidden))
    assert told.text.endswith(" Its last error: login with [redacted] refused")


@pytest.mark.parametrize("name", ["%s", "%(count)s", "{0}", "100 %"])
def test_a_name_is_never_read_as_a_form(name):
    pause = PauseRecord(Scope.QUEUE, name, name, NOON)
    for one in (
        scene(job(queue=name), pauses=[pause]),
        scene(job(type=name), worker(types=())),
        scene(job(queue=name)),
    ):
        assert all(found.text for found in reasons(one, WORDING))
