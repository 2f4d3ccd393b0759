"""The orders of operators: what is to be done to which jobs, and how far it is."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobqueue.models.fields import (
    CountField,
    DataField,
    FlagField,
    KeyField,
    MomentField,
    NameField,
    NumberKey,
    WordsField,
)


class OrderState(models.TextChoices):
    """The states of an order, in order of time."""

    ASKED = "asked", _("not confirmed yet")
    WAITING = "waiting", _("waiting")
    RUNNING = "running", _("running")
    DONE = "done", _("done")
    STOPPED = "stopped", _("stopped")


#: An order in one of these states may still change jobs.
OPEN = (OrderState.WAITING, OrderState.RUNNING)


class Order(models.Model):
    """An order for jobs whose ids were collected before it was confirmed.

    ``instruction`` is the JSON of ``orders.Instruction``, ``wanted`` that of the filter. ``account`` holds what was
    found by status, and the first reasons why jobs were left alone. ``steps`` grows with each change of the collection.
    """

    id = KeyField(_("id"), primary_key=True, max_length=64)
    state = NameField(_("state"), max_length=16, choices=OrderState.choices)
    verb = NameField(_("verb"), max_length=16)
    user_id = NameField(_("user key"), max_length=255)
    title = NameField(_("title"), max_length=200, blank=True)
    instruction = DataField(_("instruction"))
    wanted = DataField(_("filter"), default=dict)
    is_selection = FlagField(_("is a selection"), default=False)
    back = WordsField(_("address to return to"), blank=True)
    account = DataField(_("account"), default=dict)
    steps = CountField(_("steps"), default=0)
    total = CountField(_("total"), default=0)
    done = CountField(_("changed"), default=0)
    left_alone = CountField(_("left alone"), default=0)
    seal = WordsField(_("seal"), blank=True)
    job_id = NameField(_("job"), max_length=64, null=True)
    asked_at = MomentField(_("asked at"))
    counted_at = MomentField(_("counted at"), null=True)
    given_at = MomentField(_("given at"), null=True)
    starts_at = MomentField(_("starts at"), null=True)
    began_at = MomentField(_("began at"), null=True)
    ended_at = MomentField(_("ended at"), null=True)
    why_ended = WordsField(_("why it was stopped"), blank=True)

    class Meta:
        db_table = "job_queue_order"
        verbose_name = _("order")
        verbose_name_plural = _("orders")
        default_permissions = ()
        indexes = [
            models.Index(fields=["state", "asked_at"], name="job_queue_order_state"),
            models.Index(fields=["job_id"], condition=models.Q(job_id__isnull=False), name="job_queue_order_by_job"),
        ]

    def __str__(self) -> str:
        return str(self.title or self.id)


class OrderPart(models.Model):
    """Some of the ids of an order that is not carried out yet; ``first`` is the place of the first one."""

    id = NumberKey(primary_key=True)
    # No constraints in the database, as for the history of a job: rows are deleted in parts.
    order = models.ForeignKey(Order, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False)
    first = CountField(_("first"))
    ids = DataField(_("ids"))

    class Meta:
        db_table = "job_queue_order_part"
        verbose_name = _("part of an order")
        verbose_name_plural = _("parts of orders")
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["order", "first"], name="job_queue_order_part_place")]

    def __str__(self) -> str:
        return f"{self.order_id} from {self.first}"


class OrderedJob(models.Model):
    """A job that an order changed. A purge leaves none: its jobs are gone."""

    id = NumberKey(primary_key=True)
    order = models.ForeignKey(Order, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False)
    job_id = NameField(_("job"), max_length=64)

    class Meta:
        db_table = "job_queue_order_job"
        verbose_name = _("changed job")
        verbose_name_plural = _("changed jobs")
        default_permissions = ()
        indexes = [
            models.Index(fields=["order", "id"], name="job_queue_order_jobs"),
            models.Index(fields=["job_id", "id"], name="job_queue_orders_of_job"),
        ]

    def __str__(self) -> str:
        return f"{self.order_id}: {self.job_id}"
