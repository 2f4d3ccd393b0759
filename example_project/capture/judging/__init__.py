"""The evaluation of the rules: texts with marked private data, and what the rules find in them."""

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
    """A text as people write it, and the private data in it: category and wording."""

    text: str
    private: Counter[Private]


@dataclass(frozen=True)
class Verdict:
    """The numbers of expected, found and correct findings, over any number of lines."""

    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        """Return the share of removed passages that are private."""
        return self.right / (self.right + self.wrong) if self.right else 0.0

    @property
    def recall(self) -> float:
        """Return the share of private passages that were removed."""
        return self.right / (self.right + self.missed) if self.right else 0.0


@dataclass(frozen=True)
class Judgement:
    """The verdict on all lines and on each category, and the errors: text, category and wording."""

    lines: int
    negative: int
    overall: Verdict
    by_category: dict[str, Verdict]
    wrong: list[tuple[str, Private]]
    missed: list[tuple[str, Private]]


def read(path: Path = LINES) -> Iterator[Line]:
    """Return the lines of a file without their marks."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("# "):
            private = Counter((match["category"], match["original"]) for match in _MARK.finditer(line))
            yield Line(_MARK.sub(lambda match: match["original"], line), private)


def judge(lines: list[Line]) -> Judgement:
    """Compare the findings of the rules with the marks."""
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
