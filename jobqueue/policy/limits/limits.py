"""Which of the waiting jobs may start under their limits: values in, a decision out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from jobqueue import foreign_json
from jobqueue.policy.queue_options import entry_of
from jobqueue.records.job import Scope
from jobqueue.records.limit import Limit, LimitKind
from jobqueue.records.queue_options import QueueOptions

#: Other programs may name any number of queues, so what is remembered of them is forgotten at times.
_REMEMBERED = 10_000
#: A limit's place, and the value of its key.
Account = tuple[str, str]


class Candidate(NamedTuple):
    """A due job under a limit. Candidates compare in the order of claims."""

    priority: int
    scheduled_at: Any
    id: str
    queue: str
    type: str
    keys: str | None


@lru_cache(maxsize=_REMEMBERED)
def keys_of(text: str | None) -> Mapping[str, str]:
    """Return the values of a job's keys by name. A text that another program wrote may have none."""
    if not text or not text.startswith("{"):
        return {}
    read = foreign_json.read(text)
    if not isinstance(read, dict):
        return {}
    return {name: value for name, value in read.items() if isinstance(value, str) and is_storable(value)}


def is_storable(text: str) -> bool:
    """Return whether each database takes a text: JSON can also spell NULs and halves of surrogate pairs."""
    return "\0" not in text and text == text.encode(errors="ignore").decode()


class LimitBook:
    """The limits in force: those in code, and the stored ones, which replace the former."""

    def __init__(
        self,
        declared: Iterable[Limit] = (),
        names: Mapping[str, str] | None = None,
        stored: Iterable[Limit] = (),
        entries: Collection[str] = (),
        queue_options: Mapping[str, QueueOptions] | None = None,
    ) -> None:
        """Take limits in code, the current names of types by their aliases, and stored limits.

        ``entries`` are the names and patterns of queues that have options, of which one applies to each queue.
        ``queue_options`` has the options of those whose jobs have an order of their own.
        """
        self.declared, self.names, self.stored = tuple(declared), dict(names or {}), tuple(stored)
        self.entries = tuple(entries or {one.name: None for one in self.declared if one.scope is Scope.QUEUE})
        self.queue_options = dict(queue_options or {})
        limits = [*self.declared, *self.stored]
        self._types = {one.name for one in limits if one.scope is Scope.TYPE}
        self.queue_patterns = sorted({*self.queue_options, *(one.name for one in limits if one.scope is Scope.QUEUE)})
        self._found: dict[tuple[str, str], tuple[Limit, ...]] = {}
        self._options: dict[str, QueueOptions | None] = {}

    def __bool__(self) -> bool:
        return bool(self._types or self.queue_patterns)

    def with_stored(self, stored: Iterable[Limit]) -> LimitBook:
        """Return the same limits in code with these stored ones."""
        return LimitBook(self.declared, self.names, stored, self.entries, self.queue_options)

    def limits_type(self, job_type: str) -> bool:
        """Return whether the jobs of a type have limits in every queue."""
        return self.names.get(job_type, job_type) in self._types

    def gates(self, queue: str, job_type: str) -> bool:
        """Return whether a claim chooses among a queue's jobs of a type: by limits, or by an order of their own."""
        return bool(self.of(queue, job_type)) or self.options_of(queue) is not None

    def options_of(self, queue: str) -> QueueOptions | None:
        """Return the options of a queue whose jobs have an order of their own."""
        if not self.queue_options:
            return None
        if queue not in self._options:
            if len(self._options) >= _REMEMBERED:
                self._options.clear()
            self._options[queue] = self.queue_options.get(entry_of(queue, self.entries) or "")
        return self._options[queue]

    def is_ordered(self, queue: str) -> bool:
        """Return whether the jobs of a queue have lanes."""
        options = self.options_of(queue)
        return options is not None and bool(options.ordered)

    @property
    def has_only_lanes(self) -> bool:
        """Return whether claims choose by the order of lanes alone."""
        has_limits = bool(self.declared or self.stored)
        return not has_limits and all(one.ordered for one in self.queue_options.values())

    def is_fair(self, queue: str) -> bool:
        """Return whether the jobs of a queue take turns."""
        options = self.options_of(queue)
        return options is not None and options.fair is not None

    def of_target(self, scope: Scope, name: str) -> list[Limit]:
        """Return the limits of a type or queue alone, without those of the other."""
        if scope is Scope.QUEUE:
            return [one for one in self._in_force(name, "") if one.scope is scope]
        current = self.names.get(name, name)
        return [one for one in (*self.declared, *self.stored) if (one.scope, one.name) == (scope, current)]

    def of(self, queue: str, job_type: str) -> tuple[Limit, ...]:
        """Return the limits of a queue's jobs of a type."""
        found = self._found.get((queue, job_type))
        if found is None:
            if len(self._found) >= _REMEMBERED:
                self._found.clear()
            found = self._found[queue, job_type] = tuple(self._in_force(queue, job_type))
        return found

    def _in_force(self, queue: str, job_type: str) -> Iterable[Limit]:
        name = self.names.get(job_type, job_type)
        entry = entry_of(queue, self.entries)
        places: dict[str, Limit] = {}
        for one in (*self.declared, *self.stored):
            if one.scope is Scope.TYPE and one.name == name:
                places[one.place] = one
            elif one.scope is Scope.QUEUE and one.name in (entry, queue):
                of_queue = replace(one, name=queue)
                places[of_queue.place] = of_queue
        return places.values()


class Allowances:
    """How many more jobs each limit admits now. Each job that is taken uses up one of each of its limits."""

    def __init__(self, book: LimitBook) -> None:
        self._book = book
        self._used: dict[Account, int] = {}
        self._frees_in: dict[Account, float] = {}
        self._accounts: dict[tuple[str, str, str | None], list[tuple[Limit, Account]]] = {}

    def copy(self) -> Allowances:
        """Return allowances of which more can be used up."""
        made = Allowances(self._book)
        made._used, made._frees_in, made._accounts = dict(self._used), self._frees_in, self._accounts
        return made

    def accounts(self, queue: str, job_type: str, keys: str | None) -> list[tuple[Limit, Account]]:
        """Return the limits that apply to a job, each with the value of its key. Without a value, none applies."""
        found = self._accounts.get((queue, job_type, keys))
        if found is None:
            values = keys_of(keys)
            found = self._accounts[queue, job_type, keys] = [
                (one, (one.place, values[one.key] if one.key else ""))
                for one in self._book.of(queue, job_type)
                if not one.key or one.key in values
            ]
        return found

    def windows(self, queue: str, job_type: str, keys: str | None) -> list[tuple[Account, float]]:
        """Return the rates that apply to a job, each with the length of its window in seconds."""
        found = self.accounts(queue, job_type, keys)
        return [(account, limit.per) for limit, account in found if limit.kind is LimitKind.RATE]

    def occupied(self, queue: str, job_type: str, keys: str | None, count: int) -> None:
        """Count running jobs."""
        for limit, account in self.accounts(queue, job_type, keys):
            if limit.kind is LimitKind.CONCURRENCY:
                self._used[account] = self._used.get(account, 0) + count

    def knows(self, account: Account) -> bool:
        """Return whether the starts of an account were counted."""
        return account in self._frees_in

    def started(self, place: str, value: str, count: int, frees_in: float) -> None:
        """Count the starts in a rate's window. The first of them leaves it in ``frees_in`` seconds."""
        self._used[place, value] = count
        self._frees_in[place, value] = frees_in

    def left(self, queue: str, job_type: str, keys: str | None, most: int) -> int:
        """Return how many more jobs with these keys may start, up to ``most``."""
        for limit, account in self.accounts(queue, job_type, keys):
            most = min(most, limit.number - self._used.get(account, 0))
        return max(0, most)

    def take(self, one: Candidate) -> None:
        """Use up one of each of a job's limits."""
        for _limit, account in self.accounts(one.queue, one.type, one.keys):
            self._used[account] = self._used.get(account, 0) + 1

    def wait(self, queue: str, job_type: str, keys: str | None) -> float | None:
        """Return in how many seconds a job may start, or ``None`` if it waits for a running job to end."""
        waits = []
        for limit, account in self.accounts(queue, job_type, keys):
            if self._used.get(account, 0) < limit.number:
                continue
            if limit.kind is LimitKind.CONCURRENCY:
                return None
            waits.append(self._frees_in.get(account, limit.per))
        return max(waits, default=0.0)


@dataclass
class Chosen:
    """The jobs under limits that a claim may take, in order, and why the others must wait.

    ``next_start`` is when the next of the others may start, unless it waits for a running job to end.
    ``is_contended`` means that another worker decides about some of them at this moment.
    """

    jobs: list[Candidate] = field(default_factory=list)
    withheld: int = 0
    next_start: timedelta | None = None
    is_contended: bool = False
    #: Whether lanes are left at which the claim didn't look.
    is_partial: bool = False
    #: The turns of jobs of fair queues, by id.
    turns: dict[str, str] = field(default_factory=dict)
    #: The jobs whose places in the order of claims some of the jobs take, by the ids of the latter.
    places: dict[str, Candidate] = field(default_factory=dict)

    def withhold(self, wait: float | None) -> None:
        """Count a job, or a group of jobs, that waits for one of its limits."""
        self.withheld += 1
        if wait is not None:
            moment = timedelta(seconds=max(wait, 0.001))
            self.next_start = moment if self.next_start is None else min(moment, self.next_start)


def choose(
    candidates: Sequence[Candidate],
    allowances: Allowances,
    most: int,
    chosen: Chosen | None = None,
    fair: Mapping[tuple[str, int], Iterator[tuple[str, Candidate]]] | None = None,
) -> Chosen:
    """Choose the first jobs, in the order of claims, whose limits admit them. Pass over the others.

    ``fair`` has the admitted jobs of fair queues by queue and priority. They take the places of their candidates.
    """
    chosen = chosen or Chosen()
    for one in candidates:
        if len(chosen.jobs) == most:
            break
        if fair and (one.queue, one.priority) in fair:
            key, job = next(fair[one.queue, one.priority], ("", None))
            if job is not None:
                allowances.take(job)
                chosen.jobs.append(job)
                chosen.turns[job.id], chosen.places[job.id] = key, one
        elif allowances.left(one.queue, one.type, one.keys, 1):
            allowances.take(one)
            chosen.jobs.append(one)
        else:
            chosen.withhold(allowances.wait(one.queue, one.type, one.keys))
    return chosen
