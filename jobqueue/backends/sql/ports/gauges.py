"""The gauges of queues with a capacity, in a table with a row for each."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db.models import F

from jobqueue.backends.ports.gauges import Gauges
from jobqueue.backends.sql.session import Session
from jobqueue.models import Gauge as GaugeRow
from jobqueue.records.gauge import Gauge

#: Counts up to a limit: a range of job_queue_ready_type, in its order, so that no planner gathers the whole range.
_COUNT = (
    "SELECT count(*) FROM (SELECT id FROM job_queue WHERE status = 'queued' AND queue = %s "
    "ORDER BY queue, type, priority, scheduled_at, id LIMIT %s) AS counted"
)
_COLUMNS = ("queue", "queued", "sampled_at", "shed", "shed_at")


class SqlGauges(Gauges):
    """Keeps a row for each queue. Only samples and sheds write it, in short transactions of their own."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def read(self, queue: str) -> Gauge:
        with self._session.reading():
            row = self._session.rows(GaugeRow).filter(pk=queue).values_list(*_COLUMNS).first()
            return Gauge(queue) if row is None else _gauge(row, self._session.now())

    def all(self) -> list[Gauge]:
        with self._session.reading():
            now = self._session.now()
            rows = self._session.rows(GaugeRow).order_by("queue").values_list(*_COLUMNS)
            return [_gauge(row, now) for row in rows]

    def sample(self, capacities: Mapping[str, int], every: timedelta) -> None:
        with self._session.reading():
            now = self._session.now()
            recent = self._session.rows(GaugeRow).filter(sampled_at__range=(now - every, now + every))
            known = set(recent.values_list("pk", flat=True))
            counted = {name: self._count(name, most) for name, most in capacities.items() if name not in known}
        for queue, number in counted.items():
            self._session.transact(lambda queue=queue, number=number: self._store(queue, number))  # type: ignore[misc]

    def _count(self, queue: str, most: int) -> int:
        with self._session.connection.cursor() as cursor:
            cursor.execute(_COUNT, (queue, most))
            ((number,),) = cursor.fetchall()
        return int(number)

    def _store(self, queue: str, number: int) -> None:
        rows, now = self._session.rows(GaugeRow), self._session.now()
        if not rows.filter(pk=queue).update(queued=number, sampled_at=now):
            rows.bulk_create([GaugeRow(queue=queue, queued=number, sampled_at=now, shed=0)], ignore_conflicts=True)

    def add_shed(self, queue: str, number: int) -> None:
        def work() -> None:
            rows, now = self._session.rows(GaugeRow), self._session.now()
            if not rows.filter(pk=queue).update(shed=F("shed") + number, shed_at=now):
                rows.bulk_create([GaugeRow(queue=queue, shed=0)], ignore_conflicts=True)
                rows.filter(pk=queue).update(shed=F("shed") + number, shed_at=now)

        self._session.transact(work)


def _gauge(row: tuple[str, int | None, datetime | None, int, datetime | None], now: datetime) -> Gauge:
    queue, queued, sampled_at, shed, shed_at = row
    # A sample of the future was stored while the clock was wrong, and is as old as it is early.
    age = None if sampled_at is None or queued is None else abs(now - sampled_at)
    return Gauge(queue, queued or 0, age, shed, shed_at)
