"""A network to Postgres that is slow, silent, reset, or cut during a commit."""

from __future__ import annotations

from benchmarks.faults.catalogue import POSTGRES, fault
from benchmarks.faults.checker import Account
from benchmarks.faults.crew import Crew
from benchmarks.faults.laboratory import Laboratory
from benchmarks.faults.ledger import What
from benchmarks.faults.load import Load
from benchmarks.faults.promises import expect_in_reach, expect_one_run
from benchmarks.faults.proxy import Proxy
from benchmarks.workers import until
from jobqueue import backends
from jobqueue.clock import SYSTEM

SLOW = 0.2
#: Longer than an answer; a cut is never behind the end of one.
_SHORT_ANSWER = 120
#: What was handed out before a connection fell silent has begun by then.
_HANDED_OUT = 0.3


def through_proxies(lab: Laboratory, leases: int = 1) -> tuple[Proxy, Proxy]:
    """Start workers and producers that reach the database through proxies."""
    workers, producers = Proxy(lab.place), Proxy(lab.place)
    lab.crew = Crew(workers.place, lab.folder, lab.ledger)
    lab.load = Load(producers.place, lab.crew, lab.rng)
    lab.crew.start(2, concurrency=4, lease=leases * lab.lease)
    lab.load.start(2, rate=20)
    return workers, producers


@fault("T15a", "a network that takes 200 ms each way", databases=POSTGRES)
def slow_network(lab: Laboratory) -> None:
    """Delay all traffic by 200 ms at times: no connection is given up, and no run is repeated."""
    proxies = through_proxies(lab, leases=4)
    lab.pause(0.5)
    while lab.goes_on():
        for proxy in proxies:
            proxy.delay = SLOW
        lab.injected("200 ms each way")
        lab.pause(1.0, 3.0)
        for proxy in proxies:
            proxy.delay = 0.0
        lab.pause(0.3)
    expect_in_reach(lab)
    expect_one_run(lab)


@fault("T15b", "a network that falls silent, and closes nothing", databases=POSTGRES)
def silent_network(lab: Laboratory) -> None:
    """Drop all traffic of existing connections: workers open new ones within their lease."""
    workers, producers = through_proxies(lab)
    hangs: list[float] = []
    longest = lab.lease + 2  # no connection is tried for less than two seconds
    while lab.goes_on():
        until(lambda: _began_after(lab, 0.0) is not None, "work goes on")
        workers.swallows = producers.swallows = lab.rng.random() < 0.5
        workers.silence()
        producers.silence()
        lab.injected("silent, new connections too" if workers.swallows else "silent")
        if workers.swallows:
            lab.pause(0.5, lab.lease)
            workers.swallows = producers.swallows = False
        producers.reset()  # nothing but the application's own settings would end their waiting
        healed = SYSTEM.monotonic()
        lab.healed()
        lab.pause(_HANDED_OUT)
        hangs.append(_wait_for_work(lab, healed, longest) - healed)
        workers.reset(silent_only=True)  # the server still holds what is behind them, and has only so many
    lab.findings["longest_hang_seconds"] = round(max(hangs), 2)
    lab.expect(max(hangs) <= longest, f"workers go on within {longest:g} s, they took {max(hangs):.1f} s")


def _wait_for_work(lab: Laboratory, healed: float, longest: float) -> float:
    """Wait for a run that was claimed after the network recovered. Return when it began, or when this gave up."""
    while (began := _began_after(lab, healed + _HANDED_OUT)) is None:
        if SYSTEM.monotonic() > healed + 2 * longest:
            return SYSTEM.monotonic()
        lab.pause(0.05)
    return began


def _began_after(lab: Laboratory, moment: float) -> float | None:
    return next((one.at for one in lab.told(What.START) if one.at > moment), None)


@fault("T15c", "connections that are reset, again and again", databases=POSTGRES)
def reset_connections(lab: Laboratory) -> None:
    """Reset the connections of workers or producers (RST): both reconnect, and nothing accepted is lost."""
    proxies = through_proxies(lab)
    while lab.goes_on():
        lab.pause(0.2, 0.6)
        if lab.rng.choice(proxies).reset():
            lab.injected("RST")


@fault("T15d", "an answer to COMMIT that is cut", databases=POSTGRES)
def cut_answers(lab: Laboratory) -> None:
    """Cut the server's answer to COMMIT at each byte: the job exists under its id, and no work is lost."""
    workers, producers = proxies = through_proxies(lab)
    while lab.goes_on():
        proxy = lab.rng.choice(proxies) if sum(producers.cuts.values()) and sum(workers.cuts.values()) else None
        for one in [proxy] if proxy else proxies:
            before = one.cuts.total()
            one.cut_next(lab.rng.randrange(_SHORT_ANSWER))
            until(lambda one=one, before=before: one.cuts.total() > before, "an answer is cut")  # type: ignore[misc]
            lab.injected("cut")
        lab.pause(0.1, 0.4)
    lab.findings |= {"cut_for_workers": dict(workers.cuts), "cut_for_producers": dict(producers.cuts)}

    def look(account: Account) -> None:
        unknown = [one.job for one in lab.told(What.UNKNOWN)]
        cuts = producers.cuts.total()
        lab.expect(len(unknown) == cuts, f"each of {cuts} cuts leaves a producer in the dark, {len(unknown)} did")
        absent = [job for job in unknown if backends.current().jobs.get(job) is None]
        lab.expect(not absent, f"what was committed is found by its id, {len(absent)} were not: {absent[:3]}")
        lab.expect(account.recovered == account.unknown, "what was committed is run")

    lab.afterwards(look)
