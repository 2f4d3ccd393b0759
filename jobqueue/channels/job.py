"""The job that delivers news of alerts to one channel.

A channel that fails is tried again for an hour. No alert is about this job, whatever becomes of it.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from jobqueue import signals
from jobqueue.alert_settings import DELIVERY_QUEUE, DELIVERY_TYPE, alert_settings
from jobqueue.alerts.messages import SIGNAL
from jobqueue.api import job
from jobqueue.channels.news import AlertNews, DeliveryAttempt, read
from jobqueue.channels.senders import send
from jobqueue.errors import Cancel
from jobqueue.handlers.context import JobContext
from jobqueue.policy.alerts.settings import Channel
from jobqueue.policy.nearest import did_you_mean
from jobqueue.policy.retry import Exponential
from jobqueue.records.alert import News


class Delivery(BaseModel):
    """News of some alerts for a channel. It has names and ids of jobs, and no payload."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    channel: str
    news: News
    alerts: list[dict[str, Any]]


@job(
    DELIVERY_TYPE,
    queue=DELIVERY_QUEUE,
    priority=1,
    max_retries=10,
    timeout=120,
    retry=Exponential(base=5, cap=900),
    editable=False,
)
def deliver(delivery: Delivery, ctx: JobContext) -> dict[str, str]:
    """Deliver the news, and return what the channel answered."""
    news = read(delivery.news, delivery.alerts, alert_settings().site)
    if delivery.channel == SIGNAL:
        return {"answer": _send_signals(news)}
    return {"answer": send(_channel(delivery.channel), news, DeliveryAttempt(ctx.job_id, ctx.attempt))}


def _channel(name: str) -> Channel:
    channels = {one.name: one for one in alert_settings().channels}
    if name not in channels:
        hint = did_you_mean(name, channels) if channels else "It has no channels."
        raise Cancel(f"JOBQUEUE['ALERTS'] has no channel {name!r}. {hint}")
    return channels[name]


def _send_signals(news: AlertNews) -> str:
    signal = signals.alert_resolved if news.kind is News.RESOLVED else signals.alert_fired
    answers = [
        answer
        for one in news.alerts
        for answer in signal.send_robust(sender=None, alert=one.given, news=news.kind.value)
    ]
    failed = sum(isinstance(answer, Exception) for _receiver, answer in answers)
    return f"{len(answers)} calls of receivers, {failed} of which failed"
