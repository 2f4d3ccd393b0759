"""The channel that writes to the log of the worker."""

from __future__ import annotations

import logging

from jobqueue.channels.news import AlertNews, DeliveryAttempt
from jobqueue.policy.alerts.settings import Channel
from jobqueue.records.alert import News

logger = logging.getLogger("jobqueue")


def send(_channel: Channel, news: AlertNews, _attempt: DeliveryAttempt) -> str:
    """Write one line for each alert, at its level."""
    for one in news.alerts:
        level = logging.ERROR if one.facts.level == "error" else logging.WARNING
        level = logging.INFO if news.kind in (News.RESOLVED, News.TEST) else level
        logger.log(level, "Alert %s: %s", news.kind.value, one.facts.sentence, extra={"reason": one.key})
    return "written to the log"
