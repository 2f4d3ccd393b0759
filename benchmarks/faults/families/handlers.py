"""Harmful handlers: they hold the interpreter, never end, kill their process, or use all memory."""

from __future__ import annotations

from itertools import pairwise

from benchmarks.faults.catalogue import fault
from benchmarks.faults.checker import Account
from benchmarks.faults.laboratory import Laboratory
from benchmarks.faults.ledger import Record, What
from benchmarks.faults.needs import MemoryGroup, memory_group
from benchmarks.faults.place import left
from benchmarks.workers import until

STOP_GRACE = 0.5
#: What a busy machine may add.
LENIENCE = 3.0


@fault("T07", "jobs that hold the interpreter's lock for longer than their lease")
def hold_the_interpreter(lab: Laboratory) -> None:
    """Hold the lock in C for up to three leases, beside short jobs: leases are kept, and each job runs once."""
    lab.crew.start(2, processes=1, concurrency=3, lease=2.0)
    while lab.goes_on():
        lab.enqueue("hog", 4)
        lab.enqueue("short", 12)
        until(lambda: not left(), "all of them end")
        lab.injections += 4

    def look(account: Account) -> None:
        lab.expect(account.runs == account.accepted, f"each job is run once, there were {account.runs} runs")

    lab.afterwards(look)


@fault("T08", "jobs that never end, in Python and in C")
def never_end(lab: Laboratory) -> None:
    """Run jobs that never end: each is ended at its time limit, its attempt counts, and its slot becomes free."""
    lab.crew.start(1, processes=2, concurrency=2, lease=lab.lease, stop_grace=STOP_GRACE)
    while lab.goes_on():
        lab.enqueue("endless", 4)
        lab.enqueue("short", 12)
        until(lambda: not left(), "all of them end")
        lab.injections += 4
    begun: dict[str, list[Record]] = {}
    for one in lab.told(What.START):
        begun.setdefault(one.job, []).append(one)
    late = [after.at - before.at - 1.0 for several in begun.values() for before, after in pairwise(several)]
    lab.findings["seconds_past_the_limit_at_most"] = round(max(late, default=0.0), 2)
    lab.expect(max(late, default=0.0) < STOP_GRACE + LENIENCE, f"a job is ended at its limit, not {max(late)} s later")


@fault("T10", "jobs that take all the memory", needs=(memory_group,))
def run_out_of_memory(lab: Laboratory) -> None:
    """Let jobs exhaust the memory until the kernel kills them: they become dead letters, others complete."""
    with MemoryGroup(megabytes=400) as group:
        lab.crew.start(1, prefix=group.prefix, processes=2, concurrency=4, lease=lab.lease)
        while lab.goes_on():
            lab.enqueue("short", 10)
            lab.enqueue("glutton", 2)
            lab.enqueue("short", 10)
            until(lambda: not left(), "all of them end")
            lab.injections += 2
        lab.findings["processes_ended_by_the_kernel"] = group.kills
        lab.expect(group.kills >= lab.injections, f"the kernel ends processes, there were {group.kills}")
        lab.crew.stop()


@fault("T11", "jobs that crash their process, each in its own way")
def poison_among_many(lab: Laboratory) -> None:
    """Mix jobs that crash or hang with others: they become dead letters, and the others are not affected."""
    lab.crew.start(1, processes=2, concurrency=4, lease=lab.lease, stop_grace=STOP_GRACE)
    lab.load.start(1, rate=15, mix={"short": 85, "harm": 15})
    while lab.goes_on():
        lab.pause(0.5)
        lab.injections = len([one for one in lab.told(What.TRYING) if one.facts["expects"] == "dead_letter"])
