"""The results of a contestant's turns: medians and spreads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from benchmarks import timing
from benchmarks.peers.adapters.handlers import NAP
from benchmarks.peers.catalogue import Contestant, Setting
from benchmarks.peers.stores import STORES
from benchmarks.peers.turns import Findings

Pick = Callable[[Findings], float | None]


@dataclass(slots=True)
class Standing:
    """A contestant, the setting it runs in, and what was found in each of its turns."""

    contestant: Contestant
    setting: Setting = field(init=False)
    python: str = ""
    tried: dict[str, float] = field(default_factory=dict)
    findings: list[Findings] = field(default_factory=list)
    why_not: str = ""

    def __post_init__(self) -> None:
        self.setting = self.contestant.settings[0]

    @property
    def name(self) -> str:
        """Name the contestant and its store."""
        return f"{self.contestant.title} on {STORES[self.contestant.store].title}"

    def values(self, pick: Pick) -> list[float]:
        """Pick one figure from every turn that has it."""
        return [value for value in map(pick, self.findings) if value is not None]

    def drain(self) -> float:
        """Say how many no-op jobs per second it drains."""
        return median(self.values(lambda one: one.drain) or [0.0])

    def pickups(self) -> list[float]:
        """Put the pickups of all turns together."""
        return [one for findings in self.findings for one in findings.pickups]

    def as_json(self) -> dict[str, Any]:
        """Tell everything, for programs."""
        contestant = self.contestant
        napping = contestant.napping or self.setting
        return {
            "queue": contestant.peer.title,
            "requirements": contestant.peer.requirements,
            "store": STORES[contestant.store].title,
            "league": contestant.league,
            "setting": asdict(self.setting),
            "setting_of_sleeping_jobs": asdict(napping),
            "tried": self.tried,
            "analysed": contestant.analysed,
            "note": contestant.peer.note,
            "not_run": self.why_not,
            "turns": [asdict(one) for one in self.findings],
        }


def spread(values: Sequence[float]) -> str:
    """Write a median, and the lowest and highest beside it."""
    if not values:
        return "-"
    if len(values) == 1:
        return f"{values[0]:,.0f}"
    return f"{median(values):,.0f} ({min(values):,.0f}-{max(values):,.0f})"


def middle(values: Sequence[float], digits: int = 0) -> str:
    """Write a median."""
    return f"{median(values):,.{digits}f}" if values else "-"


def at_once(values: Sequence[float]) -> str:
    """Write how many sleeping jobs ran at a time, on average, beside their rate."""
    return f"{median(values):,.0f} ({median(values) * NAP:.0f})" if values else "-"


def tail(durations: Sequence[float]) -> str:
    """Write the middle and the end of many durations, in milliseconds, and how many there are."""
    if not durations:
        return "-"
    percentiles = (1000 * timing.percentile(durations, percent) for percent in (50, 95, 99))
    return f"{' / '.join(f'{one:.2f}' for one in percentiles)} ({len(durations)})"
