"""Turns: actors are threads, one of which runs from one border to the next, as chosen by a seed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from random import Random

#: In seconds: how long a turn may take, and after how much of it the database is asked whether it waits for a lock.
HUNG = 60
WAITS = "waits for the write lock"
PATIENCE = 0.005
_here = threading.local()


class Fate(Enum):
    """What becomes of the statement that a turn begins with."""

    GO = "goes on"
    CRASH_BEFORE = "crashes before it is sent"
    CRASH_AFTER = "crashes before the answer comes"
    CUT_BEFORE = "loses its connection before it is sent"
    CUT_AFTER = "loses its connection before the answer comes"


CRASHES = {Fate.CRASH_BEFORE, Fate.CRASH_AFTER}


class Crash(BaseException):
    """The process of the actor is gone; nothing may catch this."""


class Actor:
    """A virtual process: it lives its life again and again, until all is calm."""

    def __init__(self, name: str, life: Callable[[Actor], None], faults: tuple[Fate, ...], rng: Random) -> None:
        self.name, self.life, self.faults, self.rng = name, life, faults, rng
        self.turns: Turns
        self.fate = Fate.GO
        self.falling = True  # from a crash or a cut until the next life: no borders there
        self.waiting = False  # for SQLite's write lock
        self.blocked = False  # in Postgres, behind a lock
        self.over = False
        self.error: BaseException | None = None
        self.stalled_until = 0
        self.pid: int | None = None  # of its session in Postgres
        self.what = "begins"
        self.enter: Callable[[], None] = lambda: None
        self.leave: Callable[[], None] = lambda: None
        self.go, self.arrived = threading.Lock(), threading.Lock()
        self.go.acquire()
        self.arrived.acquire()
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)

    def _run(self) -> None:
        _here.actor = self
        self.go.acquire()
        try:
            while not self.turns.calm:
                self.enter()
                self.falling = False
                try:
                    self.life(self)
                except BaseException as error:
                    if not self.falling:
                        self.error = error
                        return
                self.falling = True
                self.leave()
        finally:
            self.falling = True
            self.leave()
            self.turns.release()
            self.over = True
            self.arrived.release()

    def border(self, what: str) -> Fate:
        """Let others have their turns; return what becomes of the step that follows."""
        self.what = what
        self.arrived.release()
        self.go.acquire()
        return self.fate

    def wait(self) -> None:
        """Let others have their turns until one of them has ended a transaction."""
        self.waiting = True
        self.turns.met.add("a lock")
        self.border(WAITS)


def here() -> Actor | None:
    """The actor whose thread this is."""
    return getattr(_here, "actor", None)


class Watch:
    """What a database tells of the actors' sessions; this one tells of none."""

    def is_blocked(self, actor: Actor) -> bool:
        """Say whether the session waits for a lock that another one has."""
        return False

    def await_end_of(self, actor: Actor) -> None:
        """Wait until the session whose connection was dropped is gone, and its transaction with it."""

    def close(self) -> None:
        """Watch no more."""


class Turns:
    """Who moves when: all of it follows from the seed."""

    def __init__(self, seed: int, watch: Watch, pass_time: Callable[[Random], str]) -> None:
        self.rng, self.watch, self.pass_time = Random(seed), watch, pass_time
        self.actors: list[Actor] = []
        self.trace: list[str] = []
        self.calm = False
        self.is_written = True  # since the last look, perhaps
        self.number = 0
        self.met: set[str] = set()

    def add(self, *actors: Actor) -> None:
        for actor in actors:
            actor.turns = self
            self.actors.append(actor)
            actor.thread.start()

    def run(self, steps: int, look: Callable[[], None]) -> None:
        """Take steps, and look after each of them; then let all come to the end of what they do."""
        try:
            while self.number < steps:
                self.number += 1
                if self.rng.random() < 0.1:
                    self.trace.append(f"{self.number:4} time      {self.pass_time(self.rng)}")
                else:
                    self._step(self._choose(), faulty=True)
                look()
        except BaseException:
            self._come_to_rest(quietly=True)
            raise
        self._come_to_rest(quietly=False)
        look()

    def _come_to_rest(self, *, quietly: bool) -> None:
        self.calm = True
        for _ in range(10_000):
            if all(actor.over for actor in self.actors):
                return
            with suppress(*[Exception] * quietly):
                self._step(self._choose(), faulty=False)
        if not quietly:
            raise AssertionError("the actors come to no end")

    def release(self) -> None:
        """A transaction has ended: those that wait may try again."""
        for actor in self.actors:
            actor.waiting = False

    def _choose(self) -> Actor:
        while True:
            able = [actor for actor in self.actors if not (actor.over or actor.waiting or actor.blocked)]
            awake = [actor for actor in able if self.calm or actor.stalled_until <= self.number]
            if not awake:
                self._unblock(able)
                continue
            chosen = self.rng.choice(awake)
            if self.calm or self.rng.random() > 0.02:
                return chosen
            chosen.stalled_until = self.number + self.rng.choice([10, 30, 100])
            self.trace.append(f"{self.number:4} {chosen.name:9} stalls")

    def _unblock(self, able: list[Actor]) -> None:
        for actor in able:
            actor.stalled_until = 0
        if not able:  # a deadlock is Postgres's to find; a waiting actor may try once more
            self.release()
            for actor in self.actors:
                if actor.blocked and actor.arrived.acquire(timeout=HUNG):
                    actor.blocked = False
                    break

    def _step(self, actor: Actor, *, faulty: bool) -> None:
        faults = actor.faults if faulty and actor.what != WAITS and self.rng.random() < 0.02 else ()
        actor.fate = self.rng.choice(faults) if faults else Fate.GO
        self.met.add(actor.fate.value)
        fate = "" if actor.fate is Fate.GO else f" … {actor.fate.value}"
        self.trace.append(f"{self.number:4} {actor.name:9} {actor.what}{fate}")
        actor.go.release()
        self._await(actor, PATIENCE)
        while any(self._await(one, patience=0) for one in self.actors if one.blocked):
            pass  # whoever came through may have let the next one through
        self._raise()

    def _await(self, actor: Actor, patience: float) -> bool:
        """Wait until the actor is at a border, or is known to be behind a lock; say whether it is at a border."""
        for _ in range(int(HUNG / PATIENCE)):
            if actor.arrived.acquire(timeout=patience):
                actor.blocked = False
                return True
            if self.watch.is_blocked(actor):
                actor.blocked = True
                self.met.add("a lock")
                return False
            patience = PATIENCE
        raise AssertionError(f"{actor.name} hangs after: {actor.what}")

    def _raise(self) -> None:
        for actor in self.actors:
            if actor.error is not None:
                error, actor.error = actor.error, None
                raise error
