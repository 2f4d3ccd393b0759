"""The senders: a function for each kind of channel, which returns what the channel answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jobqueue.channels import email, function, log, web
from jobqueue.channels.news import AlertNews, DeliveryAttempt
from jobqueue.policy.alerts.settings import Channel

Send = Callable[[Channel, AlertNews, DeliveryAttempt], str]

SENDERS: Mapping[str, Send] = {
    "log": log.send,
    "email": email.send,
    "webhook": web.send_signed,
    "slack": web.send_to_slack,
    "teams": web.send_to_teams,
    "pagerduty": web.send_to_pagerduty,
    "function": function.send,
}


def send(channel: Channel, news: AlertNews, attempt: DeliveryAttempt) -> str:
    """Send news to a channel. What it raises says whether another attempt may help."""
    return SENDERS[channel.via](channel, news, attempt)
