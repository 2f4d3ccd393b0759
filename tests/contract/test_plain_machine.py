"""Tests of random sequences of actions on each backend against the plain model.

CI's share is a thousand steps on each backend. For a long run:

    JOBQUEUE_MACHINE_STEPS=200000 python -m pytest tests/contract/test_plain_machine.py
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from jobqueue.backends.memory import MemoryBackend
from jobqueue.errors import IdempotencyMismatch, LeaseLost
from jobqueue.policy.leases import settle_overdue
from jobqueue.policy.settling import completed, released
from jobqueue.records import Again, Alone, ClaimRequest, Dead, Draft, Filter, Later, Progress, Scope, Stopped
from jobqueue.testing import VirtualClock
from jobqueue.testing.contract.harness import KNOWN, failing, take
from tests.conftest import TABLES, make_sql_backend
from tests.contract.lengths import ASKED, length
from tests.contract.plain import Mismatch, PlainQueue
from tests.contract.test_machine import SameMoment

TYPES = st.sampled_from(["resize", "greet", "unheard_of"])
QUEUES = st.sampled_from(["default", "mail"])
OWNERS = st.sampled_from(["a", "b"])
SECONDS = st.integers(0, 90).map(lambda count: timedelta(seconds=count))
LEASES = st.sampled_from([timedelta(seconds=10), timedelta(seconds=60)])
KEYS = st.sampled_from(
    [{}, {}, {"idempotency_key": "a"}, {"idempotency_key": "b"}, {"unique_key": "a"}, {"unique_key": "b"}]
)
DRAFTS = st.fixed_dictionaries(
    {"type": TYPES, "queue": QUEUES, "priority": st.sampled_from([1, 5]), "delay": SECONDS},
    optional={"max_retries": st.integers(1, 2)},
)
ENDINGS = st.one_of(
    st.sampled_from(["complete", "complete", "release", Alone(), Dead("given up"), Stopped("cancelled")]),
    SECONDS.map(Again),
    SECONDS.map(Later),
)


def offer(claim, ending, children=()):
    if ending == "complete":
        return completed(claim, "1")._replace(children=tuple(children))
    return released(claim) if ending == "release" else failing(claim, ending)


class PlainMachine(RuleBasedStateMachine):
    """Drives one backend, and the plain queue beside it."""

    kind = "memory"
    drafts = Bundle("drafts")
    claims = Bundle("claims")

    @initialize()
    def begin(self):
        self.clock = VirtualClock()
        if self.kind == "memory":
            self.backend = MemoryBackend(clock=self.clock)
        else:
            for table in TABLES:
                table.objects.using(self.kind).all().delete()
            self.backend = make_sql_backend(self.kind, SameMoment(self.clock))
        self.plain, self.made, self.purged = PlainQueue(self.clock.now()), 0, set()

    def _draft(self, values, expires=None):
        self.made += 1
        late = {} if expires is None else {"expires_at": self.clock.now() + expires}
        return Draft(id=f"{self.made:026}", payload="{}", **values, **late)

    def _enqueue(self, drafts):
        try:
            expected = self.plain.enqueue(drafts)
        except Mismatch:
            with pytest.raises(IdempotencyMismatch):
                self.backend.enqueue(drafts)
            return False
        assert [(one.id, one.created) for one in self.backend.enqueue(drafts)] == expected
        return True

    # What goes in

    @rule(target=drafts, values=DRAFTS, key=KEYS, expires=st.none() | SECONDS)
    def enqueue(self, values, key, expires):
        draft = self._draft(values | key, expires)
        return draft if self._enqueue([draft]) else multiple()

    @rule(target=drafts, values=st.lists(st.tuples(DRAFTS, KEYS), min_size=2, max_size=4))
    def enqueue_many(self, values):
        drafts = [self._draft(one | key) for one, key in values]
        return multiple(*drafts) if self._enqueue(drafts) else multiple()

    @rule(draft=drafts)
    def enqueue_again(self, draft):
        if draft.id not in self.purged:  # an id is never used for a second job
            self._enqueue([draft])

    @rule(values=DRAFTS, key=KEYS)
    def enqueue_for_nothing(self, values, key):
        with pytest.raises(ZeroDivisionError), self.backend.atomic():
            with suppress(IdempotencyMismatch):
                self.backend.enqueue([self._draft(values | key)])
            raise ZeroDivisionError

    # The worker's side

    @rule(target=claims, owner=OWNERS, limit=st.integers(1, 4), queues=st.none() | st.just({"mail"}), lease=LEASES)
    def claim(self, owner, limit, queues, lease):
        expected = self.plain.claim(owner, limit, KNOWN, queues, lease)
        taken = take(self.backend, limit, owner, queues=queues and frozenset(queues), lease=lease)
        found = [(one.id, one.fence, one.attempt, one.owner, one.scheduled_at, one.crash_count) for one in taken]
        assert found == [(one.draft.id, one.fence, one.attempts, owner, one.due, one.crashes) for one in expected]
        return multiple(*taken)

    @rule(target=claims, claim=claims, owner=OWNERS, older=st.integers(0, 1))
    def forge(self, claim, owner, older):
        """What somebody else may believe to hold, or what was never claimed."""
        return claim._replace(owner=owner, fence=claim.fence + 1 - 2 * older)

    @rule(offered=st.lists(st.tuples(claims, ENDINGS), min_size=1, max_size=4), values=DRAFTS, key=KEYS)
    def settle(self, offered, values, key):
        """Settle old and new claims, each as often as it comes; a completion has a follow-up job."""
        if len({claim.id for claim, _ in offered}) < len(offered):
            offered = offered[:1]  # the order among offers for one job is the contract's matter
        offers = [offer(claim, ending) for claim, ending in offered]
        offers[0] = offers[0]._replace(children=(self._draft(values | key),))
        stored = {one: self.plain.settle(one) for one in sorted(offers, key=lambda one: one.claim)}
        refused = self.backend.cycle("a", offers).refused
        assert refused == tuple(one for one in offers if not stored[one])

    @rule(target=claims, claim=claims, ending=ENDINGS, limit=st.integers(1, 3))
    def settle_and_claim(self, claim, ending, limit):
        """One turn of a worker's loop: what it gives back may come again."""
        one = offer(claim, ending)
        stored = self.plain.settle(one)
        expected = [] if self._anything_late() else None
        request = ClaimRequest(limit=limit, types=KNOWN)
        cycle = self.backend.cycle(claim.owner, [one], request if expected is None else None)
        assert cycle.refused == (() if stored else (one,))
        if expected is None:
            expected = self.plain.claim(claim.owner, limit, KNOWN, None, request.lease)
        # A statement on Postgres may leave some for the next turn where others stand in its way: then it says so.
        found = [(taken.id, taken.fence) for taken in cycle.claims]
        wanted = [(job.draft.id, job.fence) for job in expected]
        if cycle.next_due == timedelta(0) and len(found) < len(wanted):
            rest = take(self.backend, limit - len(found), claim.owner)
            found += [(taken.id, taken.fence) for taken in rest]
            assert found == wanted
            return multiple(*cycle.claims, *rest)
        assert found == wanted
        return multiple(*cycle.claims)

    def _anything_late(self):
        return any(job.status == "queued" and job.expires is not None for job in self.plain.jobs.values())

    @rule(place=st.integers(0, 5), other=st.sampled_from([{"fence": -1}, {"fence": 1}, {"owner": "c"}]))
    def offer_for_what_another_claim_holds(self, place, other):
        """A running job, and all of its claim is right but for its fence or its owner."""
        running = [job for job in self.plain.jobs.values() if job.status == "in_progress"]
        if running:
            job = running[place % len(running)]
            fence, owner = job.fence + other.get("fence", 0), other.get("owner", job.owner)
            for one in (completed, released):
                late = one(SimpleNamespace(id=job.draft.id, fence=fence, owner=owner))
                assert self.backend.cycle(owner, [late]).refused == (late,)

    @rule(claim=claims, commits=st.booleans())
    def settle_in_transaction(self, claim, commits):
        one = completed(claim, "1")
        held = self.plain.held(one) is not None
        with pytest.raises((LeaseLost, ZeroDivisionError)) if not (held and commits) else self.backend.atomic():
            if held and commits:
                self.backend.settle_in_transaction(one)
                self.plain.settle(one)
            else:
                with self.backend.atomic():
                    self.backend.settle_in_transaction(one)
                    assert held
                    raise ZeroDivisionError

    @rule(claimed=st.lists(claims, min_size=1, max_size=4, unique_by=lambda one: one.id), lease=LEASES)
    def extend(self, claimed, lease):
        expected = {claim: self.plain.extend(claim, lease) for claim in claimed}
        extension = self.backend.extend(claimed, lease)
        assert set(extension.lost) == {claim for claim, state in expected.items() if state == "lost"}
        assert set(extension.cancelled) == {claim for claim, state in expected.items() if state == "to stop"}
        assert extension.skipped == ()

    @rule(claimed=st.lists(claims, min_size=1, max_size=4, unique=True), owner=OWNERS)
    def ask(self, claimed, owner):
        review = self.backend.review(claimed)
        held = {claim: self.plain.held(claim) for claim in claimed}
        assert set(review.lost) == {claim for claim, job in held.items() if job is None}
        assert set(review.cancelled) == {claim for claim, job in held.items() if job and job.to_stop}
        running = {(job.draft.id, job.fence) for job in self.plain.jobs.values() if job.owner == owner}
        assert set(self.backend.held_by(owner)) == running

    @rule(claim=claims, percent=st.integers(0, 100))
    def progress(self, claim, percent):
        self.backend.progress([Progress(claim.id, claim.fence, claim.owner, str(percent))])
        if job := self.plain.held(claim):
            job.progress = percent

    @rule()
    def sweep(self):
        ended, late = self.plain.sweep()
        looks = [self.backend.sweep(settle_overdue) for _ in range(2)]
        assert {one.claim for look in looks for one in look.ended} == ended
        assert {job_id for look in looks for job_id in look.expired} == late

    # Time, and the operator

    @rule(seconds=st.sampled_from([1, 11, 61, 200, -1, -30, -500]))
    def time_passes(self, seconds):
        """Forwards, or back as an administrator may set it."""
        if seconds > 0:
            self.clock.advance(seconds)
        else:
            self.clock.step_back(timedelta(seconds=-seconds))
        self.plain.now = self.clock.now()

    @rule(verb=st.sampled_from(["retry", "cancel", "purge"]), some=st.lists(drafts, min_size=1, max_size=3))
    def operate(self, verb, some):
        ids = sorted({draft.id for draft in some})
        expected = {job_id: getattr(self.plain, verb)(job_id) for job_id in ids}
        handled = getattr(self.backend.operator, verb)(ids)
        assert set(handled.done) == {job_id for job_id, done in expected.items() if done}
        assert {one.id for one in handled.refused} == {job_id for job_id, done in expected.items() if not done}
        self.purged |= set(handled.done) if verb == "purge" else set()

    @rule(verb=st.sampled_from(["pause", "resume"]), scope=st.sampled_from(Scope), name=TYPES | QUEUES)
    def pause(self, verb, scope, name):
        was = (scope.value, name) in self.plain.paused
        assert getattr(self.backend.operator, verb)(scope, name) is (was is (verb == "resume"))
        getattr(self.plain.paused, "add" if verb == "pause" else "discard")((scope.value, name))

    @invariant()
    def every_row_is_as_the_plain_queue_has_it(self):
        if hasattr(self, "backend"):
            rows = {
                row.id: _read(replace(row, history=())) for row in self.backend.jobs.find(Filter(), limit=self.made + 1)
            }
            assert rows == {job_id: _expected(replace(job, past=[])) for job_id, job in self.plain.jobs.items()}

    def teardown(self):
        """And every history, in the end."""
        if hasattr(self, "backend"):
            assert {job_id: _read(self.backend.jobs.get(job_id)) for job_id in self.plain.jobs} == {
                job_id: _expected(job) for job_id, job in self.plain.jobs.items()
            }


def _read(row):
    past = [(one.fence, one.attempt, one.owner, one.ending.value) for one in row.history]
    state = (row.status.value, row.fence, row.attempts, row.crash_count, row.end_reason, row.result, row.progress)
    lease = (row.lease_owner, row.lease_until, row.cancel_requested_at is not None)
    return state, lease, (row.scheduled_at, row.expires_at, row.completed_at), past


def _expected(job):
    state = (job.status, job.fence, job.attempts, job.crashes, job.reason, job.result, job.progress)
    return state, (job.owner, job.until, job.to_stop), (job.due, job.expires, job.ended), job.past


@pytest.mark.timeout(0 if ASKED else 600)  # on a failure, shrinking takes up to five minutes of it
@pytest.mark.parametrize(
    "kind",
    [
        "memory",
        pytest.param("default", marks=pytest.mark.sqlite),
        pytest.param("postgres", marks=pytest.mark.postgres),
    ],
    ids=["memory", "sqlite", "postgres"],
)
def test_any_sequence_of_verbs_does_what_the_plain_queue_says(kind, request):
    if kind != "memory":
        request.getfixturevalue("databases")
    run_state_machine_as_test(type("PlainMachineOnOne", (PlainMachine,), {"kind": kind}), settings=length(25))
