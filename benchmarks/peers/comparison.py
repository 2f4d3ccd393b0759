"""The whole comparison, from the choice of contestants to the report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.peers.catalogue import contestants
from benchmarks.peers.chart import chart
from benchmarks.peers.contest import Contest
from benchmarks.peers.ratios import Field, Ratio
from benchmarks.peers.standings import Standing
from benchmarks.peers.stores import durability
from benchmarks.peers.tables import tables

VENDORS = {
    "sqlite": frozenset({"sqlite"}),
    "postgres": frozenset({"postgres"}),
    "both": frozenset({"sqlite", "postgres", "redis"}),
}


@dataclass(slots=True)
class Comparison:
    """What was found of everyone."""

    standings: list[Standing]
    ratios: list[Ratio] = field(init=False)
    durability: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.ratios = list(Field(self.standings).ratios())
        self.durability = durability({standing.contestant.store for standing in self.standings})

    def parts(self) -> Iterator[str]:
        """Tell it as Markdown."""
        return tables(self.standings, self.ratios, self.durability)

    def failures(self) -> list[str]:
        """Name those of this queue's own turns that failed: what a peer cannot do is no failure of the run."""
        return [
            f"{standing.name}: {standing.why_not}".upper()
            for standing in self.standings
            if standing.why_not and not standing.contestant.peer.requirements
        ]

    def as_json(self) -> dict[str, Any]:
        """Tell it for programs."""
        return {
            "contestants": [standing.as_json() for standing in self.standings],
            "ratios": [asdict(ratio) | {"reached": ratio.reached} for ratio in self.ratios],
            "durability": self.durability,
        }

    def draw(self, path: Path) -> None:
        """Draw it."""
        path.write_text(chart(self.standings), encoding="utf-8")


def compare(names: frozenset[str], database: str, environments: Path, *, quick: bool, minutes: float) -> Comparison:
    """Let this queue and its peers take turns."""
    contest = Contest(contestants(names, VENDORS[database]), environments, quick=quick)
    contest.hold(minutes)
    return Comparison(contest.standings)
