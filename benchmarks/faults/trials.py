"""Faults are tried one after another, each in a process of its own: Django's settings are one per process."""

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

#: What a short run injects for; the start of the workers and the drain come on top.
QUICK_SECONDS = 4.0


def chosen(only: Iterable[str], database: str) -> Iterator[tuple[str, str]]:
    """Yield fault and database of what there is to try."""
    for number in only or catalogue():
        for one in catalogue()[number].databases:
            if database in (one, "both"):
                yield number, one


def try_out(trial: Trial, evidence: Path | None = None) -> Verdict:
    """Try a fault; say why not if this machine cannot."""
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
