"""One fault, tried once: a place, a load, workers, the injection, the drain, and the account of every job."""

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

#: How long the drain may take. A lease and the next sweep pass before what a dead worker held is run again.
PATIENCE = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What is asked of the laboratory: which fault, on which database, for how long, with which dice."""

    fault: str
    database: str
    seconds: float
    seed: str
    quick: bool = False
    #: Apps that only those workers have that come too late: a test takes their fence out with one.
    late_apps: tuple[str, ...] = ()


class Laboratory:
    """What a fault's function works with."""

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
        """``sqlite`` or ``postgres``."""
        return self.trial.database

    @property
    def quick(self) -> bool:
        """Whether this run only shows that everything works."""
        return self.trial.quick

    @property
    def lease(self) -> float:
        """The lease of the workers, in seconds."""
        return 2.0 if self.quick else 5.0

    @property
    def cluster(self) -> Cluster:
        """The server of this fault's own."""
        if self._cluster is None:
            raise RuntimeError("This fault did not ask for a cluster of its own.")
        return self._cluster

    def goes_on(self) -> bool:
        """Whether there is time for another injection, from the first call on; there is for one at least."""
        if self._end is None:
            self._end = SYSTEM.monotonic() + self.trial.seconds
        late = SYSTEM.monotonic() - self._end
        return late < (0 if self.injections else PATIENCE)

    def pause(self, shortest: float, longest: float | None = None) -> None:
        """Wait for some time, by the dice if there are two bounds."""
        time.sleep(self.rng.uniform(shortest, shortest if longest is None else longest))

    def injected(self, how: str = "", *, note: bool = True) -> None:
        """Count an injection; the ledger tells of it unless it has heard already."""
        self.injections += 1
        if note:
            self.ledger.note(What.INJECTED, how=how)

    def healed(self) -> None:
        """Note that the fault is over: from here on is counted how long it takes until work goes on."""
        self.ledger.note(What.HEALED)

    def enqueue(self, kind: str, count: int = 1, **payload: Any) -> list[str]:
        """Enqueue jobs from here, on the record; return the ids of those that were accepted."""
        tried = (enqueue(self.ledger, kind, self.rng, **payload) for _ in range(count))
        return [job for job in tried if job]

    def expect(self, condition: object, words: str) -> None:
        """Hold the fault's own promise against it; ``words`` say what was expected and what there is."""
        if not condition:
            self._failures.append(words)

    def afterwards(self, look: Callable[[Account], None]) -> None:
        """Have a function called once every job has come to its end."""
        self._afterwards.append(look)

    def started(self, *jobs: str) -> bool:
        """Whether each of these jobs has begun to run."""
        return set(jobs) <= {one.job for one in self.ledger.records() if one.what is What.START}

    def told(self, *kinds: What) -> list[Record]:
        """Read the records of some kinds."""
        return [one for one in self.ledger.records() if one.what in kinds]

    def drain(self) -> None:
        """End the load, replace the workers that died, and wait until each job has come to its end."""
        for status in self.load.stop():
            self.expect(status < 0, f"producers end well, one ended with {status}")
        self.crew.tend()
        began, reinforced = SYSTEM.monotonic(), -2.0
        while left := places.left():
            waited = SYSTEM.monotonic() - began
            if waited > PATIENCE:
                break
            if not self.crew.workers or (self.quick and waited > reinforced + 2 and _is_stranded()):
                # Somebody has to do what is left. And a worker sweeps when it starts: so a short run need not wait for
                # the next sweep of those that are up.
                self.crew.start(1, lease=self.lease)
                reinforced = waited
            time.sleep(0.1)
        self.findings["drain_seconds"] = round(SYSTEM.monotonic() - began, 2)
        self.expect(not left, f"everything drains within {PATIENCE:g} s, {left} jobs did not")

    def try_out(self, fault: Fault) -> Verdict:
        """Inject, drain, check; where one of these fails the others still tell what they can."""
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
        """Compare the ledger with the table, and look at what the fault itself promises."""
        self._account = check(self.ledger.records(), places.rows())
        self._failures += self._account.violations()
        self.expect(self.injections, "something is injected, nothing was")
        broken = places.complaints()
        self.expect(not broken, f"the database is whole, it is not: {broken[:3]}")
        for look in self._afterwards:
            look(self._account)


def _is_stranded() -> bool:
    """Whether a job is held under a lease that has ended."""
    held = apps.get_model("jobqueue", "Job")._default_manager.filter(status="in_progress")
    return bool(held.filter(lease_until__lt=backends.current().now() - timedelta(seconds=0.1)).exists())
