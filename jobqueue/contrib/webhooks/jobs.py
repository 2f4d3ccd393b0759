"""The job ``webhook_dispatch``, which delivers an event to an endpoint, signed, and logs the result."""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from typing import Annotated, Any, NoReturn

from django.db import router, transaction
from pydantic import BaseModel, ConfigDict, StringConstraints

from jobqueue import conf
from jobqueue.api import job
from jobqueue.clock import SYSTEM, from_text, to_text
from jobqueue.contrib.webhooks import signing
from jobqueue.contrib.webhooks.addresses import AddressRefused, target_of
from jobqueue.contrib.webhooks.checks import TIMEOUT
from jobqueue.contrib.webhooks.models import Delivery, Endpoint
from jobqueue.contrib.webhooks.sending import Answer, Unreachable, post
from jobqueue.contrib.webhooks.verdicts import DeliveryVerdict, delay_of, reason_of, verdict_of
from jobqueue.errors import Cancel, Discard, Retry
from jobqueue.handlers.context import JobContext
from jobqueue.ids import portable
from jobqueue.policy.retry import Exponential
from jobqueue.version import __version__

logger = logging.getLogger("jobqueue")


class WebhookDispatch(BaseModel):
    """An event for an endpoint. ``data`` is any JSON."""

    model_config = ConfigDict(extra="forbid")

    endpoint_id: int
    event: Annotated[str, StringConstraints(pattern=r"^[\w.:/-]{1,100}$")]
    data: Any = None


@job(queue="webhooks", max_retries=10, timeout=TIMEOUT, retry=Exponential(base=1, cap=3600), editable=False)
def webhook_dispatch(payload: WebhookDispatch, ctx: JobContext) -> dict[str, object]:
    """Post an event as ``{"type": …, "data": …}``. The job's id is the delivery id, so receivers can spot repetitions.

    Temporary failures are retried, after the time that the receiver asks for. Permanent ones make a dead letter. If the
    endpoint is disabled or was deleted, the job is cancelled.
    """
    endpoint = Endpoint.objects.filter(pk=payload.endpoint_id).first()
    if endpoint is None:
        raise Cancel("The endpoint no longer exists.")
    if not endpoint.enabled:
        raise Cancel("The endpoint is disabled. Once it is enabled again, retry the job.")
    entry = Delivery(
        endpoint=endpoint,
        delivery_id=portable(ctx.job_id),
        event=payload.event,
        attempt=ctx.attempt,
        sent_at=SYSTEM.now(),
    )
    told = _result_of(entry, payload)
    verdict, reason = _verdict_on(told)
    _record(entry, told, reason, gone=verdict is DeliveryVerdict.GONE)
    if verdict is not DeliveryVerdict.DELIVERED:
        _fail(verdict, reason, told)
    return {"delivery_id": entry.delivery_id, "delivered_at": to_text(entry.sent_at), "status_code": entry.status_code}


def _result_of(entry: Delivery, payload: WebhookDispatch) -> Answer | Exception:
    """Send the event, set the entry's duration, and return the answer or the error."""
    began = SYSTEM.monotonic()
    try:
        return _send(entry.endpoint, payload, entry.delivery_id)
    except (AddressRefused, Unreachable, signing.InvalidSecret) as error:
        return error
    finally:
        entry.duration = SYSTEM.monotonic() - began


def _send(endpoint: Endpoint, payload: WebhookDispatch, delivery_id: str) -> Answer:
    body = json.dumps({"type": payload.event, "data": payload.data}, separators=(",", ":"), sort_keys=True).encode()
    now = SYSTEM.now()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"django-jobqueue/{__version__}",
        **signing.headers(endpoint.secrets(now), delivery_id, int(now.timestamp()), body),
    }
    return post(
        target_of(endpoint.url),
        headers,
        body,
        networks=conf.get("WEBHOOK_NETWORKS"),
        timeout=conf.get("WEBHOOK_TIMEOUT"),
        most=conf.get("WEBHOOK_ANSWER_BYTES"),
    )


def _verdict_on(told: Answer | Exception) -> tuple[DeliveryVerdict, str]:
    if isinstance(told, Answer):
        verdict = verdict_of(told.status)
        return verdict, "" if verdict is DeliveryVerdict.DELIVERED else reason_of(told.status)
    return DeliveryVerdict.NEVER if isinstance(told, AddressRefused) else DeliveryVerdict.AGAIN, str(told)


def _record(entry: Delivery, told: Answer | Exception, reason: str, *, gone: bool) -> None:
    """Store the log entry, and update the endpoint's counters."""
    endpoint, entry.reason = entry.endpoint, reason[:500]
    entry.outcome = Delivery.FAILED if reason else Delivery.DELIVERED
    if isinstance(told, Answer):
        entry.status_code, entry.answer = told.status, told.text
    with transaction.atomic(using=router.db_for_write(Delivery)):
        entry.save(force_insert=True)
        if entry.outcome == Delivery.DELIVERED:
            endpoint.succeeded(entry.sent_at)
        elif endpoint.failed(entry.sent_at, entry.reason, gone=gone):
            logger.warning("Webhook endpoint %s is disabled: %s", endpoint.pk, entry.reason)
        Delivery.prune(entry.sent_at)


def _fail(verdict: DeliveryVerdict, reason: str, told: Answer | Exception) -> NoReturn:
    if verdict is DeliveryVerdict.AGAIN:
        raise Retry(delay_of(told.retry_after) if isinstance(told, Answer) else None, reason)
    raise Discard(reason)


@webhook_dispatch.reconciler()
def compare_delivered(payload: WebhookDispatch, result: Any) -> str | None:
    """Return what differs if the log lacks the delivery in the result, unless the log was pruned since."""
    delivery_id, delivered_at = result["delivery_id"], from_text(result["delivered_at"])
    forgotten = timedelta(seconds=conf.get("WEBHOOK_LOG_FOR"))
    if SYSTEM.now() - delivered_at >= forgotten or not Endpoint.objects.filter(pk=payload.endpoint_id).exists():
        return None
    known = Delivery.objects.filter(delivery_id=delivery_id, outcome=Delivery.DELIVERED).exists()
    return None if known else "The log of deliveries has no successful delivery of this event."
