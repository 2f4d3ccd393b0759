"""The channel that sends e-mail, through Django."""

from __future__ import annotations

from django.core.mail import EmailMessage

from jobqueue.channels.news import AlertNews, DeliveryAttempt
from jobqueue.policy.alerts.settings import Channel

#: Longer subjects are cut: mail programs show less.
LONGEST_SUBJECT = 200


def send(channel: Channel, news: AlertNews, _attempt: DeliveryAttempt) -> str:
    """Send one e-mail. What the mail server raises makes the job run again."""
    options = channel.options
    subject = " ".join(f"[jobqueue] {news.title}".split())
    message = EmailMessage(
        subject if len(subject) <= LONGEST_SUBJECT else f"{subject[: LONGEST_SUBJECT - 1]}…",
        f"{news.text()}\n",
        options.get("sender"),
        list(options["addresses"]),
    )
    count = message.send()
    return f"sent to {len(options['addresses'])} addresses" if count else "the e-mail backend sent nothing"
