"""The load: producers in real processes, which record their attempts and results."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from random import Random

from benchmarks.children import ROOT
from benchmarks.databases import Place
from benchmarks.faults.crew import Crew

ENDLESS = 1_000_000_000
#: The usual load: short jobs, some longer than the lease, and some with checkpoints.
USUAL = {"short": 90, "long": 5, "patient": 5}


class Load:
    """The producers of a run. They have the crew's mark, so that none is left behind."""

    def __init__(self, place: Place, crew: Crew, rng: Random) -> None:
        self._place = place
        self._crew = crew
        self._rng = rng
        self._producers: list[subprocess.Popen[bytes]] = []

    def start(
        self,
        producers: int = 2,
        *,
        rate: float = 20.0,
        mix: Mapping[str, int] = USUAL,
        count: int = ENDLESS,
        place: Place | None = None,
        prefix: tuple[str, ...] = (),
    ) -> None:
        """Start producers with a ``rate`` of jobs per second and a number of jobs. Return when they begin."""
        for _ in range(producers):
            producer = subprocess.Popen(
                [*prefix, sys.executable, "-m", "benchmarks.faults.producer_process"],
                cwd=ROOT,
                env=self._crew.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
            asked = {"place": asdict(place or self._place), "seed": self._rng.random(), "rate": rate, "count": count}
            if producer.stdin:
                producer.stdin.write(json.dumps({**asked, "mix": dict(mix)}).encode() + b"\n")
            self._producers.append(producer)
        for producer in self._producers[-producers:]:
            if producer.stdout:
                producer.stdout.readline()

    @property
    def pids(self) -> list[int]:
        """Return the running producers."""
        return [one.pid for one in self._producers if one.poll() is None]

    def wait(self, seconds: float) -> None:
        """Wait until the producers have enqueued all their jobs."""
        for producer in self._producers:
            producer.wait(seconds)

    def stop(self, seconds: float = 60.0) -> list[int]:
        """Stop the producers after their current job. Return how those ended that should not have."""
        for producer in self._producers:
            if producer.stdin:
                producer.stdin.close()
        statuses = [producer.wait(seconds) for producer in self._producers]
        for producer in self._producers:
            if producer.stdout:
                producer.stdout.close()
        self._producers.clear()
        return [status for status in statuses if status]
