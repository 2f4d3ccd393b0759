"""What ``@job(...)`` was given, read at once, so that a mistake shows when the module is imported."""

from __future__ import annotations

from collections.abc import Mapping, Set
from datetime import timedelta
from typing import Any, cast

from jobqueue.errors import InvalidHandler, InvalidOption, duration
from jobqueue.handlers.options import OPTION_NAMES, Options
from jobqueue.policy.leases import LONGEST_LEASE, SHORTEST_LEASE
from jobqueue.policy.nearest import did_you_mean
from jobqueue.policy.retry import Delay, RetryPolicy, Seconds

Exceptions = tuple[type[BaseException], ...]

#: Options that name one job and cannot be a type's default.
_OF_ONE_JOB = frozenset({"scheduled_at", "expires_at", "idempotency_key", "unique_key", "tenant", "workspace"})
#: Options of ``@job`` that are no defaults of its jobs.
OF_A_TYPE = frozenset(
    {"retry", "retry_on", "discard_on", "version", "upgraders", "aliases", "lease", "atomic", "editable"}
)


def options_of(defaults: Mapping[str, Any]) -> Options:
    """Read the defaults of a type's jobs."""
    allowed = OPTION_NAMES - _OF_ONE_JOB
    for name in sorted(set(defaults) - allowed):
        if name in _OF_ONE_JOB:
            raise InvalidHandler(f"@job has no option {name!r}, which is for one job: give it to using().")
        known = allowed | OF_A_TYPE
        raise InvalidHandler(f"@job has no option {name!r}. {_advice(name, known)}.")
    return Options(**defaults)


def no_option_of_a_job(name: str) -> InvalidOption:
    """Say that what ``using`` was given is no option of a job, and what is."""
    if name in OF_A_TYPE:
        return InvalidOption(name, "is no option of one job: give it to @job, for all jobs of the type")
    return InvalidOption(name, f"is no option of a job. {_advice(name, OPTION_NAMES)}")


def _advice(name: str, known: Set[str]) -> str:
    return f"{did_you_mean(name, known, '')} There are {', '.join(sorted(known))}".lstrip()


def policy_of(retry: Delay, retry_on: object, discard_on: object) -> RetryPolicy:
    """Read how failures are treated."""
    given: object = retry
    if not callable(given) or isinstance(given, type):
        raise InvalidHandler(f"@job(retry=...) takes Exponential, Fixed or a function of your own, not {retry!r}.")
    return RetryPolicy(retry, _exceptions("retry_on", retry_on), _exceptions("discard_on", discard_on))


def aliases_of(given: object) -> tuple[str, ...]:
    """Read former names."""
    if isinstance(given, str):
        raise InvalidHandler(f"@job(aliases=...) takes a list of names, not the one name {given!r}.")
    return tuple(cast("list[str]", given))


def lease_of(given: Seconds | None) -> timedelta | None:
    """Read a lease; one that ends before it can be renewed would be lost by every job."""
    length = None if given is None else duration(given, "lease")
    if length is not None and not SHORTEST_LEASE <= length <= LONGEST_LEASE:
        raise InvalidOption("lease", f"must be from {SHORTEST_LEASE} to {LONGEST_LEASE}, got {given!r}")
    return length


def _exceptions(option: str, given: object) -> Exceptions:
    """Read one exception or several; whatever is none would fail only when a job has failed."""
    several: tuple[object, ...] = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    for one in several:
        if not (isinstance(one, type) and issubclass(one, BaseException)):
            raise InvalidHandler(f"@job({option}=...) takes exception classes, not {one!r}.")
    return cast(Exceptions, several)
