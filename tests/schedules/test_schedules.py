"""Tests of schedules in code: what is declared, stored, fired and merged with what operators changed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from jobqueue import Concurrency, Cron, Every, InvalidHandler, InvalidOption, job, schedule
from jobqueue.models import Job, Schedule
from jobqueue.policy.schedules.rule import read_rule
from jobqueue.schedules import operation, summary
from jobqueue.schedules.declared import declared, forget
from jobqueue.schedules.firing import LimitKeyFailed, fire_due
from jobqueue.schedules.sync import differences, reset, sync
from tests.conftest import ON_SQLITE

MINUTE = timedelta(minutes=1)
EACH_MINUTE = Every(minutes=1)


def fire(backend):
    """Fire all that is due, and return the jobs."""
    _due, ids = fire_due(backend)
    return [backend.jobs.get(one) for one in ids]


def declare(tidy, rule=EACH_MINUTE, name="nightly", **options):
    schedule(name, tidy, rule, **options)
    return name


# Rules


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("61 * * * *", "bad minute field '61'; it takes 0 to 59"),
        ("* 25 * * *", "bad hour field '25'"),
        ("0 0 0 1 BAD *", "bad month field 'BAD'"),
        ("0 0 31 2 *", "never fires"),
        ("0 0 30 2 *", "never fires"),
        ("* * *", "has 3 fields; it needs five, or six"),
        ("@dayly", "Did you mean '@daily'?"),
        ("", "must be a text"),
        ("* " * 150, "must be a text"),
    ],
)
def test_a_wrong_cron_line_is_refused_with_its_field(line, words):
    with pytest.raises(InvalidOption, match=words.replace("?", r"\?")):
        Cron(line)


def test_a_zone_that_does_not_exist_is_refused_with_the_nearest():
    with pytest.raises(InvalidOption, match="'Europe/Berlin'"):
        Cron("0 3 * * *", tz="Europe/Berlyn")


@pytest.mark.parametrize("given", [{}, {"seconds": -1}, {"minutes": 0.5}, {"days": 400}])
def test_a_wrong_interval_is_refused(given):
    with pytest.raises(InvalidOption):
        Every(**given)


@pytest.mark.parametrize(
    ("rule", "text", "words"),
    [
        (Cron("0  3 * * 1-5"), "0 3 * * 1-5", "at 03:00 on Monday through Friday"),
        (Cron("@daily"), "@daily", "at 00:00 every day"),
        (Every(minutes=90), "every 90m", "every 90 minutes"),
        (Every(hours=1), "every 1h", "every hour"),
    ],
)
def test_a_rule_is_read_back_and_told_in_words(rule, text, words):
    assert (rule.text, rule.in_words()) == (text, words)
    after = datetime(2026, 1, 16, 12, 0, 30, tzinfo=UTC)
    assert next(read_rule(text, "UTC").after(after)) == next(rule.after(after))


def test_a_line_with_seconds_at_a_fixed_time_keeps_to_the_rule_for_changed_clocks():
    after = datetime(2026, 3, 28, 12, 0, tzinfo=UTC)
    slots = Cron("30 30 2 * * *", tz="Europe/Berlin").after(after)
    assert next(slots) == datetime(2026, 3, 29, 1, 0, 30, tzinfo=UTC)


# Declarations


def test_a_type_has_schedules_of_its_own(tidy):
    @job("tidy_twice", schedule=[Cron("0 3 * * *"), Every(hours=6)])
    def tidy_twice() -> None:
        pass

    assert [declared()[name]["rule"] for name in ("tidy_twice", "tidy_twice-2")] == ["0 3 * * *", "every 6h"]


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"payload": {"age": "old"}}, InvalidHandler, "does not fit the job type 'tidy'"),
        ({"rule": "0 3 * * *"}, InvalidOption, "takes Cron"),
        ({"missed": "sometimes"}, InvalidOption, "must be one of skip, once, all"),
        ({"max_runs": 0}, InvalidOption, "max_runs"),
        ({"jitter": timedelta(days=2)}, InvalidOption, "jitter"),
        ({"idempotency_key": "k"}, InvalidOption, "is not an option of schedules"),
        ({"overlap": "skip", "unique_key": "k"}, InvalidOption, "cannot be combined"),
        ({"priority": 11}, InvalidOption, "priority"),
        ({"name": "a b"}, InvalidOption, "letters"),
        (
            {"start": datetime(2026, 1, 2, tzinfo=UTC), "end": datetime(2026, 1, 1, tzinfo=UTC)},
            InvalidOption,
            "must be after start",
        ),
    ],
)
def test_a_wrong_declaration_is_refused_at_import(tidy, given, error, words):
    with pytest.raises(error, match=words):
        declare(tidy, **given)


def test_options_of_using_are_those_of_the_schedule(tidy):
    schedule("nightly", tidy.using(queue="mail"), EACH_MINUTE, priority=2)
    assert declared()["nightly"]["options"] == {"queue": "mail", "priority": 2}


# Synchronisation


def test_what_the_code_declares_is_stored_and_fired(clocked, clock, tidy):
    declare(tidy, payload={"age": 7}, queue="low", priority=9, expires_after=30, jitter=0)
    assert sync(clocked).made == ("nightly",)
    assert sync(clocked).changed == ()
    clock.advance(MINUTE)
    (fired,) = fire(clocked)
    assert (fired.type, fired.payload, fired.queue, fired.priority) == ("tidy", {"age": 7}, "low", 9)
    assert (fired.scheduled_at, fired.expires_at) == (clock.now(), clock.now() + timedelta(seconds=30))


@ON_SQLITE
@pytest.mark.parametrize("parallel", [None, True])
def test_the_jobs_of_a_schedule_have_their_places_in_lanes(clocked, clock, tidy, settings, parallel):
    settings.JOBQUEUE = {**settings.JOBQUEUE, "QUEUES": {"imports": {"ordered": "age"}}}

    @job("bill", queue="imports", parallel=parallel)
    def bill(age: int) -> None:
        pass

    declare(bill, payload={"age": 7})
    sync(clocked)
    clock.advance(MINUTE)
    (made,) = fire(clocked)
    assert (made.lane, made.parallel, made.lane_position is None) == ("7", bool(parallel), False)


def test_the_jobs_of_a_schedule_have_the_keys_of_their_limits(clocked, clock, tidy):
    @job("charge", limits=[Concurrency(1, key="account")])
    def charge(account: int) -> None:
        pass

    declare(charge, payload={"account": 7})
    sync(clocked)
    clock.advance(MINUTE)
    by_hand = operation.run_now(operation.find("nightly"))
    assert [one.concurrency_key for one in [*fire(clocked), clocked.jobs.get(by_hand.id)]] == ['{"account":"7"}'] * 2


@ON_SQLITE
def test_jitter_delays_all_jobs_by_the_same(clocked, clock, tidy):
    declare(tidy, jitter=10)
    sync(clocked)
    delays = set()
    for _ in range(3):
        clock.advance(MINUTE)
        delays |= {one.scheduled_at - clock.now() for one in fire(clocked)}
    assert len(delays) == 1
    assert timedelta(0) <= delays.pop() < timedelta(seconds=10)


@ON_SQLITE
def test_an_operators_changes_and_pause_stay_until_they_are_reset(clocked, clock, tidy):
    declare(tidy, Cron("0 3 * * *"))
    sync(clocked)
    operation.edit(operation.find("nightly"), {"rule": "0 4 * * *"})
    operation.pause(operation.find("nightly"), "a storm")
    declare(tidy, Cron("0 5 * * *"), missed="all")
    assert sync(clocked).changed == ("nightly",)
    now = operation.find("nightly")
    assert (now.rule, now.missed, now.pause_reason) == ("0 4 * * *", "all", "a storm")
    assert differences(now) == {"rule": ("0 5 * * *", "0 4 * * *")}
    assert reset(clocked, now)
    assert (operation.find("nightly").rule, operation.find("nightly").pause_reason) == ("0 5 * * *", "a storm")
    assert sync(clocked).changed == ()


@ON_SQLITE
def test_one_that_left_the_code_is_marked_and_comes_back(clocked, clock, tidy):
    declare(tidy)
    sync(clocked)
    forget("nightly")
    assert sync(clocked).left == ("nightly",)
    clock.advance(MINUTE)
    assert fire(clocked) == []
    assert summary.state_of(operation.find("nightly"), None) == "left the code"
    declare(tidy)
    assert sync(clocked).changed == ("nightly",)
    clock.advance(MINUTE)
    assert len(fire(clocked)) >= 1


@ON_SQLITE
def test_a_schedule_that_an_operator_made_keeps_its_name(clocked, tidy):
    operation.add("nightly", operation.read_fields("tidy", "every 1h", "UTC", {"age": 1}, {}))
    declare(tidy)
    assert sync(clocked).taken == ("nightly",)
    with pytest.raises(InvalidOption, match="is taken"):
        operation.add("nightly", operation.read_fields("tidy", "every 1h", "UTC", {"age": 1}, {}))


# Pauses


@ON_SQLITE
@pytest.mark.parametrize(("while_paused", "jobs"), [("drop", 0), ("keep", 3)])
def test_the_slots_of_a_pause_are_dropped_or_missed(clocked, clock, tidy, while_paused, jobs):
    declare(tidy, while_paused=while_paused, missed="all")
    sync(clocked)
    operation.pause(operation.find("nightly"))
    clock.advance(3 * MINUTE + timedelta(seconds=30))
    assert fire(clocked) == []
    operation.resume(operation.find("nightly"))
    assert len(fire(clocked)) == jobs
    clock.advance(MINUTE)
    assert len(fire(clocked)) == 1


@ON_SQLITE
def test_run_now_makes_a_job_beside_the_slots_also_while_paused(clocked, clock, tidy):
    declare(tidy, overlap="skip")
    sync(clocked)
    operation.pause(operation.find("nightly"))
    first, second = operation.run_now(operation.find("nightly")), operation.run_now(operation.find("nightly"))
    assert (first.created, second.created, second.id) == (True, False, first.id)


# Bad rows


def test_a_payload_that_no_longer_fits_marks_the_schedule_and_keeps_its_slots(clocked, clock, tidy):
    declare(tidy, missed="all")
    sync(clocked)
    Schedule.objects.using(clocked.alias).update(payload={"age": "old"})
    clock.advance(2 * MINUTE)
    assert fire(clocked) == []
    assert "does not validate" in operation.find("nightly").trouble
    Schedule.objects.using(clocked.alias).update(payload={"age": 1})
    clock.advance(MINUTE)
    assert len(fire(clocked)) == 3
    assert operation.find("nightly").trouble == ""


def test_a_limits_key_that_fails_is_told_and_the_schedule_fires_when_it_works_again(clocked, clock, tidy):
    accounts = {}

    def owner(payload):
        return accounts[payload.account]

    @job("charge", limits=[Concurrency(1, key=owner)])
    def charge(account: int) -> None:
        pass

    declare(charge, payload={"account": 7}, missed="all")
    sync(clocked)
    clock.advance(2 * MINUTE)
    assert fire(clocked) == []
    told = "The key of a limit or lane of 'charge' can't be computed: KeyError: 7"
    assert operation.find("nightly").trouble == told
    with pytest.raises(LimitKeyFailed, match="KeyError: 7"):
        operation.run_now(operation.find("nightly"))
    accounts[7] = "acme"
    clock.advance(MINUTE)
    assert len(fire(clocked)) == 3
    assert operation.find("nightly").trouble == ""


@pytest.mark.parametrize(
    "nonsense",
    [
        {"rule": "* * * *"},
        {"rule": "every 99999999d"},
        {"zone": "../../etc/passwd"},
        {"options": {"priority": "high"}},
        {"options": {"queue": "q" * 101}},
        {"options": [1]},
        {"max_runs": -5},
        {"payload": "[["},
        {"missed": "never"},
        {"start_at": datetime(9999, 1, 1, tzinfo=UTC)},
    ],
)
def test_a_row_with_nonsense_disables_itself_and_never_the_others(clocked, clock, tidy, nonsense):
    declare(tidy)
    declare(tidy, name="sound")
    sync(clocked)
    Schedule.objects.using(clocked.alias).filter(name="nightly").update(**nonsense)
    for _ in range(3):
        clock.advance(MINUTE)
        fire(clocked)
    assert operation.find("sound").runs == 3
    assert len(fire(clocked)) == 0


@ON_SQLITE
def test_a_row_with_nonsense_does_not_keep_the_code_from_being_stored(clocked, clock, tidy):
    declare(tidy, Cron("0 3 * * *"))
    sync(clocked)
    Schedule.objects.using(clocked.alias).update(rule="nonsense\x07")
    declare(tidy, Cron("0 3 * * *"), missed="all")
    declare(tidy, name="sound")
    assert sync(clocked).made == ("sound",)


@ON_SQLITE
def test_a_type_that_no_live_worker_knows_is_said(clocked, tidy):
    declare(tidy)
    sync(clocked)
    one = operation.find("nightly")
    assert summary.state_of(one, frozenset({"resize"})) == "unknown type"
    assert summary.state_of(one, frozenset({"tidy"})) == "active"
    assert summary.state_of(replace(one, next_at=None), None) == "ended"


# Long times and large numbers


@ON_SQLITE
def test_a_week_passes_on_the_virtual_clock(clocked, clock, tidy):
    declare(tidy, Cron("0 */6 * * *"), missed="all")
    declare(tidy, Every(hours=12), name="twice")
    sync(clocked)
    end = clock.now() + timedelta(days=7)
    while (moment := fire_due(clocked)[0].next_at) is not None and moment <= end:
        clock.advance(moment - clock.now())
    slots = list(Job.objects.using(clocked.alias).values_list("slot_at", flat=True))
    assert len(slots) == 28 + 14


@ON_SQLITE
def test_a_year_away_costs_no_list_of_all_slots(clocked, clock, tidy):
    declare(tidy, Every(seconds=1))
    declare(tidy, Cron("* * * * * *"), name="second", missed="all")
    sync(clocked)
    clock.advance(timedelta(days=365))
    assert len(fire(clocked)) == (1 + 10) + (100 + 10)


@pytest.mark.parametrize(
    "stored", [{"jitter": "x"}, {"jitter": 1e300}, {"start_at": "x"}, {"rule": 7}, {"options": 7}, {"end_at": {}}]
)
def test_what_another_program_made_of_the_codes_values_is_refused(clocked, tidy, stored):
    declare(tidy)
    sync(clocked)
    Schedule.objects.using(clocked.alias).update(declared=stored)
    with pytest.raises(InvalidOption, match="declared of the schedule 'nightly' is no schedule"):
        reset(clocked, operation.find("nightly"))
    assert sync(clocked).changed == ("nightly",)
