"""The channel that calls a function of the project."""

from __future__ import annotations

from django.utils.module_loading import import_string

from jobqueue.channels.news import AlertNews, DeliveryAttempt
from jobqueue.policy.alerts.settings import Channel


def send(channel: Channel, news: AlertNews, _attempt: DeliveryAttempt) -> str:
    """Call the function with the kind of news and the alerts as dicts. What it raises makes the job run again."""
    function = import_string(channel.options["function"])
    answer = function(news.kind.value, [dict(one.given) for one in news.alerts])
    return "called" if answer is None else str(answer)[:500]
