"""The ratios of this queue's speed to its peers', turn by turn within the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.peers.catalogue import PGQUEUER, RAW, TASKS_DB, League
from benchmarks.peers.standings import Pick, Standing
from benchmarks.peers.turns import Findings


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times as fast as a rival, and how many it is to be."""

    measure: str
    ours: str
    rival: str
    value: float
    goal: float

    @property
    def reached(self) -> bool:
        """Say whether it is reached."""
        return self.value >= self.goal

    def cells(self) -> tuple[str, ...]:
        """Spell it out."""
        verdict = "reached" if self.reached else "MISSED"
        return self.measure, self.ours, self.rival, f"{self.value:.2f}", f"{self.goal:g}: {verdict}"


def _drain(findings: Findings) -> float | None:
    return findings.drain


def _enqueue(findings: Findings) -> float | None:
    return findings.enqueue


class Field:
    """All who ran, to be compared."""

    def __init__(self, standings: Sequence[Standing]) -> None:
        self._standings = [standing for standing in standings if standing.findings]

    def ratios(self) -> Iterator[Ratio]:
        """Compare what is to be compared."""
        for store, goal in (("sqlite-normal", 20), ("sqlite-full", 20), ("postgres", 15)):
            yield from self._against_django(League.SLOTS, League.BEST, store, goal)
        for store in ("sqlite", "postgres-new"):
            yield from self._against_django(League.INSTALLED, League.INSTALLED, store, 5)
        for ours in self._ours(League.BEST):
            yield from self._against_all(ours)
        for league in (League.SLOTS, League.INSTALLED):
            for ours in self._ours(league):
                yield from self._enqueueing(ours)
        for tasks in self._peers(League.TASKS):
            yield from self._as_tasks(tasks)

    def _against_django(self, league: League, theirs: League, store: str, goal: float) -> Iterator[Ratio]:
        """Compare with the fastest of the Django peers on the same kind of store."""
        for ours in self._ours(league, store):
            peers = [
                each
                for each in self._peers(theirs)
                if each.contestant.peer.in_django and each.contestant.store == store
            ]
            yield from _compared("drain, fastest Django peer", ours, _fastest(peers), _drain, goal)

    def _against_all(self, ours: Standing) -> Iterator[Ratio]:
        """Compare with PgQueuer on Postgres, with every peer on any store, and with the bare SQL of the same store."""
        everyone = self._peers(League.BEST)
        if ours.contestant.store == "postgres":
            pgqueuer = [each for each in everyone if each.contestant.peer is PGQUEUER]
            yield from _compared("drain, PgQueuer", ours, _fastest(pgqueuer), _drain, 1)
        yield from _compared("drain, fastest peer on any store", ours, _fastest(everyone), _drain, 1)
        raw = [
            each
            for each in self._standings
            if each.contestant.peer is RAW and each.contestant.store == ours.contestant.store
        ]
        yield from _compared("drain, bare SQL", ours, _fastest(raw), _drain, 0.5)

    def _enqueueing(self, ours: Standing) -> Iterator[Ratio]:
        theirs = League.INSTALLED if ours.contestant.league is League.INSTALLED else League.BEST
        for peer in self._peers(theirs):
            if peer.contestant.peer.in_django and peer.contestant.store == ours.contestant.store:
                yield from _compared("enqueue", ours, [peer], _enqueue, 1)

    def _as_tasks(self, ours: Standing) -> Iterator[Ratio]:
        """Compare with django-tasks-db, which runs the same tasks on the same store."""
        for peer in self._peers(League.BEST):
            if peer.contestant.peer is TASKS_DB and peer.contestant.store == ours.contestant.store:
                yield from _compared("drain, django.tasks", ours, [peer], _drain, 20)
                yield from _compared("enqueue, django.tasks", ours, [peer], _enqueue, 1.5)

    def _ours(self, league: League, store: str | None = None) -> list[Standing]:
        return [
            each
            for each in self._standings
            if each.contestant.is_ours and each.contestant.league is league and store in (None, each.contestant.store)
        ]

    def _peers(self, league: League) -> list[Standing]:
        return [each for each in self._standings if not each.contestant.is_ours and each.contestant.league is league]


def _fastest(standings: Sequence[Standing]) -> list[Standing]:
    return [max(standings, key=Standing.drain)] if standings else []


def _compared(measure: str, ours: Standing, others: Sequence[Standing], pick: Pick, goal: float) -> Iterator[Ratio]:
    for other in others:
        pairs = zip(ours.values(pick), other.values(pick), strict=False)
        yield Ratio(measure, ours.name, other.name, median(mine / its for mine, its in pairs), goal)
