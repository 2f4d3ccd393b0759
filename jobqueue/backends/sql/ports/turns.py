"""The turns of fair queues, read for operators. No statement counts more than some thousand entries of an index."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

from django.db.models import Sum

from jobqueue.backends.ports.turns import MOST_COUNTED, MOST_TURNS, Turns
from jobqueue.backends.sql.claims.turns import KEPT, MOST_LINES
from jobqueue.backends.sql.filters import in_status
from jobqueue.backends.sql.ports.statements import turns as statements
from jobqueue.backends.sql.session import Session
from jobqueue.clock import to_text
from jobqueue.models import Turn
from jobqueue.policy.turns import NO_VALUE, Head, VirtualTimes, before
from jobqueue.records import JobRecord, ServedTurn, TurnPlace, TurnShare
from jobqueue.records.queue_options import QueueOptions
from jobqueue.states import JobStatus

_BEST, _WORST = 1, 10


class SqlTurns(Turns):
    """Reads the index of turns, and what claims stored."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def place_of(self, job: JobRecord, options: QueueOptions) -> TurnPlace:
        own, now = job.fair_key or NO_VALUE, to_text(self._session.now())
        first: dict[str, Head] = {}
        jobs, is_capped = 0, False
        with self._session.reading(), self._session.any_text():
            for kind in self._types(job.queue):
                group = {"queue": job.queue, "type": kind, "priority": job.priority}
                rows = self._run(statements.TURNS, {**group, "after": "", "most": MOST_TURNS, "now": now})
                rows += self._run(statements.WITHOUT, {**group, "now": now, "most": MOST_COUNTED})[:1]
                is_capped |= len(rows) >= MOST_TURNS
                for key, due_at, job_id in rows:
                    if job_id is not None:
                        one = (str(due_at), job_id)
                        first[key or NO_VALUE] = min(one, first.get(key or NO_VALUE, one))
                jobs += self._jobs_before(job, group)
            times = self._times(job.queue, job.priority, options)
        turns, is_capped = before(times, own, first), is_capped or jobs > MOST_COUNTED
        return TurnPlace(options.fair or "", own, turns, min(jobs, MOST_COUNTED), is_capped)

    def _jobs_before(self, job: JobRecord, group: dict[str, Any]) -> int:
        place = {"due_at": to_text(job.scheduled_at), "id": job.id, "most": MOST_COUNTED + 1}
        statement = statements.WITHOUT_BEFORE if job.fair_key is None else statements.BEFORE
        return int(self._run(statement, {**group, **place, "key": job.fair_key})[0][0])

    def shares(self, queue: str, options: QueueOptions, most: int = 20) -> list[TurnShare]:
        with self._session.reading(), self._session.any_text():
            served = self._served(queue)
            in_progress = in_status(self._session.alias, JobStatus.IN_PROGRESS).filter(
                queue=queue, lease_until__isnull=False
            )
            running = Counter(key or NO_VALUE for key in in_progress.values_list("fair_key", flat=True))
            keys = {key for key, _count in [*served.most_common(most), *running.most_common(most)]}
            waiting = self._waiting(queue, keys, most)
        found = [
            TurnShare(
                key,
                options.weights.get(key, 1.0),
                min(waiting[key], MOST_COUNTED),
                running[key],
                served[key],
                waiting[key] > MOST_COUNTED,
            )
            for key in keys | set(waiting)
        ]
        return sorted(found, key=lambda one: (-one.served, -one.running, -one.waiting, one.key))[:most]

    def _waiting(self, queue: str, keys: set[str], most: int) -> Counter[str]:
        """Count the due jobs of some turns, and of the first others that wait."""
        waiting: Counter[str] = Counter()
        now = to_text(self._session.now())
        for kind in self._types(queue):
            for priority in range(_BEST, _WORST + 1):
                group = {"queue": queue, "type": kind, "priority": priority}
                rows = self._run(statements.TURNS, {**group, "after": "", "most": most, "now": now})
                for key in sorted(keys | {row[0] for row in rows}):
                    given = {**group, "key": key, "now": now, "most": MOST_COUNTED + 1}
                    waiting[key] += self._run(statements.WAITING, given)[0][0]
                rows = self._run(statements.WITHOUT, {**group, "now": now, "most": MOST_COUNTED})
                waiting[NO_VALUE] += len(rows)
        return +waiting

    def _types(self, queue: str) -> list[str]:
        return [row[0] for row in self._run(statements.TYPES, {"queue": queue})]

    def _times(self, queue: str, priority: int, options: QueueOptions) -> VirtualTimes:
        times = VirtualTimes(options.weights)
        rows = self._session.rows(Turn).filter(queue=queue, priority=priority).order_by("-id")
        columns = ("queue", "priority", "key", "count", "finish", "clock")
        times.recall(reversed([ServedTurn(*row) for row in rows.values_list(*columns)[:MOST_LINES]]))
        return times

    def _served(self, queue: str) -> Counter[str]:
        since = self._session.now() - timedelta(seconds=KEPT)
        rows = self._session.rows(Turn).filter(queue=queue, served_at__gt=since)
        summed: Any = rows.values("key").annotate(sum=Sum("count"))
        return Counter({row["key"]: row["sum"] for row in summed})

    def _run(self, statement: str, given: dict[str, Any]) -> list[tuple[Any, ...]]:
        with self._session.connection.cursor() as cursor:
            cursor.execute(statement, given)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows
