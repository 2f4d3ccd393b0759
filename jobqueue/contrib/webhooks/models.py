"""The endpoints of webhooks, and the log of deliveries."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Value
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy as _

from jobqueue import conf
from jobqueue.clock import SYSTEM
from jobqueue.contrib.webhooks.addresses import LONGEST_URL, AddressRefused, target_of
from jobqueue.contrib.webhooks.signing import new_secret
from jobqueue.models.fields import MomentField


def check_url(url: str) -> None:
    """Validate a URL."""
    try:
        target_of(url)
    except AddressRefused as error:
        raise ValidationError(str(error)) from error


def now() -> datetime:
    """Return the current moment."""
    return SYSTEM.now()


class Endpoint(models.Model):
    """A receiver: its URL, its secret, and its recent failures."""

    # Unique if given. NULL means no name, so any number of endpoints may have none.
    name = models.CharField(_("name"), max_length=100, null=True, blank=True)
    url = models.CharField(_("URL"), max_length=LONGEST_URL, validators=[check_url])
    secret = models.CharField(_("secret"), max_length=500, default=new_secret)
    previous_secret = models.CharField(_("previous secret"), max_length=500, blank=True, default="")
    previous_until = MomentField(_("previous secret is used until"), null=True, blank=True)
    enabled = models.BooleanField(_("enabled"), default=True)
    disabled_reason = models.CharField(_("why disabled"), max_length=500, blank=True, default="")
    failures = models.PositiveIntegerField(_("failures in a row"), default=0)
    failing_since = MomentField(_("failing since"), null=True, blank=True)
    delivered_at = MomentField(_("last delivered at"), null=True, blank=True)
    created_at = MomentField(_("created at"), default=now, editable=False)

    objects: ClassVar[models.Manager[Endpoint]] = models.Manager()

    class Meta:
        verbose_name = _("endpoint")
        verbose_name_plural = _("endpoints")
        constraints = [models.UniqueConstraint(fields=["name"], name="jobqueue_webhooks_name")]

    def __str__(self) -> str:
        return self.name or f"{self._meta.verbose_name} {self.pk}"

    def secrets(self, now: datetime) -> list[str]:
        """Return the secrets that sign now: the current one, and the previous one while receivers change over."""
        old = self.previous_secret if self.previous_until and self.previous_until > now else ""
        return [self.secret, *filter(None, [old])]

    def rotate(self, secret: str) -> None:
        """Set a new secret, without saving it.

        For the time of ``WEBHOOK_ROTATION``, the current secret signs as well.
        """
        self.previous_secret, self.secret = self.secret, secret
        self.previous_until = SYSTEM.now() + timedelta(seconds=conf.get("WEBHOOK_ROTATION"))

    def enable(self) -> None:
        """Enable the endpoint and reset its failures. Does not save."""
        self.enabled, self.disabled_reason, self.failures, self.failing_since = True, "", 0, None

    def disable(self, reason: str) -> None:
        """Disable the endpoint. Does not save."""
        self.enabled, self.disabled_reason = False, reason[:500]

    def succeeded(self, now: datetime) -> None:
        """Store a successful delivery."""
        self._row().update(failures=0, failing_since=None, delivered_at=now)

    def failed(self, now: datetime, reason: str, *, gone: bool) -> bool:
        """Store a failed delivery. Return whether the endpoint was disabled, because there were too many failures."""
        since = Coalesce("failing_since", Value(now, output_field=MomentField()))
        self._row().update(failures=F("failures") + 1, failing_since=since)
        fresh = self._row().filter(enabled=True).first()
        if fresh is None or not (gone or fresh._is_enough(now)):
            return False
        reason = reason if gone else f"{fresh.failures} failures in a row. {reason}"
        # If several workers get here at once, only one disables it.
        return bool(self._row().filter(enabled=True).update(enabled=False, disabled_reason=reason[:500]))

    def _row(self) -> models.QuerySet[Endpoint]:
        return Endpoint.objects.filter(pk=self.pk)

    def _is_enough(self, now: datetime) -> bool:
        """Return whether there were enough failures over enough time to disable the endpoint."""
        lasting = timedelta(seconds=conf.get("WEBHOOK_FAILING_FOR"))
        since = self.failing_since or now
        return self.failures >= conf.get("WEBHOOK_MAX_FAILURES") and now - since >= lasting


class Delivery(models.Model):
    """An attempt to deliver."""

    DELIVERED, FAILED = "delivered", "failed"
    OUTCOMES = [(DELIVERED, _("delivered")), (FAILED, _("failed"))]

    endpoint = models.ForeignKey(
        Endpoint, on_delete=models.CASCADE, related_name="deliveries", verbose_name=_("endpoint")
    )
    delivery_id = models.CharField(
        _("delivery id"), max_length=64, help_text=_("The job's id, the same for each attempt.")
    )
    event = models.CharField(_("event"), max_length=100)
    attempt = models.PositiveIntegerField(_("attempt"))
    outcome = models.CharField(_("outcome"), max_length=10, choices=OUTCOMES)
    status_code = models.PositiveSmallIntegerField(_("status code"), null=True)
    reason = models.CharField(_("reason"), max_length=500, blank=True)
    answer = models.TextField(_("answer"), blank=True)
    duration = models.FloatField(_("duration"), help_text=_("Seconds."))
    sent_at = MomentField(_("sent at"))

    objects: ClassVar[models.Manager[Delivery]] = models.Manager()

    class Meta:
        verbose_name = _("delivery")
        verbose_name_plural = _("deliveries")
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["delivery_id"], name="jobqueue_webhooks_of_job"),
            models.Index(fields=["sent_at"], name="jobqueue_webhooks_sent_at"),
        ]

    def __str__(self) -> str:
        return f"{self.delivery_id} #{self.attempt}: {self.outcome}"

    @classmethod
    def prune(cls, now: datetime, most: int = 100) -> None:
        """Delete some entries older than ``WEBHOOK_LOG_FOR``. Each new entry deletes a few old ones."""
        oldest = now - timedelta(seconds=conf.get("WEBHOOK_LOG_FOR"))
        old = cls.objects.filter(sent_at__lt=oldest).order_by("sent_at").values_list("pk", flat=True)
        if ids := list(old[:most]):
            cls.objects.filter(pk__in=ids).delete()
