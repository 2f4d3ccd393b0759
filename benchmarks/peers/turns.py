"""One turn of a contestant, with a new store and new processes, which end with the turn."""

from __future__ import annotations

import json
import os
import select
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.children import Child, running
from benchmarks.databases import Place
from benchmarks.peers.adapters.handlers import PAYLOAD
from benchmarks.peers.adapters.tally import VARIABLE, Tally, make
from benchmarks.peers.catalogue import Contestant, League, Setting
from benchmarks.peers.crews import Crew, crew, last_line
from benchmarks.peers.stores import STORES
from jobqueue.clock import SYSTEM

_PATIENCE = 120.0
_LOOK = 0.002
LOG = "log"
TALLY = "tally"


class Failed(Exception):
    """A contestant did not do what it was to do; the message says what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What one turn found: jobs per second, seconds, percent of a core, megabytes."""

    jobs: int
    enqueue: float
    bulk: float | None
    drain: float
    memory_drained: float
    naps: float | None = None
    pickups: list[float] = field(default_factory=list)
    idle: float | None = None
    memory_idle: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How long turns are: the share of the jobs, the seconds of idling, the pickups and the seconds they may take."""

    share: float
    idle: float
    pickups: int
    seconds: float

    def of(self, jobs: int) -> int:
        """Shorten a number of jobs."""
        return max(50, int(jobs * self.share))


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A contestant in one setting, beside a process of its own that enqueues and is asked what is left."""

    contestant: Contestant
    setting: Setting
    sizes: Sizes
    place: Place
    command: Sequence[str]
    folder: Path
    desk: Child

    def measure(self) -> Findings:
        """Measure everything there is to measure; bare SQL has no handlers to be picked up."""
        if self.contestant.league is League.RAW:
            return self.drain()
        idle = self._idle()
        return replace(self.drain(), naps=self._naps(), **idle)

    def _idle(self) -> dict[str, Any]:
        """Have workers wait for work, then give them one job at a time."""
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with self._crew(self.setting) as workers:
            self._pickups(workers, pipe, count=0, seconds=0, spread=0)  # they are up
            began = workers.cpu(), SYSTEM.monotonic()
            time.sleep(self.sizes.idle)
            idle = 100 * (workers.cpu() - began[0]) / (SYSTEM.monotonic() - began[1])
            memory = workers.memory()
            pickups = self._pickups(workers, pipe, count=self.sizes.pickups, **self._pace())
            self._wait_until_settled(workers)
        return {"idle": idle, "memory_idle": memory, "pickups": pickups}

    def _pace(self) -> dict[str, float]:
        """Give those that look once a second as many moments to be caught in between as those that look often."""
        if self.contestant.league is League.INSTALLED:
            return {"seconds": 3 * self.sizes.seconds, "spread": 1.0}
        return {"seconds": self.sizes.seconds, "spread": 0.03}

    def _pickups(self, workers: Crew, pipe: Path, **about: float) -> list[float]:
        try:
            return [float(each) for each in self.ask("pickups", path=str(pipe), **about)]
        except Failed:
            workers.check()  # knows better why
            raise

    def drain(self) -> Findings:
        """Enqueue one by one and in bulk, then have workers run it all."""
        count = self.sizes.of(self.contestant.jobs)
        singly = min(self.sizes.of(self.contestant.singly), count // 2)
        seconds = self.ask("fill_singly", job="resize_image", payload=PAYLOAD, count=singly)
        bulk = self._fill("resize_image", count - singly)
        drain, memory = self._drained(self.setting, count)
        return Findings(
            jobs=count,
            enqueue=singly / seconds,
            bulk=bulk and (count - singly) / bulk,
            drain=drain,
            memory_drained=memory,
        )

    def _naps(self) -> float:
        """Have workers run jobs that sleep."""
        count = self.sizes.of(self.contestant.jobs // 4)
        self._fill("nap", count)
        return self._drained(self.contestant.napping or self.setting, count)[0]

    def _fill(self, job: str, count: int) -> float | None:
        """Enqueue in bulk, or one by one where there is no bulk call; say how long the bulk call took."""
        seconds: float | None = self.ask("fill_in_bulk", job=job, payload=PAYLOAD, count=count)
        if seconds is None:
            self.ask("fill_singly", job=job, payload=PAYLOAD, count=count)
        if self.contestant.analysed:
            self.ask("analyse")
        return seconds

    def _drained(self, setting: Setting, count: int) -> tuple[float, float]:
        """Take the time from the first handler's start until the store has nothing queued or running."""
        with self._crew(setting) as workers, closing(Tally(self.folder / TALLY)) as tally:
            _wait(workers, lambda: tally.count() >= count, lambda: f"{tally.count():,} of {count:,} jobs began")
            self._wait_until_settled(workers)
            ended = SYSTEM.monotonic()
            if tally.count() != count:
                raise Failed(f"{tally.count():,} jobs were run, not {count:,}")
            return count / (ended - tally.first()), workers.memory()

    def _wait_until_settled(self, workers: Crew) -> None:
        _wait(workers, lambda: not self.ask("left"), lambda: f"{self.ask('left'):,} jobs are left")

    def _crew(self, setting: Setting) -> AbstractContextManager[Crew]:
        make(self.folder / TALLY)
        command = [*self.command, "work", asked(self.place, setting)]
        return crew(command, setting.processes, self.folder / LOG, **{VARIABLE: str(self.folder / TALLY)})

    def ask(self, verb: str, **about: Any) -> Any:
        """Put a question to the process that enqueues."""
        self.desk.ask({"verb": verb, "about": about})
        if not select.select([self.desk.answers], [], [], _PATIENCE)[0]:
            raise Failed(f"no answer to {verb} within {_PATIENCE:g} seconds")
        line = self.desk.answers.readline()
        if not line:
            raise Failed(f"the process that enqueues has ended: {last_line(self.folder / LOG)}")
        answer = json.loads(line)
        if "error" in answer:
            raise Failed(f"{verb}: {answer['error']}")
        return answer["answer"]


def _wait(workers: Crew, is_so: Callable[[], bool], state: Callable[[], str]) -> None:
    end = SYSTEM.monotonic() + _PATIENCE
    while not is_so():
        workers.check()
        if SYSTEM.monotonic() > end:
            raise Failed(f"after {_PATIENCE:g} seconds {state()}")
        time.sleep(_LOOK)


def asked(place: Place, setting: Setting) -> str:
    """Tell an adapter where and how."""
    return json.dumps({"place": asdict(place), "options": dict(setting.options), "processes": setting.processes})


@contextmanager
def turn(contestant: Contestant, setting: Setting, python: str, sizes: Sizes) -> Iterator[Turn]:
    """Make a store for a contestant, with its tables in it."""
    command = [python, "-m", "benchmarks.peers.adapters", contestant.peer.name]
    with STORES[contestant.store].make() as place, tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        with (folder / LOG).open("ab") as log, running([*command, "serve", asked(place, setting)], stderr=log) as desk:
            begun = Turn(
                contestant=contestant,
                setting=setting,
                sizes=sizes,
                place=place,
                command=command,
                folder=folder,
                desk=desk,
            )
            begun.ask("prepare")
            yield begun
