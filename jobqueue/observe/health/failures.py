"""Findings about failures: types that fail more than usual, and dead letters that are news."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from math import sqrt

from jobqueue.observe.health.finding import Cause, Failures, Finding, Level, Place
from jobqueue.observe.health.reading import Reading
from jobqueue.records import MetricSum
from jobqueue.records.metric import ENDS

#: The windows in which attempts are judged, and the share of failures below which nothing is said. Few attempts fail
#: together now and then, so a short window asks for more.
WINDOWS = {timedelta(minutes=1): 0.5, timedelta(minutes=10): 0.3, timedelta(hours=1): 0.2}
LATELY = max(WINDOWS)
#: The past that the windows are compared with.
PAST = timedelta(days=1)
#: Fewer attempts say nothing about a type.
LEAST_ATTEMPTS = 20
#: A type that fails this often is never well, whatever it did before.
HOPELESS = 0.9
#: A number of failures is unusual if it is so many standard deviations above what the past would bring.
DEVIATIONS = 5
#: Some failures more are no news either.
SPARE_FAILURES, SPARE_DEATHS = 3, 1


def failing(seen: Reading) -> Iterator[Finding]:
    """Find the types whose attempts fail more than usual, and still do."""
    for name, found in sorted(failing_types(seen).items()):
        dead = [one for one in seen.dead_letters if one.type == name]
        yield Finding(
            level=Level.ERROR if found.share >= HOPELESS else Level.WARNING,
            cause=Cause.FAILING,
            place=Place.DEAD_LETTERS if dead else Place.DASHBOARD,
            types=(name,),
            jobs=found.failed,
            dead=sum(one.count for one in dead),
            is_capped=any(one.capped for one in dead),
            failures=found,
        )


def died_lately(seen: Reading) -> Iterator[Finding]:
    """Find the types with more dead letters in the last hour than usual, if they don't fail as a whole."""
    explained, waiting = failing_types(seen), _waiting(seen)
    for name, recent in seen.attempts.get(LATELY, {}).items():
        past, left = _before(seen, name, LATELY), waiting.get(name, 0)
        ended = recent.completed + recent.dead_lettered
        usual = _share(past.dead_lettered, past.completed + past.dead_lettered)
        limit = _limit(usual, ended, SPARE_DEATHS) if past.dead_lettered else 0
        if name not in explained and left and recent.dead_lettered > limit:
            yield Finding(
                level=Level.WARNING,
                cause=Cause.DIED_LATELY,
                place=Place.DEAD_LETTERS,
                types=(name,),
                jobs=min(recent.dead_lettered, left),
                dead=left,
                is_capped=any(one.capped for one in seen.dead_letters if one.type == name),
            )


def failing_types(seen: Reading) -> dict[str, Failures]:
    """Return the types whose attempts fail more than usual, and still do, with how many."""
    found = {}
    for name in {name for window in WINDOWS for name in seen.attempts.get(window, {})}:
        judged = [_judged(seen, name, window) for window in WINDOWS]
        known = [one for one in judged if one.attempts >= LEAST_ATTEMPTS]
        # The shortest window that says something tells whether it is over.
        if known and known[0].share >= min(WINDOWS.values()) and (bad := [one for one in known if _is_bad(one)]):
            found[name] = bad[0]
    return found


def _judged(seen: Reading, name: str, window: timedelta) -> Failures:
    recent, past = _sum(seen, name, window), _before(seen, name, window)
    usual = _share(_failed(past), _attempts(past)) if _attempts(past) >= LEAST_ATTEMPTS else 0.0
    return Failures(_failed(recent), _attempts(recent), window, usual)


def _is_bad(one: Failures) -> bool:
    is_unusual = one.failed > _limit(one.usual, one.attempts, SPARE_FAILURES)
    return one.share >= HOPELESS or (one.share >= WINDOWS[one.window] and is_unusual)


def _limit(usual: float, number: int, spare: int) -> float:
    """Return how many of a number may fail before it is unusual."""
    expected = usual * max(number, 0)
    return expected + DEVIATIONS * sqrt(expected * (1 - usual)) + spare


def _sum(seen: Reading, name: str, window: timedelta) -> MetricSum:
    return seen.attempts.get(window, {}).get(name) or MetricSum(name, 0, 0, 0, 0, 0, 0, 0.0)


def _before(seen: Reading, name: str, window: timedelta) -> MetricSum:
    """Return what a type did in the past before a window."""
    past, recent = _sum(seen, name, PAST), _sum(seen, name, window)
    return past._replace(**{end: max(getattr(past, end) - getattr(recent, end), 0) for end in ENDS})


def _failed(one: MetricSum) -> int:
    return one.retried + one.dead_lettered + one.lost


def _attempts(one: MetricSum) -> int:
    return one.completed + _failed(one)


def _share(count: int, number: int) -> float:
    # Another program may have stored negative counts.
    return min(max(count / number, 0.0), 1.0) if number > 0 else 0.0


def _waiting(seen: Reading) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in seen.dead_letters:
        found[one.type] = found.get(one.type, 0) + one.count
    return found
