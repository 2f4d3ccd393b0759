"""The decision that follows an unsuccessful attempt. Pure: an error and a random source in, a decision out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from random import Random

from jobqueue.errors import (
    Cancel,
    Discard,
    InvalidOption,
    PayloadInvalid,
    PayloadTooNew,
    ResultRefused,
    Retry,
    Snooze,
    duration,
)
from jobqueue.records import Again, Alone, AttemptCount, Dead, Decision, Later, Stopped

Delay = Callable[[int, Random], timedelta]
Seconds = timedelta | float

LONGEST = timedelta(hours=1)
_TOO_NEW = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Exponential:
    """Waits ``base * 2**attempt``, at most ``cap``, plus up to ``jitter``, so that retries don't come all at once."""

    base: Seconds = timedelta(seconds=1)
    cap: Seconds = timedelta(seconds=60)
    jitter: Seconds = timedelta(seconds=1)

    def __post_init__(self) -> None:
        duration(self.base, "base")
        duration(self.jitter, "jitter")
        if duration(self.cap, "cap") > LONGEST:
            raise InvalidOption("cap", f"must be at most {LONGEST}, got {self.cap!r}")

    def __call__(self, attempt: int, rng: Random) -> timedelta:
        base, cap, jitter = (duration(length, "delay") for length in (self.base, self.cap, self.jitter))
        # 2**attempt would overflow timedelta. Every useful base reaches its cap long before.
        doublings = min(attempt, 32)
        wait = min(min(base, cap) * int(2**doublings), cap)
        return wait + jitter * rng.random()


@dataclass(frozen=True, slots=True)
class Fixed:
    """Waits the same time after every attempt, plus up to ``jitter``."""

    delay: Seconds
    jitter: Seconds = timedelta(0)

    def __post_init__(self) -> None:
        duration(self.delay, "delay")
        duration(self.jitter, "jitter")

    def __call__(self, attempt: int, rng: Random) -> timedelta:
        return duration(self.delay, "delay") + duration(self.jitter, "jitter") * rng.random()


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The retry policy of one job type. ``discard_on`` is checked before ``retry_on``."""

    delay: Delay = Exponential()
    retry_on: tuple[type[BaseException], ...] = (BaseException,)
    discard_on: tuple[type[BaseException], ...] = ()


def decide(policy: RetryPolicy, attempt: AttemptCount, error: BaseException, *, rng: Random) -> Decision:
    """Return whether and when the job runs again. This is the only place that turns an error into a decision."""
    match error:
        case Snooze(delay=delay):
            return Later(delay)  # requested, so the attempt isn't counted
        case Cancel():
            return Stopped("cancelled")
        case Discard():
            return Dead("discarded")
        case PayloadTooNew():
            return Later(_TOO_NEW)  # during a rolling deployment a newer worker can read it
        case PayloadInvalid():
            return Dead("invalid payload")
        case ResultRefused():
            return Dead("unusable result")  # the work is done; running it again would repeat it
        case Retry(delay=timedelta() as delay) if attempt.left:
            return Again(delay)
    if isinstance(error, policy.discard_on) or not isinstance(error, (Retry, *policy.retry_on)):
        return Dead("not retryable")
    if not attempt.left:
        return Dead("attempts used up")
    return Again(policy.delay(attempt.number, rng))


def decide_cut_short(policy: RetryPolicy, attempt: AttemptCount, reason: str, *, rng: Random) -> Decision:
    """Return the decision for an attempt that was ended from outside: its time was up, or its process died.

    This runs in the supervisor, where no code of the application may run. A custom delay function is therefore replaced
    by the default.
    """
    if not attempt.left:
        return Dead(reason)
    declared = policy.delay if type(policy.delay) in (Exponential, Fixed) else Exponential()
    return Again(declared(attempt.number, rng))


def decide_lease_lost(attempt: AttemptCount, *, crash_count: int, company: int) -> Decision:
    """Return the decision for a job with an expired lease, whose owner held ``company`` other jobs.

    If there were others, the culprit is unknown, so each job runs alone once before an attempt is counted.
    """
    return _decide_alone(attempt, Dead("lease lost"), crash_count, company)


def decide_worker_dead(attempt: AttemptCount, *, crash_count: int, company: int) -> Decision:
    """Return the decision for a job whose worker is proved dead: that of an expired lease, with another reason."""
    return _decide_alone(attempt, Dead("crashed"), crash_count, company)


def _decide_alone(attempt: AttemptCount, end: Dead, crash_count: int, company: int) -> Decision:
    if company and not crash_count:
        return Alone()
    return Again(timedelta(0)) if attempt.left else end
