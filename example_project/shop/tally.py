"""The totals of a day: what was accepted against what the table holds now. Read-only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.db.models import Count, QuerySet

from example_project.capture.models import Conversation, Learning, Message, Upload
from example_project.shop.models import Order, StockMovement
from example_project.shop.trade import Day
from jobqueue import JobStatus
from jobqueue.models import Attempt, Job
from jobqueue.records import Ending

#: Databases limit the number of values in a statement.
_AT_ONCE = 500


@dataclass(frozen=True)
class Tally:
    """The numbers of one day. ``accepted`` counts what the shop was told; everything else is read from the database."""

    accepted: int
    follow_ups: int
    follow_ups_expected: int
    statuses: dict[JobStatus, int]
    missing: int
    survivors: int
    bookings: int
    orders_booked: int
    bookings_expected: int
    learnings: int
    uploads: int
    transactions: int
    private_messages: int
    endings: dict[Ending, int]
    cleared: int

    @property
    def total(self) -> int:
        """Return how many jobs there must be."""
        return self.accepted + self.follow_ups_expected

    @property
    def completed(self) -> int:
        """Return how many jobs were completed."""
        return self.statuses[JobStatus.COMPLETED]

    @property
    def dead(self) -> int:
        """Return how many jobs are dead letters."""
        return self.statuses[JobStatus.DEAD_LETTER]

    @property
    def lost(self) -> int:
        """Return how many jobs are neither completed nor dead letters."""
        return self.total - self.completed - self.dead

    def mistakes(self) -> Iterator[str]:
        """Yield a sentence for each total that doesn't match."""
        if self.missing:
            yield f"{self.missing} accepted jobs are no longer in the table."
        for status in (JobStatus.QUEUED, JobStatus.IN_PROGRESS, JobStatus.FAILED):
            if self.statuses[status]:
                yield f"{self.statuses[status]} jobs are {status.value}: neither completed nor dead letters."
        if self.follow_ups != self.follow_ups_expected:
            yield f"There are {self.follow_ups} follow-up jobs, but there should be {self.follow_ups_expected}."
        if self.lost:
            yield f"{self.total} accepted jobs are not {self.completed} completed ones and {self.dead} dead letters."
        if self.survivors:
            yield f"{self.survivors} jobs or orders outlived the rollback of their transaction."
        if (self.bookings, self.orders_booked) != (self.bookings_expected, self.bookings_expected):
            yield (
                f"There are {self.bookings} bookings for {self.orders_booked} orders, but there should be one for each "
                f"of {self.bookings_expected}."
            )
        if (self.uploads, self.transactions) != (self.learnings, self.learnings):
            yield f"{self.learnings} learnings have {self.uploads} uploads with {self.transactions} transactions."
        if self.private_messages:
            yield f"{self.private_messages} messages hold private data."


def jobs_of(run: str) -> QuerySet[Job]:
    """Return the jobs of a day."""
    return Job.objects.filter(tenant=run)


def statuses_of(run: str) -> dict[JobStatus, int]:
    """Count the jobs of a day by status."""
    counted = dict(jobs_of(run).values_list("status").annotate(Count("id")).order_by())
    return {status: counted.get(status.value, 0) for status in JobStatus}


def take(day: Day) -> Tally:
    """Return the totals of a day."""
    jobs = jobs_of(day.run)
    completed = jobs.filter(status=JobStatus.COMPLETED.value)
    imports = completed.filter(type="import_catalogue").values_list("result", flat=True)
    history = Attempt.objects.filter(job__tenant=day.run)
    counted = dict(history.values_list("ending").annotate(Count("id")).order_by())
    bookings = StockMovement.objects.filter(order__reference__startswith=f"{day.run}-")
    learnings = Learning.objects.filter(conversation__source=day.run)
    uploads = Upload.objects.filter(learning__in=learnings, status=Upload.Status.CONFIRMED)
    return Tally(
        accepted=len(day.accepted),
        follow_ups=jobs.filter(parent_id__isnull=False).count(),
        follow_ups_expected=(
            completed.filter(type__in=["charge_card", "sanitize_ai_validation"]).count()
            + sum(int(images or 0) for images in imports)
            + learnings.count()
        ),
        statuses=statuses_of(day.run),
        missing=len(day.accepted) - _present(day.accepted),
        survivors=(
            _present(day.abandoned_jobs)
            + Order.objects.filter(reference__in=day.abandoned_orders).count()
            + Conversation.objects.filter(pk__in=day.abandoned_conversations).count()
        ),
        bookings=bookings.count(),
        orders_booked=bookings.values("order").distinct().count(),
        bookings_expected=completed.filter(type="book_stock").count(),
        learnings=learnings.count(),
        uploads=uploads.count(),
        transactions=uploads.values("chain_tx_hash").distinct().count(),
        private_messages=Message.objects.filter(conversation__source=day.run, content__regex="@example|4111").count(),
        endings={ending: counted.get(ending.value, 0) for ending in Ending},
        cleared=completed.filter(crash_count__gt=0).count(),
    )


def _present(ids: Iterable[str]) -> int:
    listed = list(ids)
    parts = [listed[start : start + _AT_ONCE] for start in range(0, len(listed), _AT_ONCE)]
    return sum(Job.objects.filter(pk__in=part).count() for part in parts)
