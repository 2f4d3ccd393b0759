"""Tests of lanes: the order of jobs in ordered queues, and their barriers."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from jobqueue.backends.base import Backend
from jobqueue.policy.limits.limits import LimitBook
from jobqueue.policy.settling import released
from jobqueue.records import (
    Amendment,
    Claim,
    Dead,
    Draft,
    Hold,
    LaneHold,
    Later,
    QueueOptions,
    Scope,
)
from jobqueue.testing.clock import VirtualClock
from jobqueue.testing.contract.harness import (
    Contract,
    draft,
    failing,
    finish,
    job,
    overlapping,
    put,
    put_all,
    receipts,
    settle,
    sweep,
    take,
)
from jobqueue.testing.contract.limiting import at_once, ids

ORDERED = {"imports": QueueOptions(ordered=True)}
STRICT = {"imports": QueueOptions(ordered=True, strict=True)}
KEYED = {"imports": QueueOptions(ordered="account")}


def in_lane(lane: str | None = "*", parallel: bool = False, **values: Any) -> Draft:
    """Return a draft of a job in a lane."""
    return draft(**{"queue": "imports", "lane": lane, "parallel": parallel, **values})


def claim(backend: Backend, options: dict[str, QueueOptions] = ORDERED, limit: int = 10, **values: Any) -> list[Claim]:
    """Claim jobs, of ordered queues too."""
    return take(backend, limit, entries=tuple(options), queue_options=options, **values)


def hold_of(backend: Backend, job_id: str, options: dict[str, QueueOptions] = ORDERED) -> LaneHold | None:
    """Return what holds a job."""
    return backend.lanes.hold_of(book(options), job(backend, job_id))


def book(options: dict[str, QueueOptions] = ORDERED) -> LimitBook:
    """Return a book with the options of queues."""
    return LimitBook(entries=tuple(options), queue_options=options)


class LaneContract(Contract):
    """Tests of ``backends.ports.lanes`` and of claims in ordered queues."""

    def test_jobs_of_a_lane_run_one_after_the_other(self, backend: Backend) -> None:
        jobs = put_all(backend, in_lane(priority=5), in_lane(priority=1), in_lane(priority=3))
        for job_id in jobs:
            (taken,) = claim(backend)
            assert taken.id == job_id
            assert claim(backend, owner="you") == []
            assert finish(backend, taken)

    def test_parallel_jobs_run_together_between_barriers(self, backend: Backend) -> None:
        flags = [True, True, False, True, True]
        jobs = put_all(backend, *(in_lane(parallel=flag) for flag in flags))
        first = claim(backend)
        assert ids(first) == jobs[:2]
        assert finish(backend, first[0])
        assert claim(backend) == []
        assert finish(backend, first[1])
        (barrier,) = claim(backend)
        assert barrier.id == jobs[2]
        assert claim(backend) == []
        assert finish(backend, barrier)
        assert ids(claim(backend)) == jobs[3:]

    def test_parallel_jobs_start_in_order_whatever_their_priority(self, backend: Backend) -> None:
        free = put(backend, priority=4)
        jobs = put_all(backend, *(in_lane(parallel=True, priority=priority) for priority in (9, 1, 5)))
        assert ids(claim(backend, limit=1)) == jobs[:1]
        assert sorted(ids(claim(backend, limit=2))) == sorted([free, jobs[1]])
        assert ids(claim(backend)) == jobs[2:]

    def test_each_value_of_a_key_has_its_lane(self, backend: Backend) -> None:
        jobs = put_all(backend, *(in_lane(name) for name in "aabbc"))
        assert sorted(ids(claim(backend, KEYED))) == [jobs[0], jobs[2], jobs[4]]

    def test_other_queues_are_not_touched(self, backend: Backend) -> None:
        jobs = put_all(backend, in_lane(), in_lane(), draft(), draft(queue="exports"), draft(queue="exports"))
        assert sorted(ids(claim(backend))) == [jobs[0], *jobs[2:]]

    def test_a_job_that_waits_for_its_retry_does_not_hold_its_lane(self, backend: Backend, clock: VirtualClock) -> None:
        jobs = put_all(backend, in_lane(), in_lane(), in_lane())
        (first,) = claim(backend)
        assert settle(backend, failing(first)) == ()
        (second,) = claim(backend)
        assert second.id == jobs[1]
        clock.advance(11)
        assert claim(backend) == []
        assert finish(backend, second)
        assert ids(claim(backend)) == jobs[:1]  # it has its old place again

    def test_a_strict_lane_waits_for_a_retry(self, backend: Backend, clock: VirtualClock) -> None:
        jobs = put_all(backend, in_lane(parallel=True), in_lane(parallel=True), in_lane(parallel=True))
        first, second = claim(backend, STRICT, limit=2)
        assert settle(backend, failing(second)) == ()
        assert claim(backend, STRICT) == []
        assert hold_of(backend, jobs[2], STRICT) == LaneHold(jobs[1], Hold.WAITS, job(backend, jobs[1]).scheduled_at)
        assert finish(backend, first)
        clock.advance(11)
        assert ids(claim(backend, STRICT)) == jobs[1:]

    def test_a_strict_lane_stops_at_a_dead_letter_until_an_operator_acts(self, backend: Backend) -> None:
        jobs = put_all(backend, *(in_lane() for _ in range(3)))
        (first,) = claim(backend, STRICT)
        assert settle(backend, failing(first, Dead("attempts used up"))) == ()
        assert claim(backend, STRICT) == []
        assert hold_of(backend, jobs[1], STRICT) == LaneHold(jobs[0], Hold.IS_DEAD)
        assert [(one.name, one.depth, one.hold) for one in backend.lanes.all(book(STRICT), ["imports"])] == [
            ("*", 2, LaneHold(jobs[0], Hold.IS_DEAD))
        ]
        assert backend.operator.retry([jobs[0]]).done == (jobs[0],)
        (again,) = claim(backend, STRICT)
        assert again.id == jobs[0]
        assert settle(backend, failing(again, Dead("attempts used up"))) == ()
        assert backend.operator.purge([jobs[0]]).done == (jobs[0],)
        assert ids(claim(backend, STRICT)) == [jobs[1]]

    def test_a_dead_letter_does_not_stop_other_lanes(self, backend: Backend) -> None:
        jobs = put_all(backend, in_lane(), in_lane())
        (first,) = claim(backend)
        assert settle(backend, failing(first, Dead("attempts used up"))) == ()
        assert ids(claim(backend)) == jobs[1:]

    def test_jobs_keep_their_places_when_they_come_back(self, backend: Backend, clock: VirtualClock) -> None:
        jobs = put_all(backend, in_lane(), in_lane(parallel=True))
        (taken,) = claim(backend)
        assert settle(backend, released(taken)) == ()
        (taken,) = claim(backend)
        assert taken.id == jobs[0]
        clock.advance(61)
        sweep(backend, clock)
        clock.advance(120)
        (taken,) = claim(backend)
        assert taken.id == jobs[0]
        assert settle(backend, failing(taken, Later(timedelta(seconds=5)))) == ()
        clock.advance(6)
        assert ids(claim(backend)) == jobs[:1]

    def test_a_job_that_is_due_later_takes_its_place_then(self, backend: Backend, clock: VirtualClock) -> None:
        late, early = put_all(backend, in_lane(delay=timedelta(seconds=5)), in_lane())
        assert ids(claim(backend)) == [early]
        clock.advance(6)
        assert hold_of(backend, late) == LaneHold(early, Hold.RUNS)

    def test_jobs_of_other_programs_get_the_last_places(self, backend: Backend) -> None:
        payloads = [{"account": "a"}, {"account": 7}, {"account": [1]}, [], {"other": 1}, {"account": "x" * 300}]
        foreign = [draft(queue="imports", payload=json.dumps(one)) for one in payloads]
        ours = put(backend, queue="imports", lane="a", parallel=False)
        put_all(backend, *foreign)
        taken = claim(backend, KEYED)
        assert {one.id for one in taken} == {ours, *(one.id for one in foreign[1:])}
        assert job(backend, foreign[0].id).lane == "a"
        assert job(backend, foreign[1].id).lane == "7"
        assert {job(backend, one.id).lane for one in foreign[2:]} == {"*"}

    def test_a_job_that_is_moved_gets_the_last_place(self, backend: Backend) -> None:
        moved, first = put_all(backend, draft(), in_lane())
        assert backend.operator.amend([moved], Amendment(queue="imports")).done == (moved,)
        assert ids(claim(backend)) == [first]
        assert ids(claim(backend)) == []
        assert hold_of(backend, moved) == LaneHold(first, Hold.RUNS)
        assert backend.operator.amend([moved], Amendment(queue="exports")).done == (moved,)
        assert ids(claim(backend)) == [moved]

    def test_a_job_that_is_stored_without_a_lane_stays_a_barrier(self, backend: Backend) -> None:
        before = put_all(backend, draft(parallel=False), draft(parallel=True), draft(parallel=True))
        assert backend.operator.amend(before, Amendment(queue="imports")).done == tuple(before)
        (barrier,) = claim(backend)
        assert barrier.id == before[0]
        assert claim(backend) == []
        assert finish(backend, barrier)
        assert ids(claim(backend)) == before[1:]

    def test_limits_hold_in_lanes(self, backend: Backend) -> None:
        jobs = put_all(backend, *(in_lane(parallel=True) for _ in range(5)), in_lane())
        limits = (at_once(2, name="imports", scope=Scope.QUEUE),)
        first = claim(backend, limits=limits)
        assert ids(first) == jobs[:2]
        assert finish(backend, first[0])
        assert ids(claim(backend, limits=limits)) == [jobs[2]]

    def test_a_parallel_job_passes_many_whose_key_is_used_up(self, backend: Backend) -> None:
        limits = (at_once(1, key="account"),)
        keys = [*"aaaaaab", *"c" * 30, "d"]
        jobs = put_all(
            backend,
            *(in_lane(parallel=True, concurrency_key=f'{{"account":"{key}"}}') for key in keys),
            in_lane(),
            in_lane(parallel=True),
        )
        taken = [claim(backend, limit=1, limits=limits) for _ in range(4)]
        assert [ids(one) for one in taken] == [[jobs[0]], [jobs[6]], [jobs[7]], [jobs[37]]]
        assert claim(backend, limits=limits) == []  # they are used up, and the next one is a barrier

    def test_a_parallel_job_passes_many_whose_type_has_no_slot(self, backend: Backend) -> None:
        limits = (at_once(1),)
        jobs = put_all(backend, *(in_lane(parallel=True) for _ in range(6)), in_lane(type="greet", parallel=True))
        taken = [claim(backend, limit=1, limits=limits) for _ in range(3)]
        assert [ids(one) for one in taken] == [[jobs[0]], [jobs[6]], []]

    def test_a_worker_without_the_type_of_a_barrier_leaves_what_is_behind(self, backend: Backend) -> None:
        jobs = put_all(backend, in_lane(parallel=True), in_lane(type="rare"), in_lane(parallel=True))
        some = frozenset({"resize"})
        (first,) = claim(backend, types=some)
        assert first.id == jobs[0]
        assert finish(backend, first)
        assert claim(backend, types=some) == []
        assert hold_of(backend, jobs[2]) == LaneHold(jobs[1], Hold.IS_DUE)

    def test_many_lanes_are_looked_at_by_turns(self, backend: Backend) -> None:
        many = [in_lane(f"lane {number:03}") for number in range(150)]
        put_all(backend, *many, *many_more(many))
        taken = claim(backend, KEYED, limit=150)
        assert len(taken) == 150
        assert {one.id for one in taken} == {one.id for one in many}

    def test_lanes_are_listed_with_what_they_hold(self, backend: Backend) -> None:
        jobs = put_all(backend, in_lane("a"), in_lane("a"), in_lane("b", parallel=True), in_lane("b", parallel=True))
        (running,) = claim(backend, KEYED, limit=1)
        listed = {one.name: one for one in backend.lanes.all(book(KEYED), ["imports", "exports"])}
        assert (running.id, set(listed)) == (jobs[0], {"a", "b"})
        assert (listed["a"].depth, listed["a"].head, listed["a"].running) == (1, jobs[1], (jobs[0],))
        assert listed["a"].hold == LaneHold(jobs[0], Hold.RUNS)
        assert (listed["b"].depth, listed["b"].head, listed["b"].hold) == (2, jobs[2], None)

    def test_a_bulk_keeps_the_order_of_the_call_also_with_keys(self, backend: Backend) -> None:
        drafts = [in_lane(parallel=True, idempotency_key=key) for key in "zyxw"]
        receipts(backend, *drafts)
        assert ids(claim(backend, limit=1)) == [drafts[0].id]
        assert ids(claim(backend, limit=2)) == [drafts[1].id, drafts[2].id]

    # Races

    def test_race_claim_claim_of_a_lane(self, backend: Backend) -> None:
        put_all(backend, in_lane(parallel=True), in_lane())
        (first,) = claim(backend)
        assert finish(backend, first)
        put_all(backend, in_lane())
        mine, yours = overlapping(backend, lambda: claim(backend), lambda: claim(backend, owner="you"))
        assert len(mine) + len(yours) == 1

    def test_race_enqueue_of_a_barrier_and_a_late_commit(self, backend: Backend) -> None:
        early, barrier = in_lane(parallel=True), in_lane()

        def second() -> None:
            receipts(backend, barrier)
            assert [one.id for one in claim(backend, limit=1)] != [barrier.id]

        overlapping(backend, lambda: receipts(backend, early), second)


def many_more(drafts: list[Draft]) -> list[Draft]:
    """Return a second job for the lane of each draft."""
    return [in_lane(str(one.lane)) for one in drafts]
