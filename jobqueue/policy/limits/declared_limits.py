"""Limits as code declares them, for a type in ``@job`` or for a queue in the settings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from typing import Any

from jobqueue.errors import InvalidOption
from jobqueue.records.job import Scope
from jobqueue.records.limit import Limit, LimitKind

#: A function of the producer that returns the value of a key for a payload.
KeyFunction = Callable[[Any], object]
MOST = 1_000_000_000
#: The shortest and longest window of a rate, in seconds. The longest is a month.
SHORTEST_WINDOW, LONGEST_WINDOW = 0.001, 31 * 86_400
_LONGEST_KEY = 100


class DeclaredLimit(ABC):
    """A limit without the type or queue that it belongs to."""

    number: int
    key: str | KeyFunction | None

    @abstractmethod
    def of(self, scope: Scope, name: str) -> Limit:
        """Return the limit of a type or queue."""

    @property
    def key_name(self) -> str:
        """Return the name of the key: that of the payload field or function, or an empty text."""
        return self.key if isinstance(self.key, str) else getattr(self.key, "__name__", "") if self.key else ""

    def _check(self, option: str) -> None:
        if type(self.number) is not int or not 1 <= self.number <= MOST:
            raise InvalidOption(option, f"must be a whole number from 1 to {MOST:,}, got {self.number!r}")
        if self.key is None:
            return
        if not isinstance(self.key, str) and not callable(self.key):
            raise InvalidOption("key", f"must be the name of a payload field, or a function, got {self.key!r}")
        if not self.key_name.isidentifier() or len(self.key_name) > _LONGEST_KEY:
            raise InvalidOption("key", f"must have a name that identifies it, such as 'account_id', got {self.key!r}")


@dataclass(frozen=True)
class Concurrency(DeclaredLimit):
    """At most ``number`` jobs run at once: in all, or for each value of a key."""

    number: int
    _: KW_ONLY
    key: str | KeyFunction | None = None

    def __post_init__(self) -> None:
        self._check("Concurrency")

    def of(self, scope: Scope, name: str) -> Limit:
        return Limit(scope, name, LimitKind.CONCURRENCY, self.number, key=self.key_name)


@dataclass(frozen=True)
class Rate(DeclaredLimit):
    """At most ``number`` attempts start in every window of ``per`` seconds: in all, or for each value of a key."""

    number: int
    _: KW_ONLY
    per: float | timedelta
    key: str | KeyFunction | None = None

    def __post_init__(self) -> None:
        self._check("Rate")
        if isinstance(self.per, bool) or not isinstance(self.per, (int, float, timedelta)):
            raise InvalidOption("per", f"must be seconds or a timedelta, got {self.per!r}")
        if not SHORTEST_WINDOW <= self._seconds <= LONGEST_WINDOW:
            raise InvalidOption("per", f"must be from 0.001 to {LONGEST_WINDOW:,} seconds, got {self.per!r}")

    @property
    def _seconds(self) -> float:
        return self.per.total_seconds() if isinstance(self.per, timedelta) else float(self.per)

    def of(self, scope: Scope, name: str) -> Limit:
        return Limit(scope, name, LimitKind.RATE, self.number, self._seconds, self.key_name)


def checked(option: str, given: object) -> tuple[DeclaredLimit, ...]:
    """Return declared limits. Raise InvalidOption for other values, and for two that differ only in the number."""
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes)):
        raise InvalidOption(option, f"must be a list of Concurrency and Rate, got {given!r}")
    limits = tuple(given)
    for one in limits:
        if not isinstance(one, DeclaredLimit):
            raise InvalidOption(option, f"must be a list of Concurrency and Rate, got {one!r} in it")
    places = [one.of(Scope.TYPE, "").place for one in limits]
    for one, place in zip(limits, places, strict=True):
        if places.count(place) > 1:
            raise InvalidOption(option, f"has {one!r} and another limit that differs only in the number")
    return limits
