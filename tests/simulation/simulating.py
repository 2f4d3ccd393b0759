"""One simulation: a seed, some actors, many turns, and a check of the promises after each turn."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from django.db import connections

from jobqueue.backends.base import Backend
from jobqueue.policy.leases import settle_overdue
from jobqueue.policy.settling import completed
from jobqueue.records import ClaimRequest
from jobqueue.testing import VirtualClock
from jobqueue.testing.clock import NOON
from tests.conftest import TABLES, make_sql_backend
from tests.simulation.actors import LEASE, LIMITS, MOST_JOBS, TYPES, Operator, Producer, Sweeper, Worker, World
from tests.simulation.borders import PostgresWatch
from tests.simulation.changes import Changes
from tests.simulation.ledger import ACTIVE, Ledger
from tests.simulation.memory_changes import NotedMemory
from tests.simulation.turns import Actor, Fate, Turns, Watch

STEPS = 400
CAST = {"worker-1": Worker, "worker-2": Worker, "sweeper": Sweeper, "producer": Producer, "operator": Operator}
FAULTS = {
    "memory": (Fate.CRASH_BEFORE,),
    "default": (Fate.CRASH_BEFORE, Fate.CRASH_AFTER),
    "postgres": tuple(one for one in Fate if one is not Fate.GO),
}
#: How a test is called, and how many steps are told of.
NAMES = {"memory": "memory", "default": "sqlite", "postgres": "postgres"}
SHOWN = 60


class Broken(AssertionError):
    """A promise was broken; tells the seed and the last steps."""


class Simulation:
    """Runs seeds on one backend."""

    def __init__(self, kind: str) -> None:
        self.kind, self.alias = kind, "" if kind == "memory" else kind
        self.watch = PostgresWatch(kind) if kind == "postgres" else Watch()
        self.met: set[str] = set()

    def run(self, seed: int, steps: int = STEPS) -> list[str]:
        """Live through a seed; return the steps that were taken."""
        world = self._begin()
        world.clock_goes_back = seed % 4 == 3
        world.limits = world.ledger.limits = LIMITS if seed % 2 else ()
        turns = Turns(seed, self.watch, lambda rng: _pass_time(world, rng))
        turns.add(*(self._actor(world, name, Random(f"{seed} {name}")) for name in CAST))
        try:
            turns.run(steps, lambda: self._look(world, turns))
            self._come_to_an_end(world, turns)
        except Exception as error:
            last = "\n".join(turns.trace[-SHOWN:])
            raise Broken(
                f"Seed {seed} on {NAMES[self.kind]}: {type(error).__name__}: {error}\n{last}\n"
                f"Again: JOBQUEUE_SIMULATION_SEED={seed} python -m pytest tests/simulation "
                f"-k 'no_order and {NAMES[self.kind]}'"
            ) from error
        self.met |= turns.met | world.ledger.met()
        return turns.trace

    def _begin(self) -> World:
        clock, ledger = VirtualClock(), Ledger()
        if not self.alias:
            self.changes = backend = NotedMemory(clock)
            return World("", lambda: backend, clock, ledger)
        with connections[self.alias].cursor() as cursor:
            for table in (*(model._meta.db_table for model in TABLES), "change"):
                cursor.execute(f"DELETE FROM {table}")
        self.changes = Changes(self.alias)
        return World(self.alias, lambda: make_sql_backend(self.alias, clock), clock, ledger)

    def _actor(self, world: World, name: str, rng: Random) -> Actor:
        faults = FAULTS[self.kind] if name != "sweeper" else ()
        actor = Actor(name, lambda one: CAST[name](world, one).live(), faults, rng)
        actor.enter, actor.leave = world.connect, world.disconnect
        return actor

    def _look(self, world: World, turns: Turns) -> None:
        if turns.is_written or not self.alias:
            turns.is_written = any(actor.blocked for actor in turns.actors)
            for change in self.changes.new():
                world.ledger.note(change)
            world.ledger.check_limits()
        world.ledger.check_live(world.clock.monotonic())

    def _come_to_an_end(self, world: World, turns: Turns) -> None:
        """Let one last worker finish what is left, and look whether each accepted job has ended."""
        backend, owner, ledger = world.make_backend(), "nobody:1", world.ledger
        for pause in backend.operator.pauses():
            backend.operator.resume(pause.scope, pause.name)
        for _ in range(10 * MOST_JOBS if world.limits else 10):
            if not any(row["status"] in ACTIVE for row in ledger.rows.values()):
                break
            world.clock.advance(timedelta(minutes=2))
            _sweep(backend, world.clock)
            request = ClaimRequest(limit=50, types=frozenset(TYPES), lease=LEASE, limits=world.limits)
            claims = backend.cycle(owner, (), request).claims
            offers = [completed(claim) for claim in claims]
            for one in offers:
                ledger.offered(owner, one.claim, one.move)
            assert backend.cycle(owner, offers).refused == ()
            turns.is_written = True
            self._look(world, turns)
        ledger.check_answers()
        for job_id in sorted(ledger.accepted | ledger.born):
            ledger.check_end(job_id, backend.jobs.get(job_id))


def _sweep(backend: Backend, clock: VirtualClock) -> None:
    backend.sweep(settle_overdue)
    clock.advance(backend.second_look)
    backend.sweep(settle_overdue)


def _pass_time(world: World, rng: Random) -> str:
    seconds = rng.choice([1, 1, 5, 10, 20])
    if world.clock_goes_back and rng.random() < 0.2:
        world.ledger.clock_went_to = max(world.ledger.clock_went_to or NOON, world.clock.now())
        world.clock.step_back(timedelta(seconds=seconds))
        return f"-{seconds} s"
    world.clock.advance(seconds)
    return f"+{seconds} s"
