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
from typing import NamedTuple

from jobqueue.backends.ports.limits import MAX_AGE, Limits
from jobqueue.backends.sql.claims.crowd import Group
from jobqueue.backends.sql.session import Session
from jobqueue.clock import SYSTEM
from jobqueue.policy.limits.limits import Account, Allowances, Candidate, Chosen, LimitBook, choose
from jobqueue.records import Claim, ClaimRequest, Cycle

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
        if request.limits != self._book.declared or request.names != self._book.names:
            self._book = LimitBook(request.limits, request.names, self._book.stored, request.entries)
        return self._book

    @property
    def last_book(self) -> LimitBook:
        """The limits that were in force at the last claim."""
        return self._book

    # The choice

    def choose(
        self, groups: Sequence[Group], request: ClaimRequest, book: LimitBook, left_out: Collection[str]
    ) -> Chosen:
        """Choose jobs of groups under limits, which are in the order of their first jobs.

        Call it in the claim's transaction, after its settlements were stored.
        """
        if not groups:
            return Chosen()
        if len(groups) > MOST_GROUPS:  # the first ones, and others by turns
            half = MOST_GROUPS // 2
            groups = [*groups[:half], *random.sample(groups[half:], half)]
        places = {limit.place for group in groups for limit in book.of(group.queue, group.type)}
        locked = self.lock(sorted(places))
        ours = [one for one in groups if all(limit.place in locked for limit in book.of(one.queue, one.type))]
        chosen = self._choose_from(ours, request, book, left_out) if ours else Chosen()
        return replace(chosen, is_contended=len(ours) < len(groups))

    def _choose_from(
        self, groups: Sequence[Group], request: ClaimRequest, book: LimitBook, left_out: Collection[str]
    ) -> Chosen:
        allowances = Allowances(book)
        for occupied in self.running():
            allowances.occupied(*occupied)
        self._count_starts(allowances, [(one.queue, one.type, None) for one in groups])
        asked = {group: self._most(group, allowances, request, book) for group in groups}
        candidates = self.first({group: most + len(left_out) for group, most in asked.items() if most})
        self._count_starts(allowances, [(one.queue, one.type, one.keys) for one in candidates])
        for group, most in asked.items():
            found = [one for one in candidates if (one.queue, one.type, one.priority) == group]
            if most and len(found) >= most and self._is_stuck(found, allowances, request.limit, book):
                candidates += self._behind_full_keys(group, allowances, request.limit)
        unique = sorted({one.id: one for one in candidates if one.id not in left_out}.values())
        chosen = choose(unique, allowances, request.limit)
        for group, most in asked.items():
            if not most:
                chosen.withhold(allowances.wait(group.queue, group.type, None))
        return chosen

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
