"""The sequence of trials, each in a process of its own, because Django's settings are per process."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.children import child
from benchmarks.faults.catalogue import catalogue
from benchmarks.faults.laboratory import Trial
from benchmarks.faults.verdict import Outcome, Verdict

#: The injection time of a short run, without the start of the workers and the drain.
QUICK_SECONDS = 4.0


def chosen(only: Iterable[str], database: str) -> Iterator[tuple[str, str]]:
    """Yield the requested pairs of fault and database."""
    for number in only or catalogue():
        for one in catalogue()[number].databases:
            if database in (one, "both"):
                yield number, one


def try_out(trial: Trial, evidence: Path | None = None) -> Verdict:
    """Try a fault. Return why not, if this machine can't."""
    fault = catalogue()[trial.fault]
    facts: dict[str, Any] = {"fault": fault.id, "title": fault.title, "database": trial.database, "seed": trial.seed}
    if why := fault.why_not(trial.database):
        return Verdict(**facts, outcome=Outcome.NOT_RUN, why=(why,))
    asked = {"trial": asdict(trial), "evidence": str(evidence) if evidence else None}
    with child("benchmarks.faults.run_process", asked=asked) as running:
        answers = [json.loads(line) for line in running.answers]
        status = running.status()
    if status or not answers:
        return Verdict(**facts, outcome=Outcome.BROKEN, why=(f"its process ended with {status}, and no verdict",))
    return Verdict.of(answers[-1]["verdict"])
