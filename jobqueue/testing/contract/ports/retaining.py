"""Tests of retention: ended jobs are found from the newest to the oldest, and deleted with their history."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from jobqueue.backends.base import Backend
from jobqueue.clock import to_text
from jobqueue.ids import UlidFactory, least_id
from jobqueue.policy.retention import EndedJob, Rule
from jobqueue.retention.walk import Group, Walk
from jobqueue.states import JobStatus
from jobqueue.testing.clock import VirtualClock
from jobqueue.testing.contract.harness import (
    Contract,
    bury,
    draft,
    failing,
    finish,
    job,
    put,
    put_all,
    receipts,
    settle,
    take_one,
    together,
)

HOUR = timedelta(hours=1)
DONE, FAILED, DEAD = JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.DEAD_LETTER


def ended(
    backend: Backend, clock: VirtualClock, status: JobStatus = DONE, kind: str = "resize", **values: object
) -> str:
    """Make a job that has ended now, with an id of the virtual time."""
    job_id = put(backend, kind, id=UlidFactory(clock)(), **values)
    claim = take_one(backend)
    if status is DONE:
        finish(backend, claim)
    elif status is DEAD:
        bury(backend, claim)
    else:
        settle(backend, failing(claim))
        backend.operator.cancel([job_id])
    assert job(backend, job_id).status is status
    clock.advance(1)
    return job_id


def walked(backend: Backend, *rules: Rule, dry_run: bool = False) -> Walk:
    """Walk over all jobs."""
    walk = Walk(backend, rules, dry_run=dry_run)
    while not walk.is_over:
        walk.step()
    return walk


def left(backend: Backend, *ids: str) -> list[str]:
    """Return which jobs are still there."""
    return [job_id for job_id in ids if backend.jobs.get(job_id)]


def everything(backend: Backend) -> list[EndedJob]:
    """Read all ended jobs."""
    return backend.retention.walk(None, 1_000)[0]


class RetentionContract(Contract):
    """Tests of retention."""

    def test_ended_jobs_are_found_from_the_newest_to_the_oldest(self, backend: Backend, clock: VirtualClock) -> None:
        ids = [ended(backend, clock, status) for status in (DONE, FAILED, DEAD)]
        waiting = put(backend)
        assert [one.id for one in everything(backend)] == ids[::-1]
        found, place = backend.retention.walk(None, 2)
        assert [one.id for one in found] == [ids[2]], "the newest job waits"
        rest, end = backend.retention.walk(place, 2)
        assert [one.id for one in rest] == [ids[1], ids[0]]
        assert backend.retention.walk(end, 2) == ([], None)
        assert left(backend, waiting) == [waiting]

    def test_a_rule_by_age_deletes_what_ended_longer_ago(self, backend: Backend, clock: VirtualClock) -> None:
        old = ended(backend, clock)
        clock.advance(HOUR)
        new = ended(backend, clock)
        clock.advance(HOUR / 2)
        walk = walked(backend, Rule(DONE, keep=HOUR))
        assert left(backend, old, new) == [new]
        assert walk.pruned == {Group("completed", "resize", "default"): 1}

    def test_a_job_that_was_enqueued_long_ago_and_ended_just_now_stays(
        self, backend: Backend, clock: VirtualClock
    ) -> None:
        put(backend, id=UlidFactory(clock)())
        clock.advance(9 * HOUR)
        claim = take_one(backend)
        finish(backend, claim)
        walked(backend, Rule(DONE, keep=HOUR))
        assert left(backend, claim.id)

    def test_a_rule_by_number_keeps_the_newest(self, backend: Backend, clock: VirtualClock) -> None:
        ids = [ended(backend, clock, kind=kind) for kind in ("resize", "greet") * 3]
        walked(backend, Rule(DONE, keep_last=2, type="resize"))
        assert left(backend, *ids) == [ids[1], *ids[2:]]

    def test_the_rule_that_says_most_about_a_job_decides(self, backend: Backend, clock: VirtualClock) -> None:
        mail = ended(backend, clock, queue="mail")
        resize, greet = ended(backend, clock, kind="resize"), ended(backend, clock, kind="greet")
        special = ended(backend, clock, kind="greet", queue="mail")
        clock.advance(HOUR)
        rules = (
            Rule(DONE, keep=timedelta(0)),
            Rule(DONE, keep=2 * HOUR, queue="mail"),
            Rule(DONE, keep=None, type="greet"),
            Rule(DONE, keep=timedelta(0), type="greet", queue="mail"),
        )
        walked(backend, *rules)
        assert left(backend, mail, resize, greet, special) == [mail, greet]

    def test_dead_letters_and_live_jobs_are_no_business_of_a_rule_for_completed_ones(
        self, backend: Backend, clock: VirtualClock
    ) -> None:
        kept = [ended(backend, clock, DEAD), ended(backend, clock, FAILED), put(backend)]
        clock.advance(timedelta(days=900))
        assert walked(backend, Rule(DONE, keep=timedelta(0))).pruned == {}
        assert left(backend, *kept) == kept
        walked(backend, Rule(DEAD, keep=HOUR))
        assert left(backend, *kept) == kept[1:]

    def test_a_dry_run_counts_and_deletes_nothing(self, backend: Backend, clock: VirtualClock) -> None:
        ids = [ended(backend, clock) for _ in range(3)]
        walk = walked(backend, Rule(DONE, keep_last=1), dry_run=True)
        assert sum(walk.pruned.values()) == 2
        assert left(backend, *ids) == ids

    def test_a_row_of_the_archive_has_all_that_is_known_of_a_job(self, backend: Backend, clock: VirtualClock) -> None:
        job_id = ended(backend, clock, DEAD, payload='{"image_id": 8}', tenant="acme")
        (row,) = json.loads(json.dumps(backend.retention.rows([job_id, "gone"])))
        assert (row["id"], row["status"], row["payload"], row["tenant"]) == (
            *(job_id, "dead_letter"),
            *({"image_id": 8}, "acme"),
        )
        assert row["completed_at"] == to_text(job(backend, job_id).completed_at or clock.now())
        assert [(one["attempt"], one["message"]) for one in row["history"]] == [(1, "disk on fire")]

    def test_the_history_goes_with_its_job(self, backend: Backend, clock: VirtualClock) -> None:
        job_id = ended(backend, clock, DEAD)
        assert len(job(backend, job_id).history) == 1
        backend.retention.prune(everything(backend))
        put_all(backend, draft(id=job_id))
        assert job(backend, job_id).history == ()

    def test_a_job_that_changed_since_it_was_read_stays(self, backend: Backend, clock: VirtualClock) -> None:
        retried, again = ended(backend, clock, DEAD), ended(backend, clock, DEAD)
        seen = everything(backend)
        backend.operator.retry([retried, again])
        bury(backend, take_one(backend))
        assert backend.retention.prune(seen) == []
        assert left(backend, retried, again) == [retried, again]

    def test_of_two_who_prune_the_same_jobs_each_deletes_others(self, backend: Backend, clock: VirtualClock) -> None:
        for _ in range(5):
            ended(backend, clock)
        seen = everything(backend)
        first, second = together(*(lambda: backend.retention.prune(seen) for _ in range(2)))
        assert sorted(one.id for one in first + second) == sorted(one.id for one in seen)

    def test_a_pruned_job_frees_its_idempotency_key_and_leaves_its_children(
        self, backend: Backend, clock: VirtualClock
    ) -> None:
        parent = ended(backend, clock, idempotency_key="once")
        child = put(backend, parent_id=parent)
        backend.retention.prune(everything(backend))
        (receipt,) = receipts(backend, draft(idempotency_key="once"))
        assert receipt.created
        assert job(backend, child).parent_id == parent

    def test_a_walk_skips_the_jobs_that_are_too_young_for_any_rule(self, backend: Backend, clock: VirtualClock) -> None:
        old = [ended(backend, clock) for _ in range(3)]
        clock.advance(HOUR)
        put_all(backend, *(draft(id=UlidFactory(clock)()) for _ in range(100)))
        for _ in range(100):
            finish(backend, take_one(backend))
        walk, steps = Walk(backend, [Rule(DONE, keep=HOUR / 2)]), 0
        while not walk.is_over:
            walk.step()
            steps += 1
        assert steps <= 3
        assert left(backend, *old) == []

    @pytest.mark.parametrize("name", ["order-7", "zz", "0", "~"])
    def test_ids_of_other_programs_are_walked_over_too(self, backend: Backend, clock: VirtualClock, name: str) -> None:
        put(backend, id=name)
        finish(backend, take_one(backend))
        clock.advance(2 * HOUR)
        young = ended(backend, clock)
        walked(backend, Rule(DONE, keep=HOUR))
        assert left(backend, name, young) == [young]

    def test_the_place_before_an_id_is_behind_all_greater_ones(self, backend: Backend, clock: VirtualClock) -> None:
        ids = []
        for _ in range(3):
            ids.append(ended(backend, clock))
            clock.advance(HOUR)
        place = backend.retention.before(least_id(clock.now() - 2 * HOUR))
        assert [one.id for one in backend.retention.walk(place, 9)[0]] == [ids[1], ids[0]]

    def test_beside_jobs_there_is_nothing_to_prune_at_first(self, backend: Backend) -> None:
        assert backend.retention.prune_beside(HOUR, HOUR) == 0

    def test_giving_space_back_changes_nothing(self, backend: Backend, clock: VirtualClock) -> None:
        kept = ended(backend, clock)
        backend.retention.compact()
        assert left(backend, kept) == [kept]
