"""The job table. Its columns are an interface that other programs read and write with plain SQL."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from jobqueue.durations import LONGEST_DURATION
from jobqueue.models.fields import (
    AmountField,
    CountField,
    DataField,
    FenceField,
    FlagField,
    KeyField,
    MomentField,
    NameField,
    SmallCountField,
    WordsField,
)
from jobqueue.models.search_index import SearchIndex
from jobqueue.states import ACTIVE, JobStatus

STATUS_LABELS = [
    (JobStatus.QUEUED.value, _("queued")),
    (JobStatus.IN_PROGRESS.value, _("in progress")),
    (JobStatus.COMPLETED.value, _("completed")),
    # Cancelled, expired or a duplicate: ended on purpose, in contrast to an attempt that failed.
    (JobStatus.FAILED.value, pgettext_lazy("status", "cancelled")),
    (JobStatus.DEAD_LETTER.value, pgettext_lazy("status", "dead letter")),
]
_STATUSES = [status.value for status in JobStatus]
MOST_COUNTED = 1_000_000_000
#: The columns of the indexes that searches walk along.
_SEARCHED = [
    *("id", "queue", "type", "tenant", "error_fingerprint", "end_reason"),
    *("completed_at", "created_at", "priority", "attempts"),
]
_QUEUED = Q(status=JobStatus.QUEUED.value)
#: Jobs that have a place in a lane.
_IN_LANE = Q(lane__gt="", lane_position__isnull=False)
#: Jobs that were due when they were last written, and those that were not.
_WAS_DUE, _WAS_LATER = Q(scheduled_at__lte=F("updated_at")), Q(scheduled_at__gt=F("updated_at"))


class Job(models.Model):
    """A job. Only backends may write it, so that each write of a claim's holder carries its fence. Anyone may read.

    Columns that other programs need not know have a database default or may be NULL.
    """

    id = KeyField(_("id"), primary_key=True, max_length=64)
    type = NameField(_("type"), max_length=100)
    status = NameField(_("status"), max_length=16, choices=STATUS_LABELS, db_default=JobStatus.QUEUED.value)
    priority = SmallCountField(_("priority"), db_default=5, help_text=_("1 runs first, 10 last."))
    scheduled_at = MomentField(_("scheduled at"))
    lease_owner = NameField(_("lease owner"), max_length=255, null=True)
    lease_until = MomentField(_("lease until"), null=True)
    payload = DataField(_("payload"))
    idempotency_key = NameField(_("idempotency key"), max_length=255, null=True)
    attempts = CountField(_("attempts"), db_default=0)
    max_retries = CountField(_("max retries"), db_default=3, help_text=_("The total number of attempts."))
    error = WordsField(_("error"), null=True)
    created_at = MomentField(_("created at"))
    updated_at = MomentField(_("updated at"))
    started_at = MomentField(_("started at"), null=True)
    completed_at = MomentField(_("completed at"), null=True)
    result = DataField(_("result"), null=True)

    queue = NameField(_("queue"), max_length=100, db_default="default")
    fence = FenceField(
        _("fence"), db_default=0, help_text=_("The number of the claim. It grows with each claim and never decreases.")
    )
    unique_key = NameField(_("unique key"), max_length=255, null=True)
    tenant = NameField(_("tenant"), max_length=100, null=True)
    workspace = NameField(_("workspace"), max_length=100, null=True)
    parallel = FlagField(_("parallel"), db_default=True)
    concurrency_key = NameField(_("concurrency key"), max_length=255, null=True)
    fair_key = NameField(
        _("fair key"), max_length=255, null=True, help_text=_("The value by which a fair queue takes turns.")
    )
    parent_id = NameField(_("parent"), max_length=64, null=True)
    schedule_id = NameField(_("schedule"), max_length=64, null=True)
    slot_at = MomentField(_("slot time"), null=True)
    payload_version = CountField(_("payload version"), db_default=1)
    timeout = AmountField(_("timeout"), null=True, help_text=_("Seconds. If empty, the limit of the job type applies."))
    expires_at = MomentField(_("expires at"), null=True)
    progress = DataField(_("progress"), null=True)
    cancel_requested_at = MomentField(_("cancel requested at"), null=True)
    crash_count = CountField(_("crash count"), db_default=0)
    end_reason = NameField(_("end reason"), max_length=100, null=True)
    error_fingerprint = NameField(_("error fingerprint"), max_length=64, null=True)
    context = DataField(_("context"), null=True)
    completed_by = NameField(_("completed by"), max_length=255, null=True, help_text=_("The worker that completed it."))
    exact_priority = SmallCountField(
        _("exact priority"), null=True, help_text=_("The priority of django.tasks, from -100 to 100.")
    )
    lane = NameField(_("lane"), max_length=255, null=True)
    lane_position = FenceField(_("position in its lane"), null=True)

    class Meta:
        db_table = "job_queue"
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        # Only backends add, change and delete rows, so these permissions don't exist.
        default_permissions = ("view",)
        permissions = [
            ("retry_job", _("Can retry jobs")),
            ("cancel_job", _("Can cancel jobs")),
            ("purge_job", _("Can purge jobs")),
            ("edit_job", _("Can retry jobs with another payload")),
            ("run_job", _("Can run jobs now")),
            ("reschedule_job", _("Can reschedule jobs")),
            ("prioritise_job", _("Can change the priority of jobs")),
            ("move_job", _("Can move jobs to another queue")),
            ("enqueue_job", _("Can enqueue jobs")),
        ]
        constraints = [
            # Not IN: SQLite would build a temporary table of its values for every row that it writes.
            models.CheckConstraint(
                condition=reduce(or_, (Q(status=status) for status in _STATUSES)), name="job_queue_status"
            ),
            models.CheckConstraint(condition=Q(priority__gte=1, priority__lte=10), name="job_queue_priority"),
            models.CheckConstraint(
                condition=Q(timeout__gt=0, timeout__lte=LONGEST_DURATION.total_seconds()), name="job_queue_timeout"
            ),
            # The upper limits leave room to increment, and keep SQLite, where text is greater than any number, from
            # storing text.
            models.CheckConstraint(
                condition=Q(attempts__lte=MOST_COUNTED, max_retries__lte=MOST_COUNTED, fence__lte=MOST_COUNTED),
                name="job_queue_counts",
            ),
            # Partial, so that jobs without a key have no index entry. NULLs never collide in either form.
            models.UniqueConstraint(
                fields=["idempotency_key"],
                condition=Q(idempotency_key__isnull=False),
                name="job_queue_idempotency_key",
            ),
            models.UniqueConstraint(
                fields=["unique_key"],
                condition=Q(unique_key__isnull=False, status__in=sorted(ACTIVE)),
                name="job_queue_unique_key",
            ),
            models.UniqueConstraint(
                fields=["schedule_id", "slot_at"], condition=Q(schedule_id__isnull=False), name="job_queue_slot"
            ),
        ]
        indexes = [
            # For claims: one range per priority. Only a query with `priority > 0` can use it, so that a planner can't
            # choose it for
            # a rare type and walk a million other rows (see backends/postgresql.py).
            models.Index(
                fields=["priority", "scheduled_at", "id"], condition=_QUEUED & Q(priority__gt=0), name="job_queue_ready"
            ),
            # For claims behind many other jobs: one range per queue, type and priority.
            models.Index(
                fields=["queue", "type", "priority", "scheduled_at", "id"],
                condition=_QUEUED,
                name="job_queue_ready_type",
            ),
            # For claims under limits with keys: a scan from key to key finds the free ones behind a full one.
            models.Index(
                fields=["queue", "type", "priority", "concurrency_key", "scheduled_at", "id"],
                condition=_QUEUED & Q(concurrency_key__isnull=False),
                name="job_queue_ready_key",
            ),
            # For claims in ordered queues: the jobs of each lane that are due, in order.
            models.Index(
                fields=["queue", "lane", "lane_position", "id"],
                condition=_QUEUED & _IN_LANE & _WAS_DUE,
                name="job_queue_lane_due",
            ),
            # The jobs of lanes that wait, for example for a retry: by time, and in the order of their lane.
            models.Index(
                fields=["queue", "scheduled_at", "id"],
                condition=_QUEUED & _IN_LANE & _WAS_LATER,
                name="job_queue_lane_later",
            ),
            models.Index(
                fields=["queue", "lane", "lane_position", "id"],
                condition=_QUEUED & _IN_LANE & _WAS_LATER,
                name="job_queue_lane_waiting",
            ),
            # Dead letters, at which a strict lane stops.
            models.Index(
                fields=["queue", "lane", "lane_position", "id"],
                condition=Q(status=JobStatus.DEAD_LETTER.value) & _IN_LANE,
                name="job_queue_lane_dead",
            ),
            # For claims from fair queues: a scan from turn to turn, and the first jobs of each.
            models.Index(
                fields=["queue", "type", "priority", "fair_key", "scheduled_at", "id"],
                condition=_QUEUED & Q(fair_key__isnull=False),
                name="job_queue_ready_turn",
            ),
            models.Index(
                fields=["lease_until"], condition=Q(status=JobStatus.IN_PROGRESS.value), name="job_queue_leased"
            ),
            # Dead letters: few rows among millions of completed ones.
            models.Index(
                fields=["queue", "type", "id"],
                condition=Q(status=JobStatus.DEAD_LETTER.value),
                name="job_queue_dead",
            ),
            # Searches of dead letters, the newest first. With the columns of most filters, so that only matches are
            # read. On Postgres none of them may be long: it refuses entries of more than 2,704 bytes.
            SearchIndex(fields=_SEARCHED, condition=Q(status=JobStatus.DEAD_LETTER.value), name="job_queue_dead_order"),
            # Dead letters by error and time.
            models.Index(
                fields=["error_fingerprint", "completed_at", "id"],
                condition=Q(status=JobStatus.DEAD_LETTER.value),
                name="job_queue_dead_error",
            ),
            # Failed jobs: just as few.
            models.Index(
                fields=["queue", "type", "id"],
                condition=Q(status=JobStatus.FAILED.value),
                name="job_queue_failed",
            ),
            SearchIndex(fields=_SEARCHED, condition=Q(status=JobStatus.FAILED.value), name="job_queue_failed_order"),
            models.Index(
                fields=["error_fingerprint", "completed_at", "id"],
                condition=Q(status=JobStatus.FAILED.value),
                name="job_queue_failed_error",
            ),
            models.Index(
                fields=["expires_at"], condition=_QUEUED & Q(expires_at__isnull=False), name="job_queue_expiring"
            ),
            # Follow-up jobs. Jobs without a parent have no entry.
            models.Index(fields=["parent_id", "id"], condition=Q(parent_id__isnull=False), name="job_queue_children"),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.id}"


class DeadLetters(models.Manager["DeadLetter"]):
    """The manager of dead letters."""

    def get_queryset(self) -> models.QuerySet[DeadLetter]:
        return super().get_queryset().filter(status=JobStatus.DEAD_LETTER.value)


class DeadLetter(Job):
    """A job that was given up and waits for an operator. Uses the permissions of Job."""

    objects: ClassVar[models.Manager[DeadLetter]] = DeadLetters()

    class Meta:
        proxy = True
        default_permissions = ()
        verbose_name = _("dead letter")
        verbose_name_plural = _("dead letters")
