"""The run. Contestants take turns in each repetition, so that a slow spell of the machine affects all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.peers.catalogue import Contestant
from benchmarks.peers.environments import interpreter
from benchmarks.peers.standings import Standing
from benchmarks.peers.turns import Sizes, turn
from benchmarks.site import REPETITIONS
from jobqueue.clock import SYSTEM

_FULL = Sizes(share=1, idle=2, pickups=50, seconds=2.5)
_TRIAL = Sizes(share=0.5, idle=0, pickups=0, seconds=0)
_QUICK = Sizes(share=0.02, idle=0.2, pickups=5, seconds=0.5)


class Contest:
    """Who takes part, and what was found of each so far."""

    def __init__(self, contestants: Iterable[Contestant], environments: Path, *, quick: bool) -> None:
        self.standings = [Standing(contestant) for contestant in contestants]
        self._environments = environments
        self._quick = quick

    def hold(self, minutes: float) -> None:
        """Try each contestant's settings, then let all take turns in the best of theirs.

        After so many minutes no further round begins, so that all have had as many turns; the first one always does.
        """
        end = SYSTEM.monotonic() + 60 * minutes
        for standing in self.standings:
            self._attempt(standing, self._enter)
        for repetition in range(1 if self._quick else REPETITIONS):
            if repetition and SYSTEM.monotonic() > end:
                print(f"The time is over: {repetition} of {REPETITIONS} rounds.", file=sys.stderr, flush=True)
                break
            for standing in self.standings:
                self._attempt(standing, self._take_turn)

    def _attempt(self, standing: Standing, step: Callable[[Standing], str]) -> None:
        """Take a step with a contestant. Who cannot go on is out of the run, and the run goes on."""
        if standing.why_not:
            return
        try:
            said = step(standing)
        except Exception as error:  # whatever a peer does wrong, the others are to be measured
            standing.why_not = f"{type(error).__name__}: {error}"
            said = f"!!! {standing.why_not}"
        if said:
            print(f"{standing.name}: {said}", file=sys.stderr, flush=True)

    def _enter(self, standing: Standing) -> str:
        contestant = standing.contestant
        standing.python = interpreter(contestant.peer, self._environments)
        if self._quick or len(contestant.settings) == 1:
            return ""
        for setting in contestant.settings:
            with turn(contestant, setting, standing.python, _TRIAL) as trial:
                standing.tried[setting.label] = trial.drain().drain
        standing.setting = max(contestant.settings, key=lambda setting: standing.tried[setting.label])
        return "tried " + ", ".join(f"{label}: {rate:,.0f}/s" for label, rate in standing.tried.items())

    def _take_turn(self, standing: Standing) -> str:
        sizes = _QUICK if self._quick else _FULL
        with turn(standing.contestant, standing.setting, standing.python, sizes) as taken:
            findings = taken.measure()
        standing.findings.append(findings)
        return f"{standing.setting.label}: {findings.drain:,.0f}/s"
