"""Large orders: a job of the queue carries them out batch by batch, and reports its progress.

When the job runs again after a crash or a stop, it continues: jobs that are done no longer match, or need no change.
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
from jobqueue.api.receipts import Receipt
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
from jobqueue.records import Filter, Handled, Scope, filter_from_json, filter_to_json

#: The queue of such jobs while the default queue is paused, so that an operator can still act on paused jobs.
QUEUE = "jobqueue"
LONGEST = timedelta(hours=12)
REASONS_KEPT = 20
IDS_KEPT = 3


class Operation(BaseModel):
    """An order for all jobs that matched a filter when it was given.

    It is signed with SECRET_KEY, so that being able to write jobs is not enough to give orders in an operator's name.
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
        """Sign it."""
        return self.model_copy(update={"seal": _signer().sign(self._digest)})

    @property
    def is_genuine(self) -> bool:
        """Return whether its signature is valid."""
        try:
            return _signer().unsign(self.seal) == self._digest
        except BadSignature:
            return False

    @property
    def _digest(self) -> str:
        # Two things must not break a signature. A later release may add a field: so defaults are excluded. A database
        # may rewrite a number: Postgres stores 1e22 as an integer, and -0.0 as 0.0.
        text = json.dumps(self.model_dump(mode="json", exclude={"seal"}, exclude_defaults=True))
        same = json.loads(text, parse_int=_number, parse_float=_number)
        return hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()

    @property
    def meant(self) -> Filter:
        """The filter, narrowed to jobs that existed when the order was given."""
        wanted = filter_from_json(self.wanted)
        before = min(filter(None, (in_utc(wanted.created_before), self.asked_at)))
        return VERBS[self.order.verb].narrowed(replace(wanted, created_before=before))


def _signer() -> Signer:
    return Signer(salt="jobqueue.orders.background")


def _number(text: str) -> float:
    return float(text) + 0.0


@dataclass(slots=True)
class Account:
    """The progress of an order: ``of`` is the number of jobs, ``last`` the id of the last one processed."""

    of: int = 0
    done: int = 0
    left_alone: int = 0
    last: str | None = None
    reasons: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def dealt_with(self) -> int:
        """How many jobs were processed."""
        return self.done + self.left_alone

    @property
    def percent(self) -> float:
        """The progress in percent, at most 99: the number of jobs may have changed since they were counted."""
        return min(99.0, round(100 * self.dealt_with / max(self.of, 1), 1))

    def add(self, ids: list[str], last: str, handled: Handled) -> None:
        """Add a batch and the id of its last job."""
        self.done += len(handled.done)
        self.left_alone += len(ids) - len(handled.done)
        self.last = last
        for refusal in handled.refused:
            if refusal.reason in self.reasons or len(self.reasons) < REASONS_KEPT:
                kept = self.reasons.setdefault(refusal.reason, [0, []])
                kept[0] += 1
                kept[1] += [refusal.id] if len(kept[1]) < IDS_KEPT else []

    def told(self) -> dict[str, Any]:
        """Summarize it as JSON: the counts, and the first reasons why jobs were left alone."""
        reasons = [{"reason": reason, "count": count, "ids": ids} for reason, (count, ids) in self.reasons.items()]
        return {"done": self.done, "left_alone": self.left_alone, "reasons": reasons}


def start(order: Order, wanted: Filter) -> Receipt:
    """Enqueue an order. The same order, given again while it is carried out, is not enqueued again."""
    backend = backends.current()
    given = filter_to_json(wanted)
    same = json.dumps([order.model_dump(mode="json"), given], sort_keys=True)
    paused = {one.name for one in backend.operator.pauses() if one.scope is Scope.QUEUE}
    handler = operate.using(
        unique_key=f"{TYPE}-{hashlib.sha256(same.encode()).hexdigest()}",
        queue=QUEUE if operate.options.queue in paused else operate.options.queue,
    )
    receipt: Receipt = handler.enqueue(Operation(order=order, wanted=given, asked_at=backend.now()).sealed())
    return receipt


@job(TYPE, priority=1, max_retries=5, timeout=LONGEST, editable=False)
def operate(operation: Operation, ctx: JobContext) -> dict[str, Any]:
    """Carry an order out, as long as its user has the permission."""
    if not operation.is_genuine:
        raise Cancel(gettext("This order was not given in an admin with this SECRET_KEY."))
    order, meant = operation.order, operation.meant
    message = gettext("%(said)s (by job %(id)s)") % {"said": VERBS[order.verb].log_message(order), "id": ctx.job_id}
    account = _so_far(ctx, meant, order, message)
    while ids := backends.current().jobs.find_ids(meant, BATCH, account.last):
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
    """Count the jobs, or continue with the progress of an earlier attempt.

    Its last report may be missing; the log has an entry for each job that was changed.
    """
    if ctx.fence == 1:
        return Account(of=_count(meant))
    done, report = logged(order.user_id, message), get(ctx.job_id).progress
    if not isinstance(report, dict) or "last" not in report:
        return Account(of=done + _count(meant), done=done)
    kept = {one["reason"]: [one["count"], one["ids"]] for one in report["reasons"]}
    return Account(report["of"], max(done, report["done"]), report["left_alone"], report["last"], kept)


def _count(meant: Filter) -> int:
    """Count the matching jobs. A match in a redacted value is not counted: even a number could give secrets away."""
    backend, total, last = backends.current(), 0, None
    if not is_checked(meant):
        return backend.jobs.count(meant)
    while ids := backend.jobs.find_ids(meant, BATCH, last):
        total, last = total + len(shown(meant, ids)), ids[-1]
    return total


def _require_permission(order: Order, account: Account) -> None:
    """Cancel the order if its user is gone or has lost the permission. Called before each batch."""
    user, name = order.user(), {"name": order.user_name}
    if user is None or not user.is_active:
        why = gettext("The user %(name)s was deleted or is no longer active.") % name
    elif order.of_staff and not getattr(user, "is_staff", False):
        why = gettext("The user %(name)s no longer has access to the admin.") % name
    elif not user.has_perms(["jobqueue.view_job", VERBS[order.verb].permission]):
        why = gettext("The user %(name)s no longer has the permission.") % name
    else:
        return
    far = gettext("Of %(of)d jobs, %(done)d were already changed and %(left_alone)d left alone.")
    raise Cancel(f"{why} {far % {'of': account.of, 'done': account.done, 'left_alone': account.left_alone}}")


def _spared(found: Job, operation: Operation, meant: Filter, own_id: str) -> str | None:
    if found.pk == own_id:
        return gettext("is the job that carries out this order")
    if _ended_since(found.completed_at, operation.asked_at):
        return gettext("has ended since the order was given")
    return own_kind(found, meant)


def _ended_since(completed_at: datetime | None, asked_at: datetime) -> bool:
    return completed_at is not None and completed_at >= asked_at


def own_kind(found: Job, wanted: Filter) -> str | None:
    """Return why a job that carries out an order is left alone, unless the filter names its type or id.

    A retry would repeat the old order.
    """
    if found.type != TYPE or TYPE in wanted.types or found.pk in wanted.ids:
        return None
    return gettext("carries out an operator's order; filter by its type to include it")
