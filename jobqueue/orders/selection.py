"""The jobs of an order. Their ids are collected before it is confirmed, so that it changes these and no others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.db.models import QuerySet

from jobqueue import backends, conf
from jobqueue.clock import SYSTEM
from jobqueue.errors import InvalidOption
from jobqueue.handlers.options import in_utc
from jobqueue.ids import new_id
from jobqueue.models import Order, OrderPart
from jobqueue.models.order import OrderState
from jobqueue.orders.instruction import TYPE, Instruction
from jobqueue.orders.seal import NOTHING, chained
from jobqueue.orders.shown import shown
from jobqueue.orders.verbs import VERBS
from jobqueue.records import Filter, filter_from_json, filter_to_json
from jobqueue.states import JobStatus

#: How many jobs one step looks at, and how many ids one row keeps.
STRIDE, PART = 20_000, 5_000
#: How long a question can be answered, and how many open questions a user may have: a new one replaces the oldest.
ANSWERABLE, OPEN_QUESTIONS = timedelta(days=1), 20
#: How many old questions a new one removes.
REMOVED = 100


def orders() -> QuerySet[Order]:
    """Return the orders, in the database of the jobs."""
    return Order.objects.using(conf.get("DATABASE"))


def parts(order_id: str) -> QuerySet[OrderPart]:
    """Return the parts of an order."""
    return OrderPart.objects.using(conf.get("DATABASE")).filter(order=order_id)


def is_readable(order: Order) -> bool:
    """Return whether this release can count and ask about an order. Another program may have written any row."""
    account: Any = order.account
    try:
        filter_from_json(order.wanted)
        return (
            order.total >= 0
            and is_texts(account["statuses"])
            and all(map(JobStatus, account["statuses"]))
            and 0 <= account["at"] <= len(account["statuses"])
            and all(_is_counts(account.get(name, {})) for name in ("found", "left"))
            and is_texts([account["digest"], account.get("after") or "", *account.get("gone", ())])
        )
    except (InvalidOption, LookupError, TypeError, ValueError, AttributeError):
        return False


def is_texts(found: object) -> bool:
    """Return whether JSON is a list of texts."""
    return isinstance(found, list) and all(isinstance(one, str) for one in found)


def _is_counts(found: object) -> bool:
    return isinstance(found, dict) and all(type(one) is int and one >= 0 for one in found.values())


def ask(instruction: Instruction, wanted: Filter, back: str) -> Order:
    """Store an order for all jobs that match a filter. ``collect`` finds them."""
    statuses = sorted(VERBS[instruction.verb].statuses_in(wanted))
    return _stored(instruction, wanted, back, {"statuses": statuses, "at": 0, "found": {}, "digest": NOTHING})


def ask_for(instruction: Instruction, rows: Mapping[str, str], gone: Sequence[str], back: str) -> Order:
    """Store an order for selected jobs, given with their statuses. ``gone`` are ids that the list no longer has."""
    verb = VERBS[instruction.verb]
    ids = [job_id for job_id, status in sorted(rows.items()) if verb.accepts(status)]
    left = Counter(status for status in rows.values() if not verb.accepts(status))
    found = Counter(rows[job_id] for job_id in ids)
    account = {"statuses": [], "at": 0, "found": found, "left": left, "gone": list(gone), "digest": NOTHING}
    order = _stored(instruction, Filter(ids=frozenset(ids)), back, account, is_selection=True)
    _keep(order, ids, account)
    return order


def collect(order: Order, seconds: float) -> Order | None:
    """Collect ids until all are known or the time is over, at least one step of them. Return the order as it is then.

    The number is exact once ``counted_at`` is set. Of two callers at once, one counts for nothing. Return ``None`` if
    the order was removed meanwhile.
    """
    limit = SYSTEM.monotonic() + seconds
    found: Order | None = order
    while found is not None and found.state == OrderState.ASKED and found.counted_at is None:
        _step(found)
        found = orders().filter(pk=order.pk).first()
        if SYSTEM.monotonic() > limit:
            break
    return found


def _stored(
    instruction: Instruction, wanted: Filter, back: str, account: dict[str, Any], *, is_selection: bool = False
) -> Order:
    now = backends.current().now()
    order = Order(
        id=new_id(),
        state=OrderState.ASKED,
        verb=instruction.verb,
        user_id=instruction.user_id,
        instruction=instruction.model_dump(mode="json", exclude_defaults=True),
        wanted=filter_to_json(wanted),
        is_selection=is_selection,
        back=back,
        account=account,
        asked_at=now,
    )
    with backends.current().atomic_attempt():
        _remove_old_questions(order)
        order.save(using=conf.get("DATABASE"), force_insert=True)
    return order


def _remove_old_questions(new: Order) -> None:
    """Remove questions that can no longer be answered, and those that make room for a user's new one.

    A question may be stored for a GET, so their number must not grow with the number of requests.
    """
    asked = orders().filter(state=OrderState.ASKED)
    old = asked.filter(asked_at__lt=new.asked_at - ANSWERABLE).order_by("asked_at")
    mine = asked.filter(user_id=new.user_id).order_by("-asked_at", "-pk")
    ids = [
        *old.values_list("pk", flat=True)[:REMOVED],
        *mine.values_list("pk", flat=True)[OPEN_QUESTIONS - 1 :][:REMOVED],
    ]
    # Only while nobody has confirmed them. The row's lock keeps it so, and without the order, no count adds parts.
    gone = list(asked.filter(pk__in=ids).select_for_update().values_list("pk", flat=True))
    OrderPart.objects.using(conf.get("DATABASE")).filter(order__in=gone).delete()
    orders().filter(pk__in=gone).delete()


def _step(order: Order) -> None:
    account, ids = dict(order.account), []
    if account["at"] < len(account["statuses"]):
        status = account["statuses"][account["at"]]
        wanted = filter_from_json(order.wanted)
        before = min(filter(None, (in_utc(wanted.created_before), order.asked_at)))
        one = replace(wanted, statuses=frozenset({JobStatus(status)}), created_before=before)
        step = backends.current().jobs.walk(one, STRIDE, account.get("after"))
        ids = _without_orders(wanted, shown(one, step.ids))
        account["found"] = dict(Counter(account["found"]) + Counter({status: len(ids)}))
        account["after"] = step.last
        account["at"] += step.last is None
    _keep(order, ids, account)


def _keep(order: Order, ids: Sequence[str], account: dict[str, Any]) -> None:
    """Add ids to those of an order, unless another process has done so meanwhile."""
    kept = [ids[start : start + PART] for start in range(0, len(ids), PART)]
    for one in kept:
        account["digest"] = chained(account["digest"], one)
    is_all = account["at"] >= len(account["statuses"])
    backend = backends.current()
    with backend.atomic_attempt():
        mine = orders().filter(pk=order.pk, state=OrderState.ASKED, steps=order.steps)
        if mine.update(
            steps=order.steps + 1,
            total=order.total + len(ids),
            account=account,
            counted_at=backend.now() if is_all else None,
        ):
            OrderPart.objects.using(conf.get("DATABASE")).bulk_create(
                OrderPart(order_id=order.pk, first=order.total + place * PART, ids=list(one))
                for place, one in enumerate(kept)
            )


def _without_orders(wanted: Filter, ids: list[str]) -> list[str]:
    """Leave out the jobs that carry out orders, unless the filter names them. A retry would repeat an old order."""
    if not ids or TYPE in wanted.types:
        return ids
    own = orders().filter(job_id__gte=ids[0], job_id__lte=ids[-1]).values_list("job_id", flat=True)
    left_out = set(own) - wanted.ids
    return [job_id for job_id in ids if job_id not in left_out]
