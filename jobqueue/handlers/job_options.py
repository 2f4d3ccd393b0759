"""Validation of the options of ``@job(...)``, at import, where mistakes are seen."""

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
_OF_ONE_JOB = frozenset(
    {"scheduled_at", "expires_at", "idempotency_key", "unique_key", "tenant", "workspace"}
    | {"debounce", "max_wait", "replace_payload", "throttle"}
)
#: Options of ``@job`` that aren't defaults of its jobs.
OF_A_TYPE = frozenset(
    {"retry", "retry_on", "discard_on", "version", "upgraders", "aliases", "lease", "atomic", "editable"}
    | {"limits", "schedule", "critical"}
)


def options_of(defaults: Mapping[str, Any]) -> Options:
    """Return the defaults of a type's jobs."""
    allowed = OPTION_NAMES - _OF_ONE_JOB
    for name in sorted(set(defaults) - allowed):
        if name in _OF_ONE_JOB:
            raise InvalidHandler(f"@job has no option {name!r}: it is an option of single jobs. Pass it to using().")
        known = allowed | OF_A_TYPE
        raise InvalidHandler(f"@job has no option {name!r}. {_advice(name, known)}.")
    return Options(**defaults)


def no_option_of_a_job(name: str) -> InvalidOption:
    """Return the error for an option that ``using`` doesn't accept. The error lists the accepted ones."""
    if name in OF_A_TYPE:
        return InvalidOption(name, "is not an option of single jobs: pass it to @job, for all jobs of the type")
    return InvalidOption(name, f"is not an option of a job. {_advice(name, OPTION_NAMES)}")


def _advice(name: str, known: Set[str]) -> str:
    return f"{did_you_mean(name, known, '')} The options are {', '.join(sorted(known))}".lstrip()


def policy_of(retry: Delay, retry_on: object, discard_on: object) -> RetryPolicy:
    """Return the retry policy."""
    given: object = retry
    if not callable(given) or isinstance(given, type):
        raise InvalidHandler(f"@job(retry=...) takes Exponential, Fixed or a function of your own, not {retry!r}.")
    return RetryPolicy(retry, _exceptions("retry_on", retry_on), _exceptions("discard_on", discard_on))


def aliases_of(given: object) -> tuple[str, ...]:
    """Return the former names."""
    if isinstance(given, str):
        raise InvalidHandler(f"@job(aliases=...) takes a list of names, not the string {given!r}.")
    return tuple(cast("list[str]", given))


def lease_of(given: Seconds | None) -> timedelta | None:
    """Return a lease. One that ends before it can be renewed is refused, because every job would lose it."""
    length = None if given is None else duration(given, "lease")
    if length is not None and not SHORTEST_LEASE <= length <= LONGEST_LEASE:
        raise InvalidOption("lease", f"must be from {SHORTEST_LEASE} to {LONGEST_LEASE}, got {given!r}")
    return length


def _exceptions(option: str, given: object) -> Exceptions:
    """Return one or several exception classes. Other values would only fail once a job has failed."""
    several: tuple[object, ...] = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    for one in several:
        if not (isinstance(one, type) and issubclass(one, BaseException)):
            raise InvalidHandler(f"@job({option}=...) takes exception classes, not {one!r}.")
    return cast(Exceptions, several)
