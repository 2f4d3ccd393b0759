"""Backends that each break one promise, derived from the one in memory; ``BROKEN`` says which test must notice."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from jobqueue.backends.memory import MemoryBackend
from jobqueue.backends.memory.ports.jobs import MemoryJobReader
from jobqueue.backends.memory.ports.operator import MemoryOperator
from jobqueue.backends.memory.ports.workers import MemoryWorkerRegistry
from jobqueue.backends.memory.settlements import MemorySettlements
from jobqueue.backends.memory.tables import MemoryTables
from jobqueue.records import Extension, Handled, Sweep
from jobqueue.states import JobStatus, Move


class Toy(MemoryBackend):
    """A backend of a third party, which keeps a journal of what was enqueued. It keeps every promise."""

    contract_version = 1

    def __init__(self, alias="", clock=None):
        super().__init__(alias, clock)
        self.journal = []

    def enqueue(self, drafts):
        receipts = super().enqueue(drafts)
        self.journal += [receipt.id for receipt in receipts if receipt.created]
        return receipts


class Outdated(Toy):
    """A backend of a release whose contract was another one."""

    contract_version = 0


def with_part(name, kind):
    """Make a backend of which one port is of another class."""

    class Broken(MemoryBackend):
        __doc__ = kind.__doc__

        def __init__(self, alias="", clock=None):
            super().__init__(alias, clock)
            setattr(self, name, kind(self._tables))

    return Broken


class HalfStored(MemoryBackend):
    """Stores drafts one by one, so that an error leaves the first ones."""

    def enqueue(self, drafts):
        return [self._drafts.admit(draft) for draft in drafts]


class DoubleKeys(MemoryBackend):
    """Stores a second job for a taken key."""

    def enqueue(self, drafts):
        return super().enqueue([replace(draft, idempotency_key=None, unique_key=None) for draft in drafts])


class EagerCallbacks(MemoryBackend):
    """Calls back at once instead of after the commit."""

    def on_commit(self, callback):
        callback()


class TooMany(MemoryBackend):
    """Claims one job more than requested."""

    def cycle(self, owner, settlements=(), request=None):
        return super().cycle(owner, settlements, request and replace(request, limit=request.limit + 1))


class AnyOrder(MemoryBackend):
    """Claims the newest job first."""

    def _ready(self, request):
        return super()._ready(request)[::-1]


class DeafToPauses(MemoryBackend):
    """Claims jobs of paused queues."""

    def _ready(self, request):
        pauses, self._tables.pauses = self._tables.pauses, {}
        try:
            return super()._ready(request)
        finally:
            self._tables.pauses = pauses


class EveryQueue(MemoryBackend):
    """Claims jobs of queues that were not requested."""

    def _ready(self, request):
        return super()._ready(replace(request, queues=None))


class TooEarly(MemoryBackend):
    """Claims jobs before they are due."""

    def _ready(self, request):
        queued = [row for row in self._tables.jobs.values() if row.status is JobStatus.QUEUED]
        early = [row for row in queued if row.scheduled_at > self._tables.now() and row.type in request.types]
        return super()._ready(request) or early


class NoDueTime(MemoryBackend):
    """Doesn't say when the next job is due."""

    def _next_due(self):
        return None


class Immortal(MemoryBackend):
    """Claims jobs past their expiry."""

    def _lapse(self, row):
        return False


def with_settlements(kind):
    """Make a backend whose settlements are of another class."""

    class Broken(MemoryBackend):
        __doc__ = kind.__doc__
        settlements_class = kind

    return Broken


class NoFence(MemorySettlements):
    """Stores settlements of claims that are no longer held."""

    def held(self, claim):
        row = self._tables.jobs.get(claim.id)
        return row if row is not None and row.status is JobStatus.IN_PROGRESS else None


class SilentRefusals(MemoryBackend):
    """Doesn't tell which settlements it refused."""

    def cycle(self, owner, settlements=(), request=None):
        return replace(super().cycle(owner, settlements, request), refused=())


class FollowUpsOfFailures(MemorySettlements):
    """Stores the follow-up jobs of attempts that did not complete."""

    def store(self, offers):
        settled = super().store(offers)
        late = [child for one in offers if one.move is not Move.COMPLETE for child in one.children]
        return settled._replace(followed=(*settled.followed, *map(self._follow, late)))


class OrphanFollowUps(MemorySettlements):
    """Forgets follow-up jobs."""

    def store(self, offers):
        return super().store([one._replace(children=()) for one in offers])


class NoRenewal(MemoryBackend):
    """Says that it renewed leases, and doesn't."""

    def extend(self, claims, lease):
        return self.review(claims)


class EarlySweep(MemoryBackend):
    """Ends leases a minute before they expire."""

    def sweep(self, judge, limit=500):
        clock, now = self._tables.now, self._tables.now() + timedelta(minutes=1)
        self._tables.now = lambda: now
        try:
            return super().sweep(judge, limit)
        finally:
            self._tables.now = clock


class NoSweep(MemoryBackend):
    """Never ends a lease."""

    def sweep(self, judge, limit=500):
        return Sweep()


class EndlessSweep(MemoryBackend):
    """Ends more leases in one sweep than it may."""

    def sweep(self, judge, limit=500):
        return super().sweep(judge, 1_000_000)


class UnseenLoss(MemoryBackend):
    """Doesn't say that a claim is lost."""

    def review(self, claims):
        return Extension(cancelled=super().review(claims).cancelled)


class EagerWake(MemoryBackend):
    """Wakes listeners before the commit."""

    def wake_on_commit(self, age=0.0):
        self.wake()


class FreePurge(MemoryOperator):
    """Purges running jobs."""

    def _purge(self, row):
        self._tables.delete(row.id)


class LostCancel(MemoryOperator):
    """Says that it cancelled jobs, and doesn't."""

    def cancel(self, ids):
        return Handled(done=tuple(ids))


class LostAmendment(MemoryOperator):
    """Says that it amended jobs, and doesn't."""

    def amend(self, ids, amendment):
        return Handled(done=tuple(ids))


class Unfiltered(MemoryJobReader):
    """Finds all jobs, whatever was asked for."""

    def find(self, wanted, limit, after_id=None, newest_first=False):
        return super().find(type(wanted)(), limit, after_id, newest_first)


class Forgetful(MemoryWorkerRegistry):
    """Keeps no workers."""

    def enlist(self, worker):
        return None


class LateRollback(MemoryTables):
    """Rolls nothing back."""

    def atomic(self):
        return self.lock


class Rollbackless(MemoryBackend):
    """Keeps what was written in a transaction that rolled back."""

    tables_class = LateRollback


#: Each broken backend, the class of the contract that must notice, and a test of it that fails.
BROKEN = [
    (HalfStored, "EnqueueContract", "a_mismatch_among_many_stores_none_of_them"),
    (DoubleKeys, "EnqueueContract", "an_idempotency_key_holds_after_the_job_has_ended"),
    (EagerCallbacks, "EnqueueContract", "a_rolled_back_transaction_leaves_nothing"),
    (Rollbackless, "EnqueueContract", "a_rolled_back_savepoint_takes_only_its_own"),
    (TooMany, "ClaimContract", "never_more_than_asked"),
    (AnyOrder, "ClaimContract", "claims_come_by_priority_then_time_then_id"),
    (DeafToPauses, "ClaimContract", "never_from_what_is_paused"),
    (EveryQueue, "ClaimContract", "only_from_the_queues_asked_for"),
    (TooEarly, "ClaimContract", "nothing_before_it_is_due"),
    (NoDueTime, "ClaimContract", "the_next_due_job_is_announced_where_fewer_came_than_asked"),
    (Immortal, "ClaimContract", "an_expired_job_is_not_claimed"),
    (with_settlements(NoFence), "SettleContract", "a_holder_who_comes_too_late_changes_nothing"),
    (SilentRefusals, "SettleContract", "the_first_settlement_wins"),
    (with_settlements(FollowUpsOfFailures), "FollowContract", "an_attempt_that_did_not_succeed_has_no_follow_up_jobs"),
    (with_settlements(OrphanFollowUps), "FollowContract", "a_follow_up_job_knows_its_family_when_it_runs"),
    (NoRenewal, "LeaseContract", "an_extended_lease_survives_the_sweep"),
    (EarlySweep, "LeaseContract", "a_sweep_never_ends_a_lease_that_still_runs"),
    (NoSweep, "LeaseContract", "a_lease_that_ran_out_gives_the_job_back"),
    (EndlessSweep, "LeaseContract", "a_sweep_stops_at_its_limit_and_goes_on_next_time"),
    (UnseenLoss, "WatchContract", "a_review_tells_what_is_lost"),
    (EagerWake, "WakeContract", "a_wake_up_waits_for_the_commit"),
    (with_part("operator", FreePurge), "OperatorContract", "a_purge_takes_job_and_history_and_leaves_what_runs"),
    (with_part("operator", LostCancel), "OperatorContract", "a_queued_job_is_cancelled_at_once"),
    (with_part("operator", LostAmendment), "AmendContract", "a_better_priority_is_claimed_first"),
    (with_part("jobs", Unfiltered), "FindContract", "a_filter_excludes_what_others_select"),
    (with_part("workers", Forgetful), "RegisterContract", "a_worker_that_enlists_is_listed_as_it_said"),
]
