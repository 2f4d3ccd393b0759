"""What an attempt that did not succeed leads to. Pure: an error comes in, dice are passed in, a decision goes out."""

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
from jobqueue.records import Again, Alone, Attempt, Dead, Decision, Later, Stopped

Delay = Callable[[int, Random], timedelta]
Seconds = timedelta | float

LONGEST = timedelta(hours=1)
_TOO_NEW = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Exponential:
    """Waits ``base * 2**attempt``, at most ``cap``, plus up to ``jitter`` so that a crowd does not return at once."""

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
        # 2**attempt overflows timedelta long before any sane max_retries; every useful base meets its cap by then.
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
    """How one job type treats its failures; ``discard_on`` is asked before ``retry_on``."""

    delay: Delay = Exponential()
    retry_on: tuple[type[BaseException], ...] = (BaseException,)
    discard_on: tuple[type[BaseException], ...] = ()


def decide(policy: RetryPolicy, attempt: Attempt, error: BaseException, *, rng: Random) -> Decision:
    """Say whether the job runs again, when, or never; the only place that turns an error into a decision."""
    match error:
        case Snooze(delay=delay):
            return Later(delay)  # asked for, so no attempt is spent
        case Cancel():
            return Stopped("cancelled")
        case Discard():
            return Dead("discarded")
        case PayloadTooNew():
            return Later(_TOO_NEW)  # a rolling deploy is under way: a newer worker can read it
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


def decide_cut_short(policy: RetryPolicy, attempt: Attempt, reason: str, *, rng: Random) -> Decision:
    """Say what follows an attempt that was ended from outside: its time was up, or its process died.

    No code of the application's is asked, for this is decided where none may run: a delay of its own making is
    replaced by the default.
    """
    if not attempt.left:
        return Dead(reason)
    declared = policy.delay if type(policy.delay) in (Exponential, Fixed) else Exponential()
    return Again(declared(attempt.number, rng))


def decide_lease_lost(attempt: Attempt, *, crash_count: int, company: int) -> Decision:
    """Say what becomes of a job whose lease ran out, with ``company`` other jobs of the same owner.

    In company nobody knows the culprit, so each gets one run alone before it pays with an attempt.
    """
    if company and not crash_count:
        return Alone()
    return Again(timedelta(0)) if attempt.left else Dead("lease lost")
