"""Wall clocks that are an hour fast or slow, and jump while jobs run."""

from __future__ import annotations

from django.apps import apps

from benchmarks.faults.catalogue import POSTGRES, SQLITE, fault
from benchmarks.faults.checker import Account
from benchmarks.faults.enqueueing import tried
from benchmarks.faults.jobs import KINDS
from benchmarks.faults.laboratory import Laboratory
from benchmarks.faults.ledger import What, boot
from benchmarks.faults.needs import compiler
from benchmarks.faults.shifting import WrongClock
from jobqueue.clock import SYSTEM

_HOUR = 3600
#: What a job that is due may wait for a slot on a busy machine.
_PATIENCE = 20.0
#: The moment it is enqueued is known to the ledger's own pace only.
_BLUR = 0.05


@fault("T22a", "workers whose clocks are an hour ahead, or behind", databases=POSTGRES, needs=(compiler,))
def clocks_differ(lab: Laboratory) -> None:
    """Set the clocks of two of three workers off by an hour: no job expires, begins or ends too early."""
    clocks = [WrongClock(lab.folder, name) for name in ("ahead", "behind")]
    lab.crew.start(1, processes=1, concurrency=4, lease=lab.lease)
    for clock in clocks:
        lab.crew.start(1, prefix=clock.prefix, processes=1, concurrency=4, lease=lab.lease)
    lab.load.start(1, rate=20)
    delayed: dict[str, float] = {}
    while lab.goes_on():
        delayed |= _delayed(lab, 4, 1.0 if lab.quick else 10.0)
        clock = lab.rng.choice(clocks)
        clock.set(lab.rng.choice([one for one in (-_HOUR, 0, _HOUR) if one != clock.seconds]))
        _expect_wrong(lab, clock)
        lab.injected(f"a clock that is {clock.seconds} s ahead")
        lab.pause(0.3, 0.6 if lab.quick else 2 * lab.lease)

    def look(account: Account) -> None:
        lab.expect(not account.recoveries, f"no run is cut short, {len(account.recoveries)} were")
        _look_at_endings(lab, set())
        _look_at_beginnings(lab, delayed)

    lab.afterwards(look)


@fault("T22b", "the clock of the machine jumps", databases=SQLITE, needs=(compiler,))
def clock_jumps(lab: Laboratory) -> None:
    """Set the clock an hour ahead or a second back: no job is lost or stale; double runs count as stalls."""
    clock = WrongClock(lab.folder, "machine")
    workers = lab.crew.start(3, prefix=clock.prefix, processes=1, concurrency=4, lease=lab.lease)
    lab.load.start(2, rate=20, prefix=clock.prefix)
    everybody = [boot(pid) for one in workers for pid in one.family()]
    while lab.goes_on():
        # To a lease, a clock that jumps forward is a process that stood still for an hour; the docs promise no more.
        lab.ledger.note(What.FROZEN, boots=everybody, how="the clock jumps")
        clock.set(clock.seconds + lab.rng.choice([_HOUR, _HOUR, -1]))
        _expect_wrong(lab, clock)
        lab.injected(f"a clock that is {clock.seconds} s ahead")
        lab.pause(0.5, 1.0 if lab.quick else 3 * lab.lease)
        lab.ledger.note(What.THAWED, boots=everybody)
        lab.pause(0.2)
    lab.afterwards(lambda _: _look_at_endings(lab, {"lease_lost"}))


def _expect_wrong(lab: Laboratory, clock: WrongClock) -> None:
    """Check that the clock is off by the given time."""
    off = clock.shows() - SYSTEM.now().timestamp() - clock.seconds
    lab.expect(abs(off) < _PATIENCE, f"a clock is {clock.seconds} s ahead, it is off by {off:.1f} s more")


def _delayed(lab: Laboratory, count: int, longest: float) -> dict[str, float]:
    """Enqueue jobs with delays, and return these."""
    kind, delays = KINDS["short"], {}
    for _ in range(count):
        delay = round(lab.rng.uniform(0.2, longest), 3)
        draft = kind.handler.using(delay=delay).draft(**kind.payload(lab.rng))
        if tried(lab.ledger, draft, kind="short", expects=kind.expects):
            delays[draft.id] = delay
    return delays


def _look_at_endings(lab: Laboratory, allowed: set[str]) -> None:
    """Expect that all runs ended well, because time limits use another clock."""
    history = apps.get_model("jobqueue", "Attempt")._default_manager
    endings = set(history.values_list("ending", flat=True)) - allowed
    lab.expect(not endings, f"no run ends badly, some are {', '.join(sorted(endings))}")


def _look_at_beginnings(lab: Laboratory, delayed: dict[str, float]) -> None:
    """Expect delayed jobs to begin neither early nor much too late."""
    tried_at = {one.job: one.at for one in lab.told(What.TRYING)}
    late = [one.at - tried_at[one.job] - delayed[one.job] for one in lab.told(What.START) if one.job in delayed]
    lab.findings["begun after they were due, s"] = f"{min(late):.3f} to {max(late):.3f} of {len(late)}"
    lab.expect(min(late) >= -_BLUR, f"no job begins before it is due, one did {-min(late):.3f} s early")
    lab.expect(max(late) <= _PATIENCE, f"no job waits once it is due, one did for {max(late):.1f} s")
