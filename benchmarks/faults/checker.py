"""The accounting of every fault: the ledger is compared with the rows that are left. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any

from benchmarks.faults.ledger import Record, What

TERMINAL = frozenset({"completed", "failed", "dead_letter"})


@dataclass(frozen=True, slots=True)
class Row:
    """A job's row after the drain. ``told_by`` is the fence of the run whose result is stored."""

    id: str
    status: str
    fence: int
    attempts: int = 1
    owner: str | None = None
    told_by: int | None = None
    #: The fences of the attempts that, by the history, did not succeed.
    failed: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a handler, as recorded by itself. ``seen`` is its last sign of life."""

    job: str
    fence: int
    boot: str
    started: float
    seen: float
    ended: bool = False
    broken: str = ""

    def cut_short(self) -> bool:
        """Return whether it was ended from outside, even after its effect, so that another run had to follow."""
        return self.broken in ("", "Interrupted", "CancelledError")


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two simultaneous runs of one job. ``stalled`` if one of them was frozen meanwhile."""

    job: str
    fences: tuple[int, int]
    seconds: float
    stalled: bool


@dataclass(frozen=True, kw_only=True)
class Account:
    """The result of a run. The tuples name jobs, and all but ``stalled`` and ``duplicated`` must be empty."""

    accepted: int = 0
    refused: int = 0
    unknown: int = 0
    #: Of the enqueues whose outcome the producer never learnt: how many are there, and were run.
    recovered: int = 0
    runs: int = 0
    #: Jobs whose effect happened more than once: at least once is the promise.
    duplicated: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    given_up: tuple[str, ...] = ()
    ghosts: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    claimed_twice: tuple[str, ...] = ()
    illegal: tuple[str, ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    stalled: tuple[Overlap, ...] = ()
    #: Seconds from the injury of a run to the next run of its job.
    recoveries: tuple[float, ...] = ()
    #: Seconds from the end of a fault to the next sign of work.
    resumptions: tuple[float, ...] = ()

    @property
    def overlap_seconds(self) -> float:
        """Return how long jobs ran twice at once in processes that were never frozen."""
        return sum(one.seconds for one in self.overlaps)

    def violations(self) -> Iterator[str]:
        """Return the broken promises, with their jobs."""
        broken: dict[str, Sequence[object]] = {
            "lost: accepted, and not at their end after the drain": self.lost,
            "given up, though nothing was wrong with them": self.given_up,
            "there, though refused or never enqueued": self.ghosts,
            "changed by a run that no longer held them": self.stale,
            "started twice by one claim": self.claimed_twice,
            "left in a state that no job may be in": self.illegal,
            f"run twice at once, for {self.overlap_seconds:.3f} s": self.overlaps,
        }
        for words, jobs in broken.items():
            if jobs:
                shown = ", ".join(map(str, jobs[:3]))
                yield f"{len(jobs)} jobs {words}: {shown}{' …' if len(jobs) > 3 else ''}"


def check(records: Iterable[Record], rows: Iterable[Row]) -> Account:
    """Account for every job that was tried to enqueue, was run, or is in the database."""
    told = list(records)
    kept = {row.id: row for row in rows}
    runs = _runs(told)
    said = _said(told)
    account = _enqueued(said, kept)
    overlaps = list(_overlaps(runs, _standstills(told)))
    effects = Counter({job: sum(run.ended for run in several) for job, several in runs.items()})
    return replace(
        account,
        runs=sum(map(len, runs.values())),
        duplicated=tuple(job for job, times in effects.items() if times > 1),
        **_fates(said, kept, runs),
        ghosts=tuple(_ghosts(said, kept, runs)),
        claimed_twice=tuple(job for job, several in runs.items() if len({run.fence for run in several}) < len(several)),
        overlaps=tuple(one for one in overlaps if not one.stalled),
        stalled=tuple(one for one in overlaps if one.stalled),
        recoveries=tuple(_recoveries(runs, _injuries(told))),
        resumptions=tuple(_resumptions(told)),
    )


@dataclass(slots=True)
class _Said:
    """A producer's records of one job."""

    expects: str = "completed"
    outcome: What = What.UNKNOWN


def _said(told: Iterable[Record]) -> dict[str, _Said]:
    """Collect the producers' records. A producer that died too early leaves an unknown result."""
    said: dict[str, _Said] = {}
    for one in told:
        if one.what is What.TRYING:
            said[one.job] = _Said(one.facts.get("expects", "completed"))
        elif one.what in (What.ACCEPTED, What.REFUSED, What.UNKNOWN):
            said[one.job].outcome = one.what
    return said


def _enqueued(said: Mapping[str, _Said], kept: Mapping[str, Row]) -> Account:
    outcomes = Counter(one.outcome for one in said.values())
    unknown = [job for job, one in said.items() if one.outcome is What.UNKNOWN]
    return Account(
        accepted=outcomes[What.ACCEPTED],
        refused=outcomes[What.REFUSED],
        unknown=len(unknown),
        recovered=sum(job in kept for job in unknown),
    )


def _runs(told: Iterable[Record]) -> dict[str, list[Run]]:
    """Assemble the handlers' records into runs, by job and in order of start."""
    runs: dict[tuple[str, int, str], Run] = {}
    for one in told:
        key = (one.job, one.fence, one.boot)
        if one.what is What.START:
            # Two starts by one claim in one process are two runs: the first is kept under a key of its own.
            if key in runs:
                runs[one.job, one.fence, f"{one.boot} before {one.at}"] = runs[key]
            runs[key] = Run(*key, started=one.at, seen=one.at)
        elif one.what in (What.SEEN, What.END, What.BROKEN):
            runs[key] = replace(
                runs[key],
                seen=one.at,
                ended=one.what is What.END or runs[key].ended,
                broken=one.facts.get("error", "") if one.what is What.BROKEN else "",
            )
    by_job: dict[str, list[Run]] = defaultdict(list)
    for run in sorted(runs.values(), key=lambda run: run.started):
        by_job[run.job].append(run)
    return by_job


def _fates(said: Mapping[str, _Said], kept: Mapping[str, Row], runs: Mapping[str, list[Run]]) -> dict[str, Any]:
    """Sort the accepted jobs and the existing ones by what became of them."""
    fates: dict[str, list[str]] = {"lost": [], "given_up": [], "stale": [], "illegal": []}
    for job, one in said.items():
        row, of_job = kept.get(job), runs.get(job, [])
        if row is None:
            if one.outcome is What.ACCEPTED:
                fates["lost"].append(job)
        elif row.status not in TERMINAL or (row.status == "completed" and not any(run.ended for run in of_job)):
            fates["lost"].append(job)
        elif one.expects not in (row.status, "any"):
            fates["given_up"].append(job)
    for job, row in kept.items():
        of_job = runs.get(job, [])
        if row.status == "completed" and _is_stale(row, of_job):
            fates["stale"].append(job)
        if (row.status in TERMINAL and row.owner) or any(run.fence > row.fence for run in of_job):
            fates["illegal"].append(job)
    return {fate: tuple(jobs) for fate, jobs in fates.items()}


def _is_stale(row: Row, runs: Iterable[Run]) -> bool:
    """Return whether the stored completion isn't that of the last claim, or is that of a failed one or of none."""
    mine = any(run.ended and run.fence == row.told_by for run in runs)
    return row.told_by != row.fence or row.told_by in row.failed or not mine


def _ghosts(said: Mapping[str, _Said], kept: Mapping[str, Row], runs: Mapping[str, list[Run]]) -> Iterator[str]:
    """Return the jobs that exist or ran but should not."""
    for job in kept.keys() | runs.keys():
        if job not in said or said[job].outcome is What.REFUSED:
            yield job


def _standstills(told: Iterable[Record]) -> dict[str, list[tuple[float, float]]]:
    """Return when each process was frozen."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    since: dict[str, float] = {}
    for one in told:
        for boot in one.facts.get("boots", ()):
            if one.what is What.FROZEN:
                since[boot] = one.at
            elif one.what is What.THAWED and boot in since:
                found[boot].append((since.pop(boot), one.at))
    for boot, begin in since.items():
        found[boot].append((begin, float("inf")))
    return found


def _overlaps(runs: Mapping[str, list[Run]], standstills: Mapping[str, list[tuple[float, float]]]) -> Iterator[Overlap]:
    """Compare all pairs of runs of a job. A dead process is known to have lived until its last sign."""

    def stalled(run: Run) -> bool:
        return any(begin < run.seen and end > run.started for begin, end in standstills.get(run.boot, ()))

    for job, several in runs.items():
        for one, other in combinations(several, 2):
            seconds = min(one.seen, other.seen) - other.started
            if one.seen > other.started:
                yield Overlap(job, (one.fence, other.fence), max(0.0, seconds), stalled(one) or stalled(other))


def _injuries(told: Iterable[Record]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for one in told:
        if one.what is What.INJECTED:
            for boot in one.facts.get("boots", ()):
                found[boot].append(one.at)
    return found


def _recoveries(runs: Mapping[str, list[Run]], injuries: Mapping[str, list[float]]) -> Iterator[float]:
    """Return how long interrupted jobs waited, from the injury or otherwise from the last sign of life."""
    for several in runs.values():
        for run, following in pairwise(several):
            if run.cut_short():
                during = [at for at in injuries.get(run.boot, ()) if run.started <= at <= following.started]
                yield max(0.0, following.started - max([run.seen, *during]))


def _resumptions(told: Sequence[Record]) -> Iterator[float]:
    """Return how long after the end of a fault work resumed."""
    healed: list[float] = []
    for one in sorted(told, key=lambda one: one.at):
        if one.what is What.HEALED:
            healed.append(one.at)
        elif one.what in (What.START, What.END) and healed:
            yield from (one.at - at for at in healed)
            healed.clear()
