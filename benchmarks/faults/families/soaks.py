"""A long run with several kinds of faults, to find growth and leaks."""

from __future__ import annotations

from django.db import connection

from benchmarks.faults.catalogue import fault
from benchmarks.faults.crew import Worker
from benchmarks.faults.laboratory import Laboratory
from benchmarks.faults.sampling import Samples
from benchmarks.faults.soundness import look_for_damage
from benchmarks.workers import until

#: What a supervisor that has nothing to do may have more of than when it began.
_SLACK = 4
_HELD = ("descriptors of supervisors", "threads of supervisors")


@fault("T28", "a soak: faults of several kinds, and what grows meanwhile")
def soak(lab: Laboratory) -> None:
    """Kill and freeze executors and end sessions for the whole time: supervisors leak nothing."""
    look_for_damage(lab)
    workers = lab.crew.start(2, processes=2, concurrency=4, lease=lab.lease)
    samples = Samples(lab, workers)
    lab.load.start(2, rate=10)
    lab.pause(0.5)
    faults = [_kill_an_executor, _freeze_an_executor, *([_end_a_session] if lab.database == "postgres" else [])]
    while lab.goes_on():
        samples.take()
        faults[lab.injections % len(faults)](lab, lab.rng.choice(workers))
        lab.pause(0.3, 0.6 if lab.quick else 5.0)
    lab.load.stop()
    _expect_nothing_to_pile_up(lab, workers, samples)
    lab.findings.update(samples.slopes())


def _kill_an_executor(lab: Laboratory, worker: Worker) -> None:
    if executors := worker.executors:
        lab.crew.kill(worker, lab.rng.choice(executors))
        lab.injected(note=False)


def _freeze_an_executor(lab: Laboratory, worker: Worker) -> None:
    if executors := worker.executors:
        chosen = lab.rng.choice(executors)
        lab.crew.freeze(worker, chosen)
        lab.pause(0.1, lab.lease)
        lab.crew.thaw(worker, chosen)
        lab.injected(note=False)


def _end_a_session(lab: Laboratory, _: Worker) -> None:
    """Let the server end a session on this database that isn't the laboratory's."""
    others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_terminate_backend(pid) {others} ORDER BY random() LIMIT 1")
    lab.injected("pg_terminate_backend")


def _expect_nothing_to_pile_up(lab: Laboratory, workers: list[Worker], samples: Samples) -> None:
    """Expect supervisors to return to their numbers of descriptors, threads and executors."""

    def is_at_rest() -> bool:
        samples.take()
        piled = [samples.last(name) - samples.first(name) for name in _HELD]
        return all(one <= _SLACK for one in piled) and all(len(one.executors) == 2 for one in workers)

    try:
        until(is_at_rest, "nothing has piled up", pause=0.5)
    except RuntimeError:
        held = {name: (samples.first(name), samples.last(name)) for name in _HELD}
        lab.expect(False, f"supervisors end with as much as they began with, they have {held}")
