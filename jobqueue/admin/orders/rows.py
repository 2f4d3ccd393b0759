"""Orders as the pages show them, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.utils.translation import gettext, ngettext
from pydantic import ValidationError

from jobqueue.admin import display
from jobqueue.admin.actions import confirm
from jobqueue.admin.actions.verbs import VERBS, left_alone
from jobqueue.admin.base import address, counted
from jobqueue.admin.job.progress import bar
from jobqueue.backends import current
from jobqueue.errors import InvalidOption
from jobqueue.models import Order
from jobqueue.models.order import OPEN, OrderState
from jobqueue.orders import Instruction
from jobqueue.orders.execution import dealt_with, instruction_of, percent
from jobqueue.records import JobRecord
from jobqueue.states import ACTIVE

SIGNS: dict[str, tuple[str, str]] = {
    OrderState.WAITING: ("○", "jq-attention"),
    OrderState.RUNNING: ("▶", ""),
    OrderState.DONE: ("✓", "jq-completed"),
    OrderState.STOPPED: ("■", "jq-trouble"),
}
_SECOND = timedelta(seconds=1)
#: No request takes longer to carry out an order without a job.
REQUEST = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class OrderRow:
    """One order as the list shows it."""

    address: str
    what: str
    who: str
    why: str
    when: Any
    sign: str
    tone: str
    state: str
    changed: str
    left_alone: str


def row(of: admin.ModelAdmin[Any], order: Order, now: datetime) -> OrderRow:
    """Describe an order in a line."""
    given = _instruction(order)
    sign, tone = SIGNS.get(order.state, ("", ""))
    when = order.given_at or order.asked_at
    return OrderRow(
        address=address(of, "change", quote(order.pk)),
        what=what(order),
        who=display.clean(given.user_name if given else ""),
        why=display.clean(given.why if given else ""),
        when=display.near(when, display.ago(when, now)),
        sign=sign,
        tone=tone,
        state=str(order.get_state_display()),
        changed=gettext("%(done)s of %(all)s") % {"done": counted(order.done), "all": counted(order.total)},
        left_alone=counted(order.left_alone) if order.left_alone else "",
    )


def what(order: Order) -> str:
    """Say what an order does to how many jobs: "Retry 57,698 jobs"."""
    return confirm.asked(order) if order.verb in VERBS else display.clean(order.title)


def facts(order: Order, now: datetime) -> Iterator[tuple[str, Any]]:
    """Yield what the page of an order says, as labels and values."""
    given = _instruction(order)
    if given is None:
        return
    yield gettext("Who"), display.clean(given.user_name)
    yield gettext("Why"), display.clean(given.why) or gettext("no reason was given")
    yield gettext("Which jobs"), _which(order)
    yield from _values(given)
    if order.given_at:
        yield gettext("Confirmed"), display.in_full(order.given_at, now)
    if order.ended_at:
        yield gettext("Ended"), display.in_full(order.ended_at, now)
    if order.ended_at and order.began_at:
        yield gettext("Took"), display.took(order.began_at, order.ended_at)
    if last := _last_due(order, given):
        yield gettext("Last job due"), display.in_full(last, now)
    yield gettext("Progress"), bar(percent(order)) or ""
    yield (
        gettext("Changed"),
        gettext("%(done)s of %(all)s") % {"done": counted(order.done), "all": counted(order.total)},
    )
    yield gettext("Left alone"), counted(order.left_alone)
    if order.state == OrderState.RUNNING and (left := _time_left(order, now)):
        yield gettext("Time left"), left


def reasons(order: Order) -> list[str]:
    """Say why jobs were left alone."""
    return [display.clean(one) for one in left_alone(order)]


def notices(order: Order, job: JobRecord | None, now: datetime) -> list[str]:
    """List what stands in the way of an order."""
    if order.state not in OPEN:
        return [display.clean(order.why_ended)] if order.why_ended else []
    if order.job_id is None:
        is_cut = order.given_at is None or display.elapsed(order.given_at, now) > REQUEST
        cut = gettext(
            "The request that should carry this order out has ended early. Stop the order, and give it again."
        )
        return [cut] if is_cut else []
    if job is None or job.status not in ACTIVE:
        return [gettext("The job that carries this order out has ended. The remaining jobs are left alone.")]
    if not any(one.takes(job.queue, job.type) and one.is_alive(now) for one in current().workers.all()):
        return [gettext("No live worker runs jobs of this type. The order waits until a worker is started.")]
    return []


def seconds_left(order: Order, now: datetime) -> int:
    """How many seconds are left before an order begins."""
    if order.state != OrderState.WAITING or order.starts_at is None:
        return 0
    return max(0, -((now - order.starts_at) // _SECOND))


def _instruction(order: Order) -> Instruction | None:
    try:
        return instruction_of(order)
    except ValidationError:  # written by a newer release, or by another program
        return None


def _which(order: Order) -> str:
    if order.is_selection:
        return ngettext(
            "%(count)s job that was selected in a list", "%(count)s jobs that were selected in a list", order.total
        ) % {"count": counted(order.total)}
    try:
        query = confirm.query_of(order)
    except (InvalidOption, KeyError):
        query = ""
    return gettext("all that matched %(query)s") % {"query": display.clean(query)}


def _values(given: Instruction) -> Iterator[tuple[str, Any]]:
    if given.per_minute is not None:
        yield gettext("Pace"), gettext("at most %(count)s a minute") % {"count": counted(given.per_minute)}
    if given.scheduled_at is not None:
        yield gettext("New time"), display.at(given.scheduled_at)
    if given.priority is not None:
        yield gettext("New priority"), given.priority
    if given.queue is not None:
        yield gettext("New queue"), given.queue


def _last_due(order: Order, given: Instruction) -> datetime | None:
    """Return when the last job of an ended order becomes due, if the order has a pace.

    The order itself ends much sooner, when all of its jobs wait for their turn.
    """
    if not order.ended_at or not order.done or not given.every:
        return None
    try:
        return order.ended_at + (dealt_with(order) - 1) * given.every
    except OverflowError:  # of numbers that another program wrote
        return None


def _time_left(order: Order, now: datetime) -> str:
    """Estimate how long an order still takes, from its speed so far."""
    done = dealt_with(order)
    if not done or order.began_at is None:
        return ""
    each = display.elapsed(order.began_at, now).total_seconds() / done
    return display.duration((order.total - done) * each)
