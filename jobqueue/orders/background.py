"""Large orders: a job of the queue itself carries them out, batch by batch, and tells how far it is.

Run again after a crash or a stop, it goes on where it was: what is done matches no more, or has nothing left to change.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.core.signing import BadSignature, Signer
from django.utils.translation import gettext
from pydantic import AwareDatetime, BaseModel, ConfigDict, field_validator

from jobqueue import backends
from jobqueue.api import get, job
from jobqueue.control import BATCH
from jobqueue.errors import Cancel
from jobqueue.handlers.context import JobContext
from jobqueue.handlers.options import in_utc
from jobqueue.models import Job
from jobqueue.orders.log import logged
from jobqueue.orders.order import TYPE as TYPE
from jobqueue.orders.order import Order
from jobqueue.orders.shown import is_checked, shown
from jobqueue.orders.verbs import VERBS
from jobqueue.orders.work import carry_out
from jobqueue.receipts import Receipt
from jobqueue.records import Filter, Handled, Scope, filter_from_json, filter_to_json

#: Where such jobs wait while the default queue is paused: who has paused it must be able to act on it.
QUEUE = "jobqueue"
LONGEST = timedelta(hours=12)
REASONS_KEPT = 20
IDS_KEPT = 3


class Operation(BaseModel):
    """An order for everything that a filter let through when it was given.

    It is sealed with the project's secret: who can write jobs, and no more, gives none in an operator's name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    order: Order
    wanted: dict[str, Any]
    asked_at: AwareDatetime
    seal: str = ""

    @field_validator("wanted")
    @classmethod
    def _is_a_filter(cls, value: dict[str, Any]) -> dict[str, Any]:
        filter_from_json(value)
        return value

    def sealed(self) -> Operation:
        """Make it one that was given."""
        return self.model_copy(update={"seal": _signer().sign(self._digest)})

    @property
    def is_genuine(self) -> bool:
        """Whether it is as it was given."""
        try:
            return _signer().unsign(self.seal) == self._digest
        except BadSignature:
            return False

    @property
    def _digest(self) -> str:
        # A field that a later release adds leaves the seal of older orders whole, as does what a database makes of a
        # number: Postgres has no 1e22 that is no whole number, and no zero below zero.
        text = json.dumps(self.model_dump(mode="json", exclude={"seal"}, exclude_defaults=True))
        same = json.loads(text, parse_int=_number, parse_float=_number)
        return hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()

    @property
    def meant(self) -> Filter:
        """What there was when it was asked for, and no job that came since."""
        wanted = filter_from_json(self.wanted)
        before = min(filter(None, (in_utc(wanted.created_before), self.asked_at)))
        return VERBS[self.order.verb].meant(replace(wanted, created_before=before))


def _signer() -> Signer:
    return Signer(salt="jobqueue.orders.background")


def _number(text: str) -> float:
    return float(text) + 0.0


@dataclass(slots=True)
class Account:
    """What became of the jobs so far, ``of`` how many; ``last`` is the id of the last one that was looked at."""

    of: int = 0
    done: int = 0
    left_alone: int = 0
    last: str | None = None
    reasons: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def dealt_with(self) -> int:
        """How many have been looked at."""
        return self.done + self.left_alone

    @property
    def percent(self) -> float:
        """How far it is; what was counted at first may have changed since."""
        return min(99.0, round(100 * self.dealt_with / max(self.of, 1), 1))

    def add(self, ids: list[str], last: str, handled: Handled) -> None:
        """Enter a batch, and the last that was looked at for it."""
        self.done += len(handled.done)
        self.left_alone += len(ids) - len(handled.done)
        self.last = last
        for refusal in handled.refused:
            if refusal.reason in self.reasons or len(self.reasons) < REASONS_KEPT:
                kept = self.reasons.setdefault(refusal.reason, [0, []])
                kept[0] += 1
                kept[1] += [refusal.id] if len(kept[1]) < IDS_KEPT else []

    def told(self) -> dict[str, Any]:
        """Sum it up as JSON: the counts, and the first reasons why jobs were left alone."""
        reasons = [{"reason": reason, "count": count, "ids": ids} for reason, (count, ids) in self.reasons.items()]
        return {"done": self.done, "left_alone": self.left_alone, "reasons": reasons}


def start(order: Order, wanted: Filter) -> Receipt:
    """Enqueue an order; the same one, given twice while it is carried out, is one."""
    backend = backends.current()
    given = filter_to_json(wanted)
    same = json.dumps([order.model_dump(mode="json"), given], sort_keys=True)
    paused = {one.name for one in backend.pauses() if one.scope is Scope.QUEUE}
    handler = operate.using(
        unique_key=f"{TYPE}-{hashlib.sha256(same.encode()).hexdigest()}",
        queue=QUEUE if operate.options.queue in paused else operate.options.queue,
    )
    receipt: Receipt = handler.enqueue(Operation(order=order, wanted=given, asked_at=backend.now()).sealed())
    return receipt


@job(TYPE, priority=1, max_retries=5, timeout=LONGEST, editable=False)
def operate(operation: Operation, ctx: JobContext) -> dict[str, Any]:
    """Carry an order out, for as long as who gave it may do so."""
    if not operation.is_genuine:
        raise Cancel(gettext("Nobody gave this order in an admin with the same SECRET_KEY."))
    order, meant = operation.order, operation.meant
    message = gettext("%(said)s (by job %(id)s)") % {"said": VERBS[order.verb].said(order), "id": ctx.job_id}
    account = _so_far(ctx, meant, order, message)
    while ids := backends.current().find_ids(meant, BATCH, account.last):
        ctx.checkpoint()
        _require_permission(order, account)
        taken = shown(meant, ids)
        handled = carry_out(
            order,
            taken,
            after=account.dealt_with * order.every,
            message=message,
            spared=lambda found: _spared(found, operation, meant, ctx.job_id),
        )
        account.add(taken, ids[-1], handled)
        ctx.progress(account.percent, **account.told(), of=account.of, last=account.last)
    ctx.progress(100, **account.told(), of=account.of, last=account.last)
    return account.told()


def _so_far(ctx: JobContext, meant: Filter, order: Order, message: str) -> Account:
    """Count what is to be done, or take up what an earlier attempt left.

    Its last report may have been lost; the log has an entry for each job that was changed.
    """
    if ctx.fence == 1:
        return Account(of=_count(meant))
    done, report = logged(order.user_id, message), get(ctx.job_id).progress
    if not isinstance(report, dict) or "last" not in report:
        return Account(of=done + _count(meant), done=done)
    kept = {one["reason"]: [one["count"], one["ids"]] for one in report["reasons"]}
    return Account(report["of"], max(done, report["done"]), report["left_alone"], report["last"], kept)


def _count(meant: Filter) -> int:
    """Count what is meant; of matches that may be a secret's not even their number is told."""
    backend, total, last = backends.current(), 0, None
    if not is_checked(meant):
        return backend.count(meant)
    while ids := backend.find_ids(meant, BATCH, last):
        total, last = total + len(shown(meant, ids)), ids[-1]
    return total


def _require_permission(order: Order, account: Account) -> None:
    """Stop where the user has gone, or may no longer do this, and say how far it is; read anew for each batch."""
    user, name = order.user(), {"name": order.user_name}
    if user is None or not user.is_active:
        why = gettext("The user %(name)s is gone or no longer active.") % name
    elif order.of_staff and not getattr(user, "is_staff", False):
        why = gettext("The user %(name)s may no longer enter the admin.") % name
    elif not user.has_perms(["jobqueue.view_job", VERBS[order.verb].permission]):
        why = gettext("The user %(name)s may no longer do this.") % name
    else:
        return
    far = gettext("Of %(of)d jobs, %(done)d were changed before, and %(left_alone)d left alone.")
    raise Cancel(f"{why} {far % {'of': account.of, 'done': account.done, 'left_alone': account.left_alone}}")


def _spared(found: Job, operation: Operation, meant: Filter, own_id: str) -> str | None:
    if found.pk == own_id:
        return gettext("is this very job")
    if _ended_since(found.completed_at, operation.asked_at):
        return gettext("has ended since this was asked for")
    return own_kind(found, meant)


def _ended_since(completed_at: datetime | None, asked_at: datetime) -> bool:
    return completed_at is not None and completed_at >= asked_at


def own_kind(found: Job, wanted: Filter) -> str | None:
    """Say why a filter that names neither its type nor its id leaves such a job alone: it would repeat an old order."""
    if found.type != TYPE or TYPE in wanted.types or found.pk in wanted.ids:
        return None
    return gettext("is an order of an operator; filter by its type to mean it")
