"""One trial of one fault: the place, the load, the workers, the injection, the drain and the accounting."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from django.apps import apps

from benchmarks.faults import place as places
from benchmarks.faults.checker import Account, check
from benchmarks.faults.cluster import Cluster
from benchmarks.faults.crew import Crew
from benchmarks.faults.enqueueing import enqueue
from benchmarks.faults.ledger import Ledger, Record, What
from benchmarks.faults.load import Load
from benchmarks.faults.verdict import Outcome, Verdict
from jobqueue import backends
from jobqueue.clock import SYSTEM

if TYPE_CHECKING:
    from benchmarks.faults.catalogue import Fault

#: The limit of the drain. Jobs of dead workers are only run again after a lease and the next sweep.
PATIENCE = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The parameters of a trial: fault, database, duration and random seed."""

    fault: str
    database: str
    seconds: float
    seed: str
    quick: bool = False
    #: Apps that only those workers have that come too late: a test takes their fence out with one.
    late_apps: tuple[str, ...] = ()


class Laboratory:
    """The tools of a fault's function."""

    def __init__(self, trial: Trial, ground: places.Ground, folder: Path) -> None:
        self.trial = trial
        self.place = ground.place
        self.folder = folder
        self.ledger = Ledger(folder / "ledger")
        self.rng = Random(f"{trial.seed} {trial.fault} {trial.database}")  # noqa: S311 - dice, no secrets
        self.crew = Crew(self.place, folder, self.ledger)
        self.load = Load(self.place, self.crew, self.rng)
        self.findings: dict[str, Any] = {}
        self.injections = 0
        self._cluster = ground.cluster
        self._failures: list[str] = []
        self._afterwards: list[Callable[[Account], None]] = []
        self._account: Account | None = None
        self._end: float | None = None

    @property
    def database(self) -> str:
        """Return ``sqlite`` or ``postgres``."""
        return self.trial.database

    @property
    def quick(self) -> bool:
        """Return whether this run only shows that everything works."""
        return self.trial.quick

    @property
    def lease(self) -> float:
        """Return the lease of the workers, in seconds."""
        return 2.0 if self.quick else 5.0

    @property
    def cluster(self) -> Cluster:
        """Return this fault's separate server."""
        if self._cluster is None:
            raise RuntimeError("This fault did not ask for a cluster of its own.")
        return self._cluster

    def goes_on(self) -> bool:
        """Return whether there is time for another injection. The time runs from the first call, which returns true."""
        if self._end is None:
            self._end = SYSTEM.monotonic() + self.trial.seconds
        late = SYSTEM.monotonic() - self._end
        return late < (0 if self.injections else PATIENCE)

    def pause(self, shortest: float, longest: float | None = None) -> None:
        """Wait, for a random time if there are two bounds."""
        time.sleep(self.rng.uniform(shortest, shortest if longest is None else longest))

    def injected(self, how: str = "", *, note: bool = True) -> None:
        """Count an injection, and record it in the ledger unless that was done."""
        self.injections += 1
        if note:
            self.ledger.note(What.INJECTED, how=how)

    def healed(self) -> None:
        """Record the end of the fault, from which the recovery is timed."""
        self.ledger.note(What.HEALED)

    def enqueue(self, kind: str, count: int = 1, **payload: Any) -> list[str]:
        """Enqueue jobs on the record. Return the ids of the accepted ones."""
        tried = (enqueue(self.ledger, kind, self.rng, **payload) for _ in range(count))
        return [job for job in tried if job]

    def expect(self, condition: object, words: str) -> None:
        """Check a promise of this fault. ``words`` say what was expected and what was found."""
        if not condition:
            self._failures.append(words)

    def afterwards(self, look: Callable[[Account], None]) -> None:
        """Call a function once every job has ended."""
        self._afterwards.append(look)

    def started(self, *jobs: str) -> bool:
        """Return whether each of these jobs has begun to run."""
        return set(jobs) <= {one.job for one in self.ledger.records() if one.what is What.START}

    def told(self, *kinds: What) -> list[Record]:
        """Return the ledger's records of the given kinds."""
        return [one for one in self.ledger.records() if one.what in kinds]

    def drain(self) -> None:
        """End the load, replace dead workers, and wait until each job has ended."""
        for status in self.load.stop():
            self.expect(status < 0, f"producers end well, one ended with {status}")
        self.crew.tend()
        began, reinforced = SYSTEM.monotonic(), -2.0
        while left := places.left():
            waited = SYSTEM.monotonic() - began
            if waited > PATIENCE:
                break
            if not self.crew.workers or (self.quick and waited > reinforced + 2 and _is_stranded()):
                # A worker is needed for the remaining jobs. It sweeps when it starts, so a short run need not wait for
                # the sweeps of
                # the others.
                self.crew.start(1, lease=self.lease)
                reinforced = waited
            time.sleep(0.1)
        self.findings["drain_seconds"] = round(SYSTEM.monotonic() - began, 2)
        self.expect(not left, f"everything drains within {PATIENCE:g} s, {left} jobs did not")

    def try_out(self, fault: Fault) -> Verdict:
        """Inject, drain and check. If one of these fails, the others still report."""
        began = SYSTEM.monotonic()
        try:
            for act in (partial(fault.inject, self), self.drain, self.crew.stop, self._settle_accounts):
                try:
                    act()
                except Exception:
                    self._failures.append(f"the laboratory itself failed:\n{traceback.format_exc(limit=-4)}")
                    self.crew.thaw_all()
        finally:
            self.crew.destroy()
        self._failures += self.crew.deserted
        return Verdict(
            fault=fault.id,
            title=fault.title,
            database=self.database,
            outcome=Outcome.BROKEN if self._failures else Outcome.HELD,
            why=tuple(self._failures),
            seed=self.trial.seed,
            seconds=round(SYSTEM.monotonic() - began, 1),
            injections=self.injections,
            account=self._account,
            findings=self.findings,
        )

    def _settle_accounts(self) -> None:
        """Compare the ledger with the table, and check the fault's own promises."""
        self._account = check(self.ledger.records(), places.rows())
        self._failures += self._account.violations()
        self.expect(self.injections, "something is injected, nothing was")
        broken = places.complaints()
        self.expect(not broken, f"the database is whole, it is not: {broken[:3]}")
        for look in self._afterwards:
            look(self._account)


def _is_stranded() -> bool:
    """Return whether a job is claimed under an expired lease."""
    held = apps.get_model("jobqueue", "Job")._default_manager.filter(status="in_progress")
    return bool(held.filter(lease_until__lt=backends.current().now() - timedelta(seconds=0.1)).exists())
