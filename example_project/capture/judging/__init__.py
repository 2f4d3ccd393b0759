"""How good the rules are: texts in which the private data is marked, and what the rules make of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from example_project.capture.sanitising import sanitise

LINES = Path(__file__).parent / "private_data.txt"
_MARK = re.compile(r"«(?P<category>[a-z]+):(?P<original>[^»]+)»")

Private = tuple[str, str]


@dataclass(frozen=True)
class Line:
    """A text as people write it, and what is private in it: category and wording."""

    text: str
    private: Counter[Private]


@dataclass(frozen=True)
class Verdict:
    """What the rules found of what they should have, over any number of lines."""

    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        """The share of what was taken out that is private."""
        return self.right / (self.right + self.wrong) if self.right else 0.0

    @property
    def recall(self) -> float:
        """The share of what is private that was taken out."""
        return self.right / (self.right + self.missed) if self.right else 0.0


@dataclass(frozen=True)
class Judgement:
    """The verdict on all lines and on each category, and what went wrong: the text, the category and the wording."""

    lines: int
    negative: int
    overall: Verdict
    by_category: dict[str, Verdict]
    wrong: list[tuple[str, Private]]
    missed: list[tuple[str, Private]]


def read(path: Path = LINES) -> Iterator[Line]:
    """Read the lines of a file, without their marks."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("# "):
            private = Counter((match["category"], match["original"]) for match in _MARK.finditer(line))
            yield Line(_MARK.sub(lambda match: match["original"], line), private)


def judge(lines: list[Line]) -> Judgement:
    """Compare what the rules find with what is marked."""
    right: list[Private] = []
    wrong: list[tuple[str, Private]] = []
    missed: list[tuple[str, Private]] = []
    for line in lines:
        found = Counter((one.category, one.original) for one in sanitise(line.text).findings)
        right += (found & line.private).elements()
        wrong += [(line.text, one) for one in (found - line.private).elements()]
        missed += [(line.text, one) for one in (line.private - found).elements()]
    categories = sorted({category for line in lines for category, _ in line.private})
    counted = [Counter(one[0] for one in ones) for ones in (right, (w for _, w in wrong), (m for _, m in missed))]
    return Judgement(
        lines=len(lines),
        negative=sum(not line.private for line in lines),
        overall=Verdict(len(right), len(wrong), len(missed)),
        by_category={one: Verdict(*(count[one] for count in counted)) for one in categories},
        wrong=wrong,
        missed=missed,
    )
