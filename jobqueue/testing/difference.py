"""How what was found differs from what was wanted, as lines that people read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import ndiff
from pprint import pformat
from typing import Any

_MISSING = object()


@dataclass(frozen=True, slots=True)
class Likeness:
    """How many of the wanted values were found, of how many, and a diff of them."""

    equal: int
    wanted: int
    text: str

    @property
    def is_equal(self) -> bool:
        """Return whether all wanted values were found."""
        return self.equal == self.wanted


def likeness(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> Likeness:
    """Compare the wanted values with those of the same names."""
    same = [name for name, value in wanted.items() if found.get(name, _MISSING) == value]
    lines = [line for name, value in wanted.items() for line in _lines(name, value, found.get(name, _MISSING))]
    return Likeness(len(same), len(wanted), "\n".join(lines))


def difference(wanted: object, found: object) -> str:
    """Return a diff of two values, or an empty text for equal ones."""
    return "" if wanted == found else "\n".join(_diff(pformat(wanted), pformat(found)))


def _lines(name: str, wanted: Any, found: Any) -> Iterator[str]:
    was = pformat(wanted)
    if found is _MISSING:
        yield from (f"- {line}" for line in f"{name} = {was}".splitlines())
    elif wanted == found:
        yield from (f"  {line}" for line in f"{name} = {was}".splitlines())
    else:
        yield from _diff(f"{name} = {was}", f"{name} = {pformat(found)}")


def _diff(wanted: str, found: str) -> Iterator[str]:
    return (line for line in ndiff(wanted.splitlines(), found.splitlines()) if not line.startswith("?"))
