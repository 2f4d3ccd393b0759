"""The choice of jobs under limits, within the transaction of a claim.

What a limit has left is derived from the running rows, in the same transaction that claims. Nothing counts beside the
rows, so nothing can leak. No two workers decide about one limit at once: SQLite has one writer, and on Postgres a
worker that doesn't get the limit's lock leaves its jobs alone for a moment.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import NamedTuple

from jobqueue.backends.ports.limits import MAX_AGE, Limits
from jobqueue.backends.sql.claims.crowd import Group
from jobqueue.backends.sql.claims.lanes import LaneChoice, LaneClaims
from jobqueue.backends.sql.claims.turns import FairClaims, FairLevel
from jobqueue.backends.sql.session import Session
from jobqueue.clock import SYSTEM
from jobqueue.policy.limits.limits import Account, Allowances, Candidate, Chosen, LimitBook, choose
from jobqueue.records import Claim, ClaimRequest, Cycle, Settlement

#: The most groups, and the most keys of a group, in which one claim looks for jobs.
MOST_GROUPS, MOST_KEYS = 64, 200
#: How many jobs of a group with keys a claim reads before it goes from key to key.
_LEAST_READ = 64
#: Seconds until the next look at a limit that another worker had locked.
_MOMENT = 0.004
#: Seconds between two deletions of starts that have left their windows.
_PRUNED_EVERY = 1.0


class Start(NamedTuple):
    """Starts that a claim made under a rate."""

    place: str
    key: str
    number: int
    per: float


class LimitedClaims(ABC):
    """Chooses the jobs under limits that a claim takes, and records their starts."""

    #: The part for ordered queues.
    lanes: LaneClaims
    #: The part for fair queues.
    turns: FairClaims

    def __init__(self, limits: Limits, session: Session) -> None:
        self._limits = limits
        self._session = session
        self._book = LimitBook()
        self._read_at = float("-inf")
        self._pruned_at = 0.0
        #: Where the next scan through the keys of a group begins, if the last one didn't reach the end.
        self._after: dict[Group, str] = {}

    def book(self, request: ClaimRequest) -> LimitBook:
        """Return the limits in force. It is empty if there are none."""
        now = (self._session.clock or SYSTEM).monotonic()
        if now - self._read_at >= MAX_AGE:
            stored = [one.limit for one in self._limits.stored()]
            self._read_at = now
            if tuple(stored) != self._book.stored:
                self._book = self._book.with_stored(stored)
        asked = (request.limits, request.names, request.queue_options)
        if asked != (self._book.declared, self._book.names, self._book.queue_options):
            self._book = LimitBook(
                request.limits, request.names, self._book.stored, request.entries, request.queue_options
            )
        return self._book

    @property
    def last_book(self) -> LimitBook:
        """The limits that were in force at the last claim."""
        return self._book

    # The choice

    def choose(
        self,
        groups: Sequence[Group],
        request: ClaimRequest,
        book: LimitBook,
        left_out: Collection[str],
        completions: Sequence[Settlement] = (),
    ) -> Chosen:
        """Choose jobs of groups under limits, which are in the order of their first jobs.

        Call it in the claim's transaction, after its settlements were stored, or before its ``completions`` will be.
        """
        self.lanes.completions = completions
        if not groups:
            return Chosen()
        if len(groups) > MOST_GROUPS:  # the first ones, and others by turns
            half = MOST_GROUPS // 2
            groups = [*groups[:half], *random.sample(groups[half:], half)]
        places = {group: self._places(group, book) for group in groups}
        wanted = sorted({place for several in places.values() for place in several})
        locked = self.lock(wanted) if wanted else set[str]()
        ours = [group for group, several in places.items() if locked.issuperset(several)]
        chosen = self._choose_from(ours, request, book, left_out) if ours else Chosen()
        return replace(chosen, is_contended=chosen.is_contended or len(ours) < len(groups))

    @staticmethod
    def _places(group: Group, book: LimitBook) -> set[str]:
        """Return what a worker has to lock before it decides about a group."""
        turns = {f"turns:{group.queue}"} if book.is_fair(group.queue) else set()
        return {limit.place for limit in book.of(group.queue, group.type)} | turns

    def _choose_from(
        self, groups: Sequence[Group], request: ClaimRequest, book: LimitBook, left_out: Collection[str]
    ) -> Chosen:
        allowances, result = Allowances(book), Chosen()
        for occupied in self.running() if any(book.of(*group[:2]) for group in groups) else ():
            allowances.occupied(*occupied)
        self._count_starts(allowances, [(one.queue, one.type, None) for one in groups])
        in_lanes = [group for group in groups if book.is_ordered(group.queue)]
        lanes = LaneChoice()
        if in_lanes:
            short_queues = partial(self._short_queues, in_lanes, allowances, request.limit)
            lanes = self.lanes.choose(in_lanes, book, request.limit, left_out, short_queues)
        fair_groups = [group for group in groups if book.is_fair(group.queue)]
        fair = self._in_turns(fair_groups, allowances, request, book, left_out, result) if fair_groups else {}
        others = [group for group in groups if not (book.is_ordered(group.queue) or book.is_fair(group.queue))]
        asked = {group: self._most(group, allowances, request, book) for group in others}
        candidates = self.first({group: most + len(left_out) for group, most in asked.items() if most})
        candidates += [job for job, _place in lanes.jobs.values()]
        self._count_starts(allowances, [(one.queue, one.type, one.keys) for one in candidates])
        for group, most in asked.items():
            found = [one for one in candidates if (one.queue, one.type, one.priority) == group]
            if most and len(found) >= most and self._is_stuck(found, allowances, request.limit, book):
                candidates += self._behind_full_keys(group, allowances, request.limit)
        candidates += [place for level in fair.values() for place in level.places]
        unique = {one.id: one for one in candidates if one.id not in left_out}
        in_order = sorted(unique.values(), key=lambda one: lanes.jobs[one.id][1] if one.id in lanes.jobs else one)
        orders = {place: level.in_order(allowances, result) for place, level in fair.items()}
        chosen = choose(in_order, allowances, request.limit, result, orders)
        chosen.places |= {one.id: lanes.jobs[one.id][1] for one in chosen.jobs if one.id in lanes.jobs}
        chosen.withheld += lanes.withheld
        chosen.is_contended, chosen.is_partial = lanes.is_contended, lanes.is_partial
        for group, most in asked.items():
            if not most:
                chosen.withhold(allowances.wait(group.queue, group.type, None))
        return chosen

    def _short_queues(
        self, groups: Sequence[Group], allowances: Allowances, most: int, jobs: Sequence[Candidate]
    ) -> set[str]:
        """Return the queues of lanes whose limits admit too few of these jobs, and may admit others."""
        kinds = {(one.queue, one.type, one.keys) for one in jobs}
        if not any(allowances.accounts(*kind) for kind in kinds):
            return set()
        self._count_starts(allowances, kinds)
        left = allowances.copy()
        admitted = choose(sorted(jobs), left, most).jobs
        if len(admitted) >= most or len(admitted) == len(jobs):
            return set()
        return {one.queue for one in groups if left.left(one.queue, one.type, None, 1)}

    def _in_turns(
        self,
        groups: Sequence[Group],
        allowances: Allowances,
        request: ClaimRequest,
        book: LimitBook,
        left_out: Collection[str],
        chosen: Chosen,
    ) -> dict[tuple[str, int], FairLevel]:
        """Read the jobs of fair queues."""
        open_groups = []
        for group in groups:
            if allowances.left(group.queue, group.type, None, 1):
                open_groups.append(group)
            else:
                chosen.withhold(allowances.wait(group.queue, group.type, None))

        def counted(jobs: Sequence[Candidate]) -> None:
            self._count_starts(allowances, [(one.queue, one.type, one.keys) for one in jobs])

        found = self.turns.read(open_groups, book, allowances, request.limit, left_out, counted, chosen)
        for group in open_groups:
            level = found.get((group.queue, group.priority))
            has_keys = any(limit.key for limit in book.of(group.queue, group.type))
            if level and has_keys and level.admitted(allowances, request.limit) < request.limit:
                behind = self._behind_full_keys(group, allowances, request.limit)
                keys = self.turns.keys_of([one.id for one in behind])
                level.add([(keys.get(one.id), one) for one in behind if one.id not in left_out])
        return found

    def _most(self, group: Group, allowances: Allowances, request: ClaimRequest, book: LimitBook) -> int:
        """Return how many jobs of a group to read: none if its limits without keys are used up."""
        left = allowances.left(group.queue, group.type, None, request.limit)
        has_keys = any(limit.key for limit in book.of(group.queue, group.type))
        return max(2 * request.limit, _LEAST_READ) if left and has_keys else left

    @staticmethod
    def _is_stuck(found: Sequence[Candidate], allowances: Allowances, most: int, book: LimitBook) -> bool:
        """Return whether jobs that may start can be behind many whose keys are used up."""
        first = found[0]
        left = allowances.left(first.queue, first.type, None, most)
        has_keys = any(limit.key for limit in book.of(first.queue, first.type))
        return has_keys and len(choose(sorted(found), allowances.copy(), left).jobs) < left

    def _behind_full_keys(self, group: Group, allowances: Allowances, most: int) -> list[Candidate]:
        """Return the first jobs of the keys that may start, from a bounded scan through the keys of a group."""
        heads = self.heads(group, self._after.get(group, ""), MOST_KEYS)
        if len(heads) == MOST_KEYS:
            self._after[group] = heads[-1].keys or ""
        elif self._after.pop(group, ""):
            heads += self.heads(group, "", MOST_KEYS - len(heads))
        due = [one for one in heads if one.id]
        self._count_starts(allowances, [(one.queue, one.type, one.keys) for one in due])
        left = {one.keys: allowances.left(one.queue, one.type, one.keys, most) for one in sorted(due)}
        several = [(keys, count) for keys, count in left.items() if count > 1][:most]
        return due + (self.first_of_keys(group, several) if several else [])

    def _count_starts(self, allowances: Allowances, kinds: Iterable[tuple[str, str, str | None]]) -> None:
        """Read what the windows of rates contain, for jobs of these queues, types and keys."""
        windows: dict[Account, float] = {}
        for kind in set(kinds):
            windows |= dict(allowances.windows(*kind))
        unknown = {account: per for account, per in windows.items() if not allowances.knows(account)}
        if unknown:
            found_starts = {(place, key): (count, frees) for place, key, count, frees in self.starts(unknown)}
            for account in unknown:
                allowances.started(*account, *found_starts.get(account, (0, 0.0)))

    # After the claim

    def record(self, chosen: Chosen, claims: Sequence[Claim], book: LimitBook) -> None:
        """Record the starts of claimed jobs under rates."""
        if not chosen.jobs:
            return
        self.lanes.took(claim.queue for claim in claims)
        if chosen.turns:
            self.turns.record(chosen, claims)
        keys, allowances = {one.id: one.keys for one in chosen.jobs}, Allowances(book)
        starts = Counter(
            window
            for claim in claims
            if claim.id in keys
            for window in allowances.windows(claim.queue, claim.type, keys[claim.id])
        )
        if starts:
            self.add_starts([Start(*account, number, per) for (account, per), number in starts.items()])
            if SYSTEM.monotonic() - self._pruned_at >= _PRUNED_EVERY:
                self._pruned_at = SYSTEM.monotonic()
                self.prune_starts()

    @staticmethod
    def told(cycle: Cycle, chosen: Chosen, request: ClaimRequest) -> Cycle:
        """Return a cycle whose ``next_due`` is not after the next start under a rate."""
        if chosen.is_partial and len(cycle.claims) < request.limit:
            return replace(cycle, next_due=timedelta(0), is_partial=True)
        if len(cycle.claims) == request.limit or not (chosen.withheld or chosen.is_contended):
            return cycle
        waits = [one for one in (cycle.next_due, chosen.next_start) if one is not None]
        if chosen.is_contended:
            waits.append(timedelta(seconds=_MOMENT * (0.5 + random.random())))  # noqa: S311 - not a secret
        return replace(cycle, next_due=min(waits, default=None), is_partial=True)

    # What the databases do in their own ways

    @abstractmethod
    def lock(self, places: Sequence[str]) -> set[str]:
        """Try to be the only worker that decides about limits, until the transaction ends. Return the locked ones."""

    @abstractmethod
    def running(self) -> Iterable[tuple[str, str, str | None, int]]:
        """Count the jobs that have a lease by queue, type and keys."""

    @abstractmethod
    def first(self, most: dict[Group, int]) -> list[Candidate]:
        """Read the first due jobs of groups, of each at most its number."""

    @abstractmethod
    def heads(self, group: Group, after: str, most: int) -> list[Candidate]:
        """Read the first due job of each of the next keys of a group. If none of a key is due, its id is empty."""

    @abstractmethod
    def first_of_keys(self, group: Group, most: Sequence[tuple[str | None, int]]) -> list[Candidate]:
        """Read the first due jobs of keys of a group, of each at most its number."""

    @abstractmethod
    def starts(self, windows: Mapping[Account, float]) -> list[tuple[str, str, int, float]]:
        """Count the starts in the windows of rates: place, key, count, and the seconds until the first leaves.

        A start that leaves later than a window after now is none: it was stored while the clock was wrong.
        """

    @abstractmethod
    def add_starts(self, starts: Sequence[Start]) -> None:
        """Store starts."""

    @abstractmethod
    def prune_starts(self) -> None:
        """Delete some of the starts that have left their windows."""


def limited_types(request: ClaimRequest, book: LimitBook) -> frozenset[str]:
    """Return the requested types that have limits in every queue."""
    return frozenset(one for one in request.types if book.limits_type(one))


def without_limited(request: ClaimRequest, book: LimitBook) -> ClaimRequest:
    """Return a request for the types without limits."""
    return replace(request, types=request.types - limited_types(request, book))
