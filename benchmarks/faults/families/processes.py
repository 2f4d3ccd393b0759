"""Processes that are killed, from outside or by their own jobs."""

from __future__ import annotations

from functools import partial

from benchmarks.faults.catalogue import fault
from benchmarks.faults.checker import Account
from benchmarks.faults.laboratory import Laboratory
from benchmarks.faults.ledger import What
from benchmarks.faults.place import effects
from benchmarks.workers import until


@fault("T01", "SIGKILL of any process of a worker, again and again")
def kill_processes(lab: Laboratory) -> None:
    """Kill a random supervisor, zygote or executor, and restart what ended: no accepted job is lost."""
    lab.crew.start(2 if lab.quick else 4, processes=2, concurrency=4, lease=lab.lease)
    lab.load.start(2, rate=20)
    while lab.goes_on():
        lab.pause(0.2, 0.6 if lab.quick else 3.0)
        lab.crew.tend()
        worker = lab.rng.choice(lab.crew.workers)
        if family := worker.family():
            lab.crew.kill(worker, lab.rng.choice(family))
            lab.injected(note=False)


@fault("T03b", "a process that dies around the commit of an atomic job")
def die_around_the_commit(lab: Laboratory) -> None:
    """Let atomic jobs kill their process before or after their commit: they write exactly once."""
    lab.crew.start(2, processes=2, concurrency=1, lease=lab.lease)
    accepted: list[str] = []
    while lab.goes_on():
        accepted += lab.enqueue("die_before_commit", 4) + lab.enqueue("die_after_commit", 4)
        until(partial(lab.started, *accepted), "all have begun")
        lab.injections = len(accepted)

    def look(_: Account) -> None:
        written = effects()
        off = [job for job in accepted if written.get(job) != 1]
        lab.expect(not off, f"what each job writes is there exactly once, not so of {len(off)}: {off[:3]}")

    lab.afterwards(look)


@fault("T03", "a process that dies between a job's effect and its end")
def die_after_the_effect(lab: Laboratory) -> None:
    """Let each job kill its process after its effect: it runs exactly once more, and only its attempt counts."""
    lab.crew.start(2, processes=2, concurrency=1, lease=lab.lease)
    accepted: list[str] = []
    while lab.goes_on():
        accepted += lab.enqueue("die_after_effect", 8)
        until(partial(lab.started, *accepted), "all have begun")
        lab.injections = len(accepted)

    def look(account: Account) -> None:
        told = [one.job for one in lab.told(What.END)]
        off = [job for job in accepted if told.count(job) != 2]
        lab.expect(not off, f"each job that died once is run twice, not so {len(off)}: {off[:3]}")

    lab.afterwards(look)
