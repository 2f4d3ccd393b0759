"""The execution of an order, batch by batch. Each batch and the account of it are one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext

from jobqueue import backends, conf
from jobqueue.control import BATCH
from jobqueue.models import Job, Order, OrderedJob
from jobqueue.models.order import OPEN, OrderState
from jobqueue.orders.batch import carry_out, own_kind
from jobqueue.orders.instruction import Instruction
from jobqueue.orders.refusals import predicate
from jobqueue.orders.selection import is_texts, orders, parts
from jobqueue.orders.verbs import VERBS
from jobqueue.records import Handled, filter_from_json

REASONS_KEPT = 20
IDS_KEPT = 3
#: What a batch changes, and what the end does. The other columns may hold what can't be written back.
_ADVANCED = ("state", "began_at", "done", "left_alone", "account")
_CLOSED = ("state", "why_ended", "ended_at")


def instruction_of(order: Order) -> Instruction:
    """Read the instruction of an order."""
    return Instruction.model_validate(order.instruction)


def next_batch(order_id: str) -> Order:
    """Carry an order out on its next jobs, and return it as it is then: its state says whether there are more."""
    with backends.current().atomic_attempt():
        order = orders().select_for_update().get(pk=order_id)
        if order.state not in OPEN:
            return order
        order.state = OrderState.RUNNING
        order.began_at = order.began_at or backends.current().now()
        ids = _next_ids(order)
        if ids:
            _carry_out(order, ids)
        order.save(using=conf.get("DATABASE"), update_fields=_ADVANCED)
        if not ids or dealt_with(order) >= order.total:
            close(order, OrderState.DONE)
        return order


def close(order: Order, state: OrderState, why: str = "") -> None:
    """End an order. Its ids are forgotten, apart from those of the jobs that it changed."""
    order.state, order.why_ended, order.ended_at = state, why, backends.current().now()
    order.save(using=conf.get("DATABASE"), update_fields=_CLOSED)
    parts(order.pk).delete()


def dealt_with(order: Order) -> int:
    """How many jobs were processed."""
    return int(order.done) + int(order.left_alone)


def percent(order: Order) -> float:
    """The progress in percent."""
    return round(100 * dealt_with(order) / order.total, 1) if order.total else 100.0


def outcome(order: Order) -> dict[str, Any]:
    """Sum up what was done as JSON: the counts, and the first reasons why jobs were left alone."""
    found = order.account.get("reasons") if isinstance(order.account, dict) else None
    kept = found if isinstance(found, dict) and _are_reasons(found) else {}
    reasons = [{"reason": reason, "count": count, "ids": ids} for reason, (count, ids) in kept.items()]
    return {"done": order.done, "left_alone": order.left_alone, "reasons": reasons}


def _are_reasons(found: dict[str, Any]) -> bool:
    """Return whether all reasons have a count and ids. Another program may have written anything there."""
    pairs = [one for one in found.values() if isinstance(one, list) and len(one) == 2]
    return len(pairs) == len(found) and all(type(count) is int and is_texts(ids) for count, ids in pairs)


def _next_ids(order: Order) -> list[str]:
    place = dealt_with(order)
    part = parts(order.pk).filter(first__lte=place).order_by("-first").first()
    return [] if part is None else list(part.ids[place - part.first :][:BATCH])


def _carry_out(order: Order, ids: Sequence[str]) -> None:
    instruction = instruction_of(order)
    after = dealt_with(order) * instruction.every
    handled = carry_out(instruction, ids, after=after, spared=lambda found: _spared(found, order))
    if not VERBS[order.verb].deletes:
        changed = [OrderedJob(order_id=order.pk, job_id=job_id) for job_id in handled.done]
        OrderedJob.objects.using(conf.get("DATABASE")).bulk_create(changed)
    order.done += len(handled.done)
    order.left_alone += len(ids) - len(handled.done)
    order.account = {**order.account, "reasons": _reasons(order, handled)}


def _reasons(order: Order, handled: Handled) -> dict[str, list[Any]]:
    reasons: dict[str, list[Any]] = dict(order.account.get("reasons", {}))
    for refusal in handled.refused:
        reason = predicate(refusal)
        if reason in reasons or len(reasons) < REASONS_KEPT:
            count, kept = reasons.get(reason, (0, []))
            reasons[reason] = [count + 1, [*kept, refusal.id] if len(kept) < IDS_KEPT else kept]
    return reasons


def _spared(found: Job, order: Order) -> str | None:
    """Return why a job is left alone: it is no longer what was counted."""
    wanted = filter_from_json(order.wanted)
    if found.pk == order.job_id:
        return gettext("is the job that carries out this order")
    statuses = order.account["statuses"] or order.account["found"]
    is_other = found.status not in statuses or (wanted.queues and found.queue not in wanted.queues)
    if is_other and VERBS[order.verb].accepts(found.status):
        return gettext("has changed since the jobs were counted")
    if order.counted_at and found.completed_at and found.completed_at > order.counted_at:
        return gettext("has ended since the jobs were counted")
    return own_kind(found, wanted)
