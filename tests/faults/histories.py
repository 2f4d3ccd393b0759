"""Random histories for the checker, correct ones and spoilt ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from benchmarks.faults.checker import Row
from benchmarks.faults.ledger import Record, What


@dataclass
class History:
    """Records and rows of one run of the laboratory; each change spoils one job and returns its id."""

    rng: Random
    records: list[Record]
    rows: dict[str, Row]

    @classmethod
    def sound(cls, seed: int, jobs: int = 40) -> History:
        """Make a history in which processes die and stand still, and every promise is kept."""
        made = cls(Random(seed), [], {})
        for number in range(jobs):
            made._job(f"job-{number}", at=10.0 * number)
        made.rng.shuffle(made.records)  # the checker must not rely on it that jobs come one after another
        made.records.sort(key=lambda one: one.at)
        return made

    def _job(self, job: str, at: float) -> None:
        outcome = self.rng.choice([What.ACCEPTED] * 8 + [What.REFUSED, What.UNKNOWN, None])
        self.note(What.TRYING, at, job, expects="completed")
        if outcome is not None:
            self.note(outcome, at + 0.1, job)
        is_there = outcome is What.ACCEPTED or (outcome is not What.REFUSED and self.rng.random() < 0.5)
        if is_there:
            self._runs(job, at + 0.2)

    def _runs(self, job: str, at: float) -> None:
        last = self.rng.choice([1, 1, 1, 2, 3])
        for fence in range(1, last + 1):
            boot = f"{job} {fence}"
            self.note(What.START, at, job, fence, boot)
            self.note(What.SEEN, at + 0.5, job, fence, boot)
            if fence == last or self.rng.random() < 0.3:  # an effect that nobody heard of happens again
                self.note(What.END, at + 1.0, job, fence, boot)
            else:
                self.note(What.INJECTED, at + 0.6, boots=[boot])
            at += 2.0
        self.rows[job] = Row(job, "completed", last, told_by=last, failed=frozenset(range(1, last)))

    def note(self, what: What, at: float, job: str = "", fence: int = 0, boot: str = "", **facts: object) -> None:
        """Add a line."""
        self.records.append(Record(what, at, boot, job, fence, facts))

    def pick(self, runs: int = 1) -> str:
        """Choose a job that was accepted, and ran so many times at least."""
        said = {one.job for one in self.records if one.what is What.ACCEPTED}
        return self.rng.choice([job for job, row in self.rows.items() if job in said and row.fence >= runs])

    def without(self, job: str, *kinds: What) -> None:
        """Take lines of a job out."""
        self.records = [one for one in self.records if one.job != job or one.what not in kinds]

    def change(self, job: str, **values: object) -> None:
        """Change what the database says of a job."""
        self.rows[job] = replace(self.rows[job], **values)

    def runs(self, job: str) -> list[Record]:
        """Return the starts of a job."""
        return [one for one in self.records if one.job == job and one.what is What.START]
