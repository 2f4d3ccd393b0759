"""One evaluation: what is found now beside the alerts that are open, what is told of it, and when to look again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from jobqueue.alert_settings import alert_settings
from jobqueue.alerts import messages
from jobqueue.alerts.sights import CRITICAL, Sight, critical_sights, facts, sights
from jobqueue.backends.base import Backend
from jobqueue.ids import new_id
from jobqueue.observe.health import Finding, Place, Reading, look
from jobqueue.observe.health.kinds import critical_types
from jobqueue.policy.alerts import decision
from jobqueue.policy.alerts.rules import Rule, RuleBook
from jobqueue.records import Filter
from jobqueue.records.alert import AlertChange, AlertRecord, AlertState, News, Silence
from jobqueue.records.relay import Waiting
from jobqueue.states import JobStatus

#: How many jobs an alert names.
EXAMPLES = 3
#: The shortest time to the next look.
SOON = timedelta(seconds=1)
#: How often an alert whose numbers change is stored, if nothing else does.
REFRESH = timedelta(minutes=1)
_STATUS_OF = {
    Place.DEAD_LETTERS: JobStatus.DEAD_LETTER,
    Place.QUEUED_JOBS: JobStatus.QUEUED,
    Place.RUNNING_JOBS: JobStatus.IN_PROGRESS,
}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What an evaluation stored: the changes that were told, and how long until something changes by time alone."""

    is_stored: bool = True
    told: tuple[AlertChange, ...] = ()
    next_look: timedelta | None = None

    def count(self, news: News) -> int:
        """Return how many alerts were told as fired, resolved or reminders."""
        return sum(one.news is news for one in self.told)


def evaluate(backend: Backend, outbox: Waiting | None = None) -> Evaluation:
    """Look at everything, store what changed, and enqueue what tells of it."""
    return _stored(backend, look(backend, outbox), sights, lambda _one: True)


def evaluate_critical(backend: Backend) -> Evaluation:
    """Look at the dead letters of critical types alone, which takes one or two reads."""
    seen = Reading(
        now=backend.now(),
        depths=(),
        pauses=(),
        workers=(),
        critical=backend.health.critical_dead(critical_types()),
        rules=alert_settings().rules,
    )
    return _stored(backend, seen, critical_sights, lambda one: one.facts.cause == CRITICAL)


def _stored(
    backend: Backend,
    seen: Reading,
    found_in: Callable[[Reading, frozenset[str]], list[Sight]],
    concerns: Callable[[AlertRecord], bool],
) -> Evaluation:
    known = {one.key: one for one in backend.alerts.open() if concerns(one)}
    found = found_in(seen, frozenset(known))
    if not known and not found:
        return Evaluation()
    decided = _decided(backend, seen, known, found)
    changes = [one for one in decided if _is_worth_storing(one)]
    told = messages.with_deliveries(changes)
    if changes and not backend.alerts.store(told.changes, told.drafts):
        return Evaluation(is_stored=False, next_look=SOON)
    if told.drafts:
        backend.wake()
    looks = [_next_look(one.after, seen.rules, seen.now) for one in decided if one.after is not None]
    soonest = min((one for one in looks if one is not None), default=None)
    return Evaluation(
        told=tuple(one for one in told.changes if one.news),
        next_look=None if soonest is None else max(soonest, SOON),
    )


def _decided(
    backend: Backend, seen: Reading, known: dict[str, AlertRecord], found: Iterable[Sight]
) -> list[AlertChange]:
    silent = {one.key for one in backend.alerts.silences()}
    there = {one.key: one for one in found}
    changes = [_of_sight(backend, known.get(key), one, seen, silent) for key, one in there.items()]
    for key, before in known.items():
        if key not in there:
            rule = rule_of(before, seen.rules)
            after = decision.missing(before, rule, seen.now)
            if after is None:
                changes.append(AlertChange(before=before, after=None))
            else:
                is_silent = _is_silent(before.key, before.facts.cause, silent)
                changes.append(decision.told(before, after, rule, seen.now, silent=is_silent))
    return changes


def _of_sight(backend: Backend, before: AlertRecord | None, one: Sight, seen: Reading, silent: set[str]) -> AlertChange:
    cause, now = one.finding.cause.value, seen.now
    rule = seen.rules.rule(cause, *one.names)
    about = facts(one.finding, now, () if before is None else before.facts.examples)
    known = before or decision.begin(new_id(), one.key, one.level, about, now)
    after = decision.found(known, about, one.level, rule, now)
    change = decision.told(before, after, rule, now, silent=_is_silent(one.key, cause, silent))
    if change.news is None or change.after is None:
        return change
    named = replace(change.after, facts=replace(about, examples=_examples(backend, one.finding)))
    return replace(change, after=named)


def _is_silent(key: str, cause: str, silent: set[str]) -> bool:
    return key in silent or cause in silent


def rule_of(alert: AlertRecord, rules: RuleBook) -> Rule:
    """Return the rule of an alert."""
    return rules.rule(alert.facts.cause, alert.facts.queue, alert.facts.type)


def is_silenced(alert: AlertRecord, silences: Sequence[Silence]) -> Silence | None:
    """Return the silence that concerns an alert, if there is one."""
    return next((one for one in silences if one.key in (alert.key, alert.facts.cause)), None)


def _is_worth_storing(change: AlertChange) -> bool:
    """Return whether a change is more than a later sight of the same problem, which is stored now and then."""
    before, after = change.before, change.after
    if before is None or after is None or change.news is not None:
        return True
    return (
        replace(after, seen_at=before.seen_at, facts=before.facts) != before
        or after.seen_at - before.seen_at >= REFRESH
    )


def _examples(backend: Backend, one: Finding) -> tuple[str, ...]:
    """Name some jobs of a problem."""
    if one.job or one.parts:
        return tuple(filter(None, (one.job, *(part.job for part in one.parts))))[:EXAMPLES]
    status = _STATUS_OF.get(one.place)
    if status is None or not (one.queues or one.types):
        return ()
    wanted = Filter(
        statuses=frozenset({status}),
        queues=frozenset(one.queues),
        types=frozenset(one.types),
        tenant=one.tenant or None,
    )
    return tuple(backend.jobs.search(wanted, EXAMPLES).ids[:EXAMPLES])


def _next_look(after: AlertRecord, rules: RuleBook, now: datetime) -> timedelta | None:
    return None if after.state is AlertState.RESOLVED else decision.next_look(after, rule_of(after, rules), now)
