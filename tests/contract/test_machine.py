"""Tests of random sequences of actions: the same rows on every backend, legal moves, and growing fences."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from jobqueue.backends.memory import MemoryBackend
from jobqueue.errors import IdempotencyMismatch
from jobqueue.ids import new_id
from jobqueue.policy.leases import settle_dead, settle_overdue
from jobqueue.policy.settling import completed, released
from jobqueue.records import Again, Alone, Dead, Draft, Later, Scope, Stopped
from jobqueue.states import MOVES
from jobqueue.testing import VirtualClock
from jobqueue.testing.contract.harness import failing, take
from jobqueue.testing.contract.limiting import at_once, rate
from tests.conftest import TABLES, make_sql_backend
from tests.contract.lengths import ASKED, length

STEPS = {(source, rule.target) for rule in MOVES.values() for source in rule.sources}
TYPES = st.sampled_from(["resize", "greet", "rare", "unheard_of"])
QUEUES = st.sampled_from(["default", "mail"])
SECONDS = st.integers(0, 90).map(lambda count: timedelta(seconds=count))
OWNERS = st.sampled_from(["a", "b"])
LIMITS = [
    at_once(1),
    at_once(1, key="tenant"),
    at_once(2, name="mail", scope=Scope.QUEUE),
    at_once(3, name="*", scope=Scope.QUEUE),
    rate(2, per=30.0, name="greet"),
    rate(1, per=30.0, key="tenant", name="mail", scope=Scope.QUEUE),
]
DECISIONS = st.one_of(
    SECONDS.map(Again), SECONDS.map(Later), st.just(Alone()), st.just(Dead("given up")), st.just(Stopped("cancelled"))
)


class SameMoment:
    """The time of another clock, but so much of it between two looks that the second look counts."""

    def __init__(self, clock):
        self.now = clock.now
        self._seconds = 0

    def monotonic(self):
        self._seconds += 10
        return self._seconds


class Machine(RuleBasedStateMachine):
    """Drives the memory backend, as the plain model, and a database's side by side."""

    alias = "default"
    jobs = Bundle("jobs")
    claims = Bundle("claims")

    @initialize()
    def begin(self):
        for table in TABLES:
            table.objects.using(self.alias).all().delete()
        self.clock = VirtualClock()
        self.backends = [MemoryBackend(clock=self.clock), make_sql_backend(self.alias, SameMoment(self.clock))]
        self.ids, self.before = [], {}

    def stored(self, draft):
        """Enqueue a draft in both. Return the id of a new job."""

        def enqueue(backend):
            try:
                return backend.enqueue([draft])[0]
            except IdempotencyMismatch as error:
                return str(error)

        receipt = self.both(enqueue)
        if isinstance(receipt, str) or not receipt.created:
            return multiple()
        self.ids.append(draft.id)
        return draft.id

    def both(self, verb):
        model, real = (verb(backend) for backend in self.backends)
        assert real == model
        return model

    @rule(
        target=jobs,
        kind=TYPES,
        queue=QUEUES,
        priority=st.sampled_from([1, 5, 10]),
        delay=SECONDS,
        expires=st.none() | SECONDS,
        tries=st.integers(1, 3),
        key=st.sampled_from([None, None, ("idempotency_key", "a"), ("unique_key", "a"), ("unique_key", "b")]),
        limit_keys=st.sampled_from([None, '{"tenant":"a"}', '{"tenant":"b"}', "{}"]),
    )
    def enqueue(self, kind, queue, priority, delay, expires, tries, key, limit_keys):
        draft = Draft(
            id=new_id(),
            type=kind,
            payload="{}",
            queue=queue,
            priority=priority,
            delay=delay,
            expires_at=None if expires is None else self.clock.now() + expires,
            max_retries=tries,
            concurrency_key=limit_keys,
            **(dict([key]) if key else {}),
        )
        return self.stored(draft)

    @rule(
        target=jobs,
        kind=TYPES,
        key=st.sampled_from(["a", "b"]),
        repeats=st.sampled_from(["debounce", "throttle"]),
        length=st.integers(1, 40).map(lambda count: timedelta(seconds=count)),
        newest=st.booleans(),
        number=st.integers(0, 9),
    )
    def enqueue_again(self, kind, key, repeats, length, newest, number):
        extra = {"max_wait": 2 * length, "replace_payload": newest} if repeats == "debounce" else {}
        draft = Draft(
            id=new_id(), type=kind, payload=f'{{"number": {number}}}', unique_key=key, **{repeats: length}, **extra
        )
        return self.stored(draft)

    @rule(
        target=claims,
        owner=OWNERS,
        limit=st.integers(1, 4),
        queues=st.none() | st.frozensets(QUEUES, min_size=1),
        limits=st.lists(st.sampled_from(LIMITS), max_size=3, unique=True).map(tuple),
    )
    def claim(self, owner, limit, queues, limits):
        taken = self.both(
            lambda backend: [
                claim._replace(payload="", context=None)
                for claim in take(backend, limit, owner, queues=queues, limits=limits)
            ]
        )
        assert all(claim.scheduled_at <= self.clock.now() for claim in taken)
        return multiple(*taken)

    @rule(claim=claims)
    def complete(self, claim):
        self.both(lambda backend: backend.cycle("a", [completed(claim, '{"done": true}')]).refused)

    @rule(claims=st.lists(consumes(claims), min_size=1, max_size=3), decision=DECISIONS)
    def fail(self, claims, decision):
        offers = [failing(claim, decision) for claim in claims] + [released(claims[0])]
        self.both(lambda backend: backend.cycle("a", offers).refused)

    @rule(claims=st.lists(claims, min_size=1, max_size=3))
    def extend(self, claims):
        def extend(backend):
            extension = backend.extend(claims, timedelta(seconds=60))
            return set(extension.lost), set(extension.cancelled), set(extension.skipped)

        self.both(extend)

    @rule(seconds=st.sampled_from([1, 10, 61, 200]))
    def time_passes(self, seconds):
        self.clock.advance(seconds)

    @rule()
    def sweep(self):
        def sweep(backend):
            looks = [backend.sweep(settle_overdue) for _ in range(2)]
            ended = {one for look in looks for one in look.ended}
            return ended, {job_id for look in looks for job_id in look.expired}

        self.both(sweep)

    @rule(owner=OWNERS)
    def end_claims(self, owner):
        self.both(lambda backend: set(backend.end_claims(owner, settle_dead)))

    @rule(verb=st.sampled_from(["retry", "cancel", "purge"]), ids=st.lists(jobs, min_size=1, max_size=3, unique=True))
    def operate(self, verb, ids):
        def operate(backend):
            handled = getattr(backend.operator, verb)(ids)
            return set(handled.done), set(handled.refused)

        self.both(operate)

    @rule(verb=st.sampled_from(["pause", "resume"]), name=TYPES | QUEUES, scope=st.sampled_from(Scope))
    def pause(self, verb, name, scope):
        self.both(lambda backend: getattr(backend.operator, verb)(scope, name))
        self.both(lambda backend: backend.operator.pauses())

    @invariant()
    def rows_are_the_same_and_moved_by_the_table(self):
        if not hasattr(self, "backends"):
            return
        epoch = VirtualClock().now()
        rows = self.both(
            lambda backend: {
                job_id: replace(row, updated_at=epoch)
                for job_id in self.ids
                if (row := backend.jobs.get(job_id)) is not None
            }
        )
        for job_id, row in rows.items():
            old = self.before.get(job_id)
            if old is not None:
                assert old.status == row.status or (old.status, row.status) in STEPS
                assert old.fence <= row.fence
            assert 0 <= row.attempts <= row.max_retries
            assert (row.lease_owner is not None) == (row.status == "in_progress")
            assert len({past.fence for past in row.history}) == len(row.history)
        self.before = rows
        self.both(lambda backend: backend.jobs.stats())


@pytest.mark.timeout(0 if ASKED else 600)  # on a failure, shrinking takes up to five minutes of it
def test_any_sequence_of_verbs_means_the_same_everywhere(alias):
    machine = type("MachineOnOne", (Machine,), {"alias": alias})
    run_state_machine_as_test(machine, settings=length(30))
