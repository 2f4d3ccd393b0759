"""What came of a fault that was tried, or why it was not."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from benchmarks.faults.checker import Account, Overlap


class Outcome(StrEnum):
    """How it went."""

    HELD = "held"
    BROKEN = "BROKEN"
    NOT_RUN = "not run"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One fault on one database: whether what is promised held, and the account that says so."""

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
        """Return plain values."""
        return asdict(self)

    @classmethod
    def of(cls, values: dict[str, Any]) -> Verdict:
        """Read a verdict that came as JSON."""
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
