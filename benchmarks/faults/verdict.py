"""The result of a trial, or the reason why there was none."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from benchmarks.faults.checker import Account, Overlap


class Outcome(StrEnum):
    """The possible results of a trial."""

    HELD = "held"
    BROKEN = "BROKEN"
    NOT_RUN = "not run"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The result of one fault on one database, with its account."""

    fault: str
    title: str
    database: str
    outcome: Outcome
    why: tuple[str, ...] = ()
    seed: str = ""
    seconds: float = 0.0
    injections: int = 0
    account: Account | None = None
    findings: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the verdict as JSON data."""
        return asdict(self)

    @classmethod
    def of(cls, values: dict[str, Any]) -> Verdict:
        """Return a verdict from JSON data."""
        account = values["account"] and _account(values["account"])
        return cls(
            **values | {"outcome": Outcome(values["outcome"]), "why": tuple(values["why"]), "account": account},
        )


def _account(values: dict[str, Any]) -> Account:
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    overlaps = {
        name: tuple(Overlap(**one | {"fences": tuple(one["fences"])}) for one in values[name])
        for name in ("overlaps", "stalled")
    }
    return Account(**values | lists | overlaps)
