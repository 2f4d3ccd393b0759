"""Findings of rules that compare a number with a threshold, which the setting ``ALERTS`` can change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

from jobqueue.observe.health.failures import LATELY, LEAST_ATTEMPTS, died_lately, failing, failing_types
from jobqueue.observe.health.finding import Cause, Finding, Level, Place
from jobqueue.observe.health.reading import Reading, queue_states
from jobqueue.observe.health.workers import of_rows
from jobqueue.policy.alerts.rules import MEASURES, OFF, Rule
from jobqueue.policy.histogram import percentile
from jobqueue.records import DeadLetterCount, Depth
from jobqueue.records.metric import success

Row = TypeVar("Row", Depth, DeadLetterCount)

#: A backlog is no news before its oldest job has been due for this long: a burst comes and goes.
LASTING = timedelta(minutes=5)
#: The window that tells whether a low success rate is over.
JUST_NOW = timedelta(minutes=10)
#: Which percentile of the running times is judged.
SLOWEST = 0.95
#: A type that sets a time limit of its own says that it takes long. It is slow from this part of the limit on.
OF_OWN_LIMIT = 0.5


def queue_deep(seen: Reading) -> Iterator[Finding]:
    """Find the queues in which more jobs are due than a rule says, if no other finding explains it."""
    full = {one.name for one in queue_states(seen) if one.level is not Level.OK}
    not_taken = seen.not_taken
    served = [row for row in seen.depths if row.due and row not in not_taken] if seen.alive else []
    rows = [row for row in served if not row.paused and row.queue not in full]
    for rule, scope, several in _grouped(Cause.QUEUE_DEEP, rows, seen, lambda row: row.queue):
        several = several if rule.queue or rule.type else _not_withheld(several, seen)
        due = _due(several, seen, rule)
        oldest = min((row.oldest_due_at for row in several if row.oldest_due_at), default=seen.now)
        if due > _threshold(rule) and seen.now - oldest >= LASTING:
            found = of_rows(Cause.QUEUE_DEEP, several, _level(rule))
            yield replace(found, due=due, scope=scope, measured=due, threshold=rule.threshold)


def _not_withheld(rows: list[Depth], seen: Reading) -> list[Depth]:
    """Leave out what a limit of a whole queue or type holds back. A limit with a key holds back some jobs only."""
    withheld = {(one.queue, one.type) for one in seen.withheld if not one.use.limit.key}
    return [row for row in rows if (row.queue, row.type) not in withheld]


def _due(rows: list[Depth], seen: Reading, rule: Rule) -> int:
    """Count due jobs. Where the rows of a queue stop short, a count of the whole queue that went further is used."""
    due = sum(row.due for row in rows)
    if rule.type or not any(row.capped for row in rows):
        return due
    others = [row for row in seen.depths if row.queue == rows[0].queue and row not in rows]
    if any(row.capped for row in others):
        return due
    later = sum(row.queued - row.due for row in rows) + sum(row.queued for row in others)
    return max(due, seen.counts.get(rows[0].queue, 0) - later)


def dead_letters(seen: Reading) -> Iterator[Finding]:
    """Find more dead letters than a rule says, and others that wait for somebody, if no other finding names them."""
    left: list[DeadLetterCount] = []
    for rule, scope, rows in _grouped(Cause.DEAD_LETTERS, seen.dead_letters, seen, lambda _row: ""):
        count = sum(row.count for row in rows)
        if count > _threshold(rule):
            found = _dead(rows, _level(rule))
            yield replace(found, scope=scope, measured=count, threshold=rule.threshold)
        else:
            left += rows
    others = (*failing(seen), *died_lately(seen), *critical_dead(seen))
    named = {name for one in others for name in one.types}
    if left := [row for row in left if row.type not in named]:
        yield replace(_dead(left, Level.NOTICE), scope=("", ""))


def _dead(rows: list[DeadLetterCount], level: Level) -> Finding:
    return Finding(
        level=level,
        cause=Cause.DEAD_LETTERS,
        place=Place.DEAD_LETTERS,
        types=tuple(dict.fromkeys(row.type for row in rows)),
        queues=tuple(dict.fromkeys(row.queue for row in rows)),
        jobs=sum(row.count for row in rows),
        is_capped=any(row.capped for row in rows),
    )


def success_low(seen: Reading) -> Iterator[Finding]:
    """Find the types of which too few jobs succeeded in the last hour, if no other finding says that they fail.

    It is over once enough jobs have ended without a dead letter.
    """
    explained = failing_types(seen)
    for name, one in sorted(seen.attempts.get(LATELY, {}).items()):
        rule = seen.rules.rule(Cause.SUCCESS_LOW, type=name)
        share = success(one.completed, one.dead_lettered)
        if rule.level == OFF or name in explained or share is None or one.completed + one.dead_lettered < rule.least:
            continue
        just_now = seen.attempts.get(JUST_NOW, {}).get(name)
        if just_now and just_now.completed >= LEAST_ATTEMPTS and not just_now.dead_lettered:
            continue
        if 0 <= share < _threshold(rule):
            yield Finding(
                level=_level(rule),
                cause=Cause.SUCCESS_LOW,
                place=Place.DEAD_LETTERS,
                types=(name,),
                jobs=one.dead_lettered,
                measured=share,
                threshold=rule.threshold,
            )


def slow(seen: Reading) -> Iterator[Finding]:
    """Find the types whose jobs ran for long in the last hour."""
    for name, lengths in sorted(seen.ran.items()):
        rule, usual = slow_rule(seen, name), percentile(lengths.buckets, SLOWEST)
        if rule.level != OFF and usual is not None and lengths.number >= rule.least and usual > _threshold(rule):
            yield Finding(
                level=_level(rule),
                cause=Cause.SLOW,
                place=Place.DASHBOARD,
                types=(name,),
                length=timedelta(seconds=min(usual, 1e9)),
                measured=round(usual, 3),
                threshold=rule.threshold,
            )


def slow_rule(seen: Reading, name: str) -> Rule:
    """Return the rule of a type's running time. Its own time limit counts unless the setting names the type."""
    rule, own = seen.rules.rule(Cause.SLOW, type=name), seen.own_limits.get(name)
    if rule.type or own is None:
        return rule
    return replace(rule, threshold=max(_threshold(rule), OF_OWN_LIMIT * own.total_seconds()))


def critical_dead(seen: Reading) -> Iterator[Finding]:
    """Find the dead letters of types that are marked as critical."""
    for one in seen.critical:
        yield Finding(
            level=Level.ERROR,
            cause=Cause.CRITICAL_DEAD,
            place=Place.JOB,
            job=one.id,
            types=(one.type,),
            queues=(one.queue,),
            jobs=1,
            dead=1,
            since=one.died_at,
        )


def judged(one: Finding, seen: Reading) -> Finding | None:
    """Give a finding the level that a rule says, or return ``None`` if the rule is off."""
    if one.cause in MEASURES:  # judged where it was measured
        return one
    names = [found[0] if len(found) == 1 else "" for found in (one.queues, one.types)]
    rule = seen.rules.rule(one.cause, *names)
    if rule.level == OFF:
        return None
    return replace(one, level=_level(rule)) if rule.level else one


def _grouped(
    cause: Cause, rows: Iterable[Row], seen: Reading, usual: Callable[[Row], str]
) -> Iterator[tuple[Rule, tuple[str, ...], list[Row]]]:
    """Yield the rows of each rule: by the queue and type that it names, or else by what is usual."""
    groups: dict[tuple[str, ...], tuple[Rule, list[Row]]] = {}
    for row in rows:
        rule = seen.rules.rule(cause, row.queue, row.type)
        scope: tuple[str, ...] = (rule.queue, rule.type) if rule.queue or rule.type else (usual(row), "")
        groups.setdefault(scope, (rule, []))[1].append(row)
    for scope, (rule, several) in groups.items():
        if rule.level != OFF:
            yield rule, tuple(filter(None, scope)) and scope, several


def _threshold(rule: Rule) -> float:
    return float("inf") if rule.threshold is None else rule.threshold


def _level(rule: Rule) -> Level:
    return Level[rule.level.upper()]
