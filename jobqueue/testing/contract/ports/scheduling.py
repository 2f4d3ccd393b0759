"""Schedules: each slot once, pauses, ends, missed slots and overlap."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from jobqueue.backends.base import Backend
from jobqueue.ids import new_id
from jobqueue.policy.schedules.plan import next_slot, plan
from jobqueue.policy.schedules.rule import Every, read_rule
from jobqueue.records.schedule import Firing, Missed, Overlap, ScheduleRecord
from jobqueue.testing.clock import NOON, VirtualClock
from jobqueue.testing.contract.harness import Contract, draft, finish, job, overlapping, take_one, together

MINUTE = timedelta(minutes=1)


def made(backend: Backend, name: str = "nightly", **values: Any) -> ScheduleRecord:
    """Store a schedule that has a slot each minute, the first one a minute from now."""
    now = backend.now()
    fields: dict[str, Any] = {"id": new_id(), "type": "resize", "rule": "every 1m", "last_slot_at": now, **values}
    schedule = ScheduleRecord(name=name, **fields)
    schedule = replace(schedule, next_at=next_slot(schedule, read_rule(schedule.rule, "UTC"), schedule.last_slot_at))
    assert backend.schedules.add(schedule)
    return found(backend, name)


def found(backend: Backend, name: str = "nightly") -> ScheduleRecord:
    """Return a schedule that must exist."""
    schedule = backend.schedules.get(name)
    assert schedule is not None
    return schedule


def firing(schedule: ScheduleRecord, now: datetime) -> Firing:
    """Return the firing of a schedule's due slots."""
    planned = plan(schedule, Every(minutes=1), now)
    key = None if schedule.overlap is Overlap.ALLOW else f"schedule:{schedule.id}"
    return Firing(
        schedule=schedule,
        drafts=tuple((slot, draft(scheduled_at=slot, unique_key=key)) for slot in planned.slots),
        last_slot_at=planned.last_slot_at,
        next_at=planned.next_at,
        missed_at=planned.missed_at,
        again_at=now + timedelta(seconds=1) if schedule.overlap is Overlap.QUEUE else None,
    )


def fire(backend: Backend, limit: int = 100) -> tuple[str, ...]:
    """Fire what is due."""
    due = backend.schedules.due({"resize"}, limit)
    return backend.schedules.fire([firing(one, due.now) for one in due.schedules])


def slots(backend: Backend, schedule: ScheduleRecord) -> list[float]:
    """Return the slots that have jobs, in minutes from noon."""
    return sorted((slot - NOON) / MINUTE for slot, _ in backend.schedules.jobs(schedule, 1_000) if slot is not None)


class ScheduleContract(Contract):
    """What every backend promises of schedules."""

    def test_a_slot_becomes_a_job_when_it_is_due_and_not_before(self, backend: Backend, clock: VirtualClock) -> None:
        schedule = made(backend)
        assert (fire(backend), backend.schedules.due({"resize"}).next_at) == ((), NOON + MINUTE)
        clock.advance(MINUTE)
        (job_id,) = fire(backend)
        after = found(backend)
        assert (after.last_slot_at, after.next_at, after.runs) == (NOON + MINUTE, NOON + 2 * MINUTE, 1)
        assert (after.last_job_id, slots(backend, schedule)) == (job_id, [1])
        assert (job(backend, job_id).scheduled_at, fire(backend)) == (NOON + MINUTE, ())

    def test_of_two_workers_that_fire_a_slot_one_wins(self, backend: Backend, clock: VirtualClock) -> None:
        schedule = made(backend)
        clock.advance(MINUTE)
        fired = firing(schedule, clock.now()), firing(schedule, clock.now())
        one, other = overlapping(
            backend, lambda: backend.schedules.fire([fired[0]]), lambda: backend.schedules.fire([fired[1]])
        )
        assert len(one + other) == 1
        assert (slots(backend, schedule), found(backend).runs) == ([1], 1)

    def test_many_workers_fire_many_schedules_once(self, backend: Backend, clock: VirtualClock) -> None:
        for number in range(20):
            made(backend, f"number-{number}")
        clock.advance(MINUTE)
        assert sum(map(len, together(*[lambda: fire(backend)] * 4))) <= 20
        fire(backend)
        assert {one.runs for one in backend.schedules.all()} == {1}

    def test_a_slot_is_not_repeated_after_its_job_was_purged(self, backend: Backend, clock: VirtualClock) -> None:
        schedule = made(backend)
        clock.advance(MINUTE)
        (job_id,) = fire(backend)
        backend.operator.purge([job_id])
        assert (backend.schedules.fire([firing(schedule, clock.now())]), fire(backend)) == ((), ())

    def test_a_job_that_already_has_the_slot_keeps_it(self, backend: Backend, clock: VirtualClock) -> None:
        schedule = made(backend)
        clock.advance(MINUTE)
        fire(backend)
        again = replace(schedule, last_slot_at=found(backend).last_slot_at)  # as if somebody set it back
        assert backend.schedules.fire([replace(firing(schedule, clock.now()), schedule=again)]) == ()
        assert slots(backend, schedule) == [1]

    @pytest.mark.parametrize("change", [{"paused_at": NOON}, {"left_code_at": NOON}, {"jitter": MINUTE}])
    def test_a_schedule_that_was_changed_since_it_was_read_is_not_fired(
        self, backend: Backend, clock: VirtualClock, change: dict[str, Any]
    ) -> None:
        schedule = made(backend)
        clock.advance(MINUTE)
        read = firing(schedule, clock.now())
        assert backend.schedules.change(schedule, **change)
        assert backend.schedules.fire([read]) == ()
        assert len(fire(backend)) == (1 if "jitter" in change else 0)

    def test_of_two_changes_the_second_is_refused(self, backend: Backend) -> None:
        schedule = made(backend)
        assert backend.schedules.change(schedule, paused_at=NOON, pause_reason="a storm")
        assert not backend.schedules.change(schedule, paused_at=None)
        assert found(backend).pause_reason == "a storm"

    def test_the_last_slot_never_goes_back(self, backend: Backend, clock: VirtualClock) -> None:
        schedule = made(backend)
        clock.advance(MINUTE)
        fire(backend)
        assert backend.schedules.change(schedule, last_slot_at=NOON)
        assert found(backend).last_slot_at == NOON + MINUTE

    def test_a_name_is_taken_once(self, backend: Backend) -> None:
        schedule = made(backend)
        assert not backend.schedules.add(replace(schedule, id=new_id()))
        assert backend.schedules.remove(schedule)
        assert (backend.schedules.remove(schedule), backend.schedules.all()) == (False, [])

    @pytest.mark.parametrize(
        ("missed", "expected"), [(Missed.SKIP, [6]), (Missed.ONCE, [5, 6]), (Missed.ALL, [3, 4, 5, 6])]
    )
    def test_missed_slots_follow_the_policy(
        self, backend: Backend, clock: VirtualClock, missed: Missed, expected: list[float]
    ) -> None:
        schedule = made(backend, missed=missed, missed_cap=3)
        clock.advance(6 * MINUTE + timedelta(seconds=5))
        fire(backend)
        assert slots(backend, schedule) == expected

    def test_no_more_than_the_limit_of_runs(self, backend: Backend, clock: VirtualClock) -> None:
        schedule = made(backend, max_runs=2, missed=Missed.ALL)
        clock.advance(5 * MINUTE)
        fire(backend)
        assert (slots(backend, schedule), found(backend).next_at) == ([1, 2], None)

    def test_nothing_after_the_end(self, backend: Backend, clock: VirtualClock) -> None:
        schedule = made(backend, end_at=NOON + 2 * MINUTE, missed=Missed.ALL)
        clock.advance(5 * MINUTE)
        fire(backend)
        assert (slots(backend, schedule), found(backend).next_at) == ([1, 2], None)

    def test_a_slot_is_dropped_while_an_earlier_job_lives(self, backend: Backend, clock: VirtualClock) -> None:
        schedule = made(backend, overlap=Overlap.SKIP)
        clock.advance(MINUTE)
        fire(backend)
        clock.advance(MINUTE)
        assert fire(backend) == ()
        finish(backend, take_one(backend))
        clock.advance(MINUTE)
        fire(backend)
        assert slots(backend, schedule) == [1, 3]

    def test_a_slot_waits_for_the_end_of_an_earlier_job(self, backend: Backend, clock: VirtualClock) -> None:
        schedule = made(backend, overlap=Overlap.QUEUE)
        clock.advance(MINUTE)
        fire(backend)
        claim = take_one(backend)
        clock.advance(2 * MINUTE)
        assert fire(backend) == ()
        finish(backend, claim)
        clock.advance(timedelta(seconds=2))
        fire(backend)
        assert slots(backend, schedule) == [1, 3]

    def test_a_job_outside_of_slots(self, backend: Backend) -> None:
        schedule = made(backend)
        one, other = (backend.schedules.run_now(schedule, draft(unique_key="k")) for _ in range(2))
        assert (one.created, other.created, other.id) == (True, False, one.id)
        assert [record.id for _, record in backend.schedules.jobs(schedule)] == [one.id]

    def test_schedules_of_unknown_types_are_left_to_others(self, backend: Backend, clock: VirtualClock) -> None:
        made(backend, type="rare")
        clock.advance(MINUTE)
        assert fire(backend) == ()
        assert [one.type for one in backend.schedules.late(timedelta(0), 5)] == []
        clock.advance(1)
        assert [one.type for one in backend.schedules.late(timedelta(0), 5)] == ["rare"]
