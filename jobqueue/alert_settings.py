"""The setting ``ALERTS``, read, and the names that belong to its deliveries."""

from __future__ import annotations

from django.conf import settings

from jobqueue import conf
from jobqueue.policy.alerts.settings import AlertSettings, read

#: The type and the queue of the jobs that deliver alerts. No alert is about them.
DELIVERY_TYPE = "jobqueue.deliver_alerts"
DELIVERY_QUEUE = "jobqueue.alerts"


def alert_settings() -> AlertSettings:
    """Return the setting. Raise ImproperlyConfigured if it is invalid."""
    return read(conf.get("ALERTS"))


def are_on() -> bool:
    """Return whether the project uses alerts. Otherwise nobody pays for them.

    An invalid setting counts as well: the system checks say what is wrong with it.
    """
    given = getattr(settings, "JOBQUEUE", {})
    return isinstance(given, dict) and bool(given.get("ALERTS"))
