"""Races between actions of the backend: two claims, or a sweep and a settlement."""

from __future__ import annotations

import time
from datetime import timedelta
from functools import partial

from benchmarks.faults.catalogue import fault
from benchmarks.faults.forking import Step, in_step
from benchmarks.faults.laboratory import Laboratory
from benchmarks.faults.ledger import Ledger, What
from benchmarks.faults.place import end_leases
from jobqueue import backends
from jobqueue.policy.leases import settle_overdue
from jobqueue.policy.settling import completed
from jobqueue.records import Claim, ClaimRequest

_AT_ONCE = timedelta(0)
#: So many jobs are up in one race of a sweep.
STAKE = 12


def _claim(owner: str, limit: int) -> list[Claim]:
    """Claim due jobs in batches until there are no more."""
    asked = ClaimRequest(limit=limit, types=frozenset({"short"}), lease=timedelta(seconds=60))
    claims: list[Claim] = []
    while (cycle := backends.current().cycle(owner, (), asked)).claims or cycle.next_due == _AT_ONCE:
        claims += cycle.claims
    return claims


def _run(ledger: Ledger, claims: list[Claim]) -> None:
    for claim in claims:
        ledger.note(What.START, claim.id, claim.fence)
        ledger.note(What.END, claim.id, claim.fence)


def _settle(owner: str, claims: list[Claim]) -> int:
    """Complete claims, and return how many of them were no longer held."""
    done = [completed(claim, f'{{"fence": {claim.fence}}}') for claim in claims]
    return len(backends.current().cycle(owner, done).refused)


@fault("T26", "many claimers of one job, at the same moment")
def race_for_a_job(lab: Laboratory) -> None:
    """Let processes compete for a single job, and for a few of many: each job is claimed once."""
    claimers = 4 if lab.quick else 16
    with in_step(*(partial(_contend, lab.ledger, f"claimer-{number}") for number in range(claimers))) as step:
        while lab.goes_on():
            lab.enqueue("short", 1 if lab.injections % 10 else 3 * claimers)
            step()  # all ask
            step()  # nobody gets any more
            lab.injected(note=False)


def _contend(ledger: Ledger, owner: str, step: Step) -> None:
    while True:
        step()
        claims = _claim(owner, limit=1)
        _run(ledger, claims)
        _settle(owner, claims)
        step()


@fault("T06", "a sweep that races the end of the job")
def sweep_at_the_finish(lab: Laboratory) -> None:
    """Sweep expired leases at the moment when their holder settles: each claim ends once."""
    with in_step(partial(_finish, lab.ledger), _sweep) as step:
        while lab.goes_on():
            lab.enqueue("short", STAKE)
            for _ in range(5):
                step()
            lab.injected(note=False)
    swept = sum(one.facts["refused"] for one in lab.told(What.SEEN))
    lab.findings["races_won_by_the_sweep"] = f"{swept} of {STAKE * lab.injections}"


def _finish(ledger: Ledger, step: Step) -> None:
    """Claim all jobs, settle them while the other process sweeps, and run again those that were taken away."""
    while True:
        step()
        claims = _claim("finisher", limit=STAKE)
        _run(ledger, claims)
        step()
        step()
        refused = sum(_settle("finisher", [claim]) for claim in claims)
        ledger.note(What.SEEN, claims[0].id, claims[0].fence, refused=refused)
        step()
        again = _claim("finisher", limit=STAKE)
        _run(ledger, again)
        _settle("finisher", again)
        step()


def _sweep(step: Step) -> None:
    """Let the leases expire, and sweep when the other process settles, at the second look if there are two."""
    backend = backends.current()
    while True:
        step()
        step()
        end_leases()
        if backend.second_look:
            backend.sweep(settle_overdue)
            time.sleep(backend.second_look.total_seconds())
        step()
        for _ in range(3):
            backend.sweep(settle_overdue, limit=STAKE // 3)
        step()
        step()
