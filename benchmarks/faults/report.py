"""The report of a run: a row for each fault and database, the reasons below, and everything as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from benchmarks.faults.checker import Account
from benchmarks.faults.verdict import Outcome, Verdict
from benchmarks.report import table

HEADINGS = (
    "fault",
    "database",
    "outcome",
    "injected",
    "accepted",
    "lost",
    "stale writes",
    "overlap",
    "run again",
    "unknown",
    "run again after (p50 / p99)",
    "work after the fault (p50 / p99)",
)
LEGEND = (
    "Lost: accepted, and not at its end after the drain. Stale writes: of all runs, those whose result was stored "
    "though their claim was no longer held. Overlap: how long jobs ran twice at once in processes that never stood "
    "still; in brackets, in processes that did, which is what the fence is for. 0 of n means at most 3/n, with 95 % "
    "confidence. Run again: jobs whose effect happened more than once; at least once is the promise. Unknown: enqueues "
    "whose outcome the producer never learnt, and how many of them were there, and run. Run again after: from the "
    "death of a run to the next one of its job. Not run is not passed."
)


def zero_of(count: int, trials: int) -> str:
    """Return a count as text; for zero with the upper bound at 95 %."""
    if count or not trials:
        return f"{count} of {trials:,}"
    return f"0 of {trials:,} (≤ {3 / trials:.1g})"


def quantiles(values: Sequence[float]) -> str:
    """Return the median and the 99th percentile in seconds, as text."""
    if not values:
        return "-"
    in_order = sorted(values)
    p50, p99 = (in_order[min(len(in_order) - 1, int(share * len(in_order)))] for share in (0.5, 0.99))
    return f"{p50:.2f} / {p99:.2f} s of {len(values):,}"


def cells(verdict: Verdict) -> tuple[str, ...]:
    """Return a verdict's cells in the order of the headings."""
    account = verdict.account
    named = (f"{verdict.fault} {verdict.title}", verdict.database, verdict.outcome)
    if account is None:
        return (*named, *["-"] * (len(HEADINGS) - len(named)))
    stalled = sum(one.seconds for one in account.stalled)
    return (
        *named,
        f"{verdict.injections:,}",
        f"{account.accepted:,}",
        zero_of(len(account.lost), account.accepted),
        zero_of(len(account.stale), account.runs),
        f"{account.overlap_seconds:.3f} s" + (f" ({stalled:.1f} s)" if account.stalled else ""),
        f"{len(account.duplicated):,}",
        f"{account.unknown:,}, {account.recovered:,} there" if account.unknown else "0",
        quantiles(account.recoveries),
        quantiles(account.resumptions),
    )


@dataclass(frozen=True, slots=True)
class Report:
    """All verdicts of a run and its conditions."""

    verdicts: Sequence[Verdict]
    facts: dict[str, Any]

    def markdown(self) -> str:
        """Return the report for people."""
        return "\n\n".join([*self._parts()]) + "\n"

    def _parts(self) -> Iterator[str]:
        yield ", ".join(f"{name} {value}" for name, value in self.facts.items())
        run = [one for one in self.verdicts if one.outcome is not Outcome.NOT_RUN]
        if run:
            yield table(HEADINGS, map(cells, run))
            yield _together(total(one.account for one in run if one.account))
            yield LEGEND
        yield from self._listed("Broken", Outcome.BROKEN)
        yield from self._listed("Not run", Outcome.NOT_RUN)
        found = [one for one in run if one.findings]
        if found:
            yield "\n".join(["Findings:", "", *map(_finding, found)])

    def _listed(self, heading: str, outcome: Outcome) -> Iterator[str]:
        those = [one for one in self.verdicts if one.outcome is outcome]
        if those:
            yield "\n".join([f"{heading}:", "", *(f"- {_named(one)}: {'; '.join(one.why)}" for one in those)])

    def write_json(self, path: Path) -> None:
        """Write the report for programs."""
        found = {"facts": self.facts, "verdicts": [one.as_json() for one in self.verdicts]}
        path.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def total(accounts: Iterable[Account]) -> Account:
    """Return the sum of accounts."""
    summed: dict[str, Any] = {}
    for account in accounts:
        for one in fields(account):
            value = getattr(account, one.name)
            summed[one.name] = summed[one.name] + value if one.name in summed else value
    return Account(**summed)


def _together(account: Account) -> str:
    """Return the total of all trials as text."""
    lost, stale = zero_of(len(account.lost), account.accepted), zero_of(len(account.stale), account.runs)
    return (
        f"Together: lost {lost}, stale writes {stale}, claimed twice "
        f"{zero_of(len(account.claimed_twice), account.runs)}, overlap {account.overlap_seconds:.3f} s, "
        f"recovered {account.recovered:,} of {account.unknown:,} unknown, run again after "
        f"{quantiles(account.recoveries)}, work after a fault {quantiles(account.resumptions)}."
    )


def _named(verdict: Verdict) -> str:
    return f"{verdict.fault} on {verdict.database}"


def _finding(verdict: Verdict) -> str:
    said = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in verdict.findings.items())
    return f"- {_named(verdict)}: {said}"
