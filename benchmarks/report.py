"""The report of a run: figures as values, as rows of a Markdown table, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

HEADINGS = ("database", "measure", "ours", "raw SQL", "share", "to reach")
_WIDTHS = (8, 65, 34, 34, 5, 34)
LEGEND = (
    "Each figure is the median of the repetitions (lowest to highest), run in turns with the bare SQL through the "
    "driver. A share of 100% is as fast as the bare SQL. A rate counts as reached by itself, or by the share that it "
    "is of what the bare SQL did on the machine it was set for: so a slow machine, or a slow hour, can tell as well. "
    "Claims are compared with those among a thousand rows by the quickest of each, which a busy machine disturbs least."
)


@dataclass(frozen=True, slots=True)
class Value:
    """A result, for people and for programs."""

    text: str
    numbers: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Goal:
    """A rate to reach, in jobs per second, and the bare SQL's rate on the machine that it was set for."""

    rate: int
    beside: int

    @property
    def share(self) -> float:
        """Return the goal as a share, which holds on any machine."""
        return self.rate / self.beside

    def __str__(self) -> str:
        return f"≥ {self.rate:,}/s or {self.share:.0%}"

    def is_reached(self, rate: float, share: float | None) -> bool:
        """Return whether a rate, or its share, reaches the goal."""
        return rate >= self.rate or (share is not None and share >= self.share)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One row: our value, the bare SQL's, our share of it, and the goal."""

    database: str
    measure: str
    ours: Value
    raw: Value | None = None
    share: float | None = None
    goal: str = ""
    reached: bool | None = None

    @classmethod
    def of(cls, values: dict[str, Any]) -> Figure:
        """Return a figure from JSON data."""
        raw = values["raw"] and Value(**values["raw"])
        return cls(**values | {"ours": Value(**values["ours"]), "raw": raw})

    def cells(self) -> tuple[str, ...]:
        """Return the cells in the order of the headings."""
        verdict = {None: "", True: ": reached", False: ": MISSED"}[self.reached]
        return (
            self.database,
            self.measure,
            self.ours.text,
            self.raw.text if self.raw else "-",
            "-" if self.share is None else f"{self.share:.0%}",
            self.goal + verdict,
        )


def line(cells: Iterable[str], widths: Sequence[int] = _WIDTHS) -> str:
    """Return a row of a table."""
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"| {' | '.join(padded)} |"


def head() -> str:
    """Return the first two lines of a table."""
    return f"{line(HEADINGS)}\n{line('-' * width for width in _WIDTHS)}"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a whole table, with aligned columns."""
    written = [headings, *rows]
    widths = [max(map(len, column)) for column in zip(*written, strict=True)]
    lines = [line(cells, widths) for cells in written]
    return "\n".join([lines[0], line(("-" * width for width in widths), widths), *lines[1:]])


def write_json(path: Path, facts: dict[str, object], figures: Iterable[Figure]) -> None:
    """Write all results of a run to a file."""
    path.write_text(json.dumps({**facts, "figures": [asdict(one) for one in figures]}, indent=2) + "\n")
