"""The claims that a worker holds: the lost and the cancelled ones, and the progress of their jobs."""

from __future__ import annotations

from collections.abc import Sequence

from jobqueue import foreign_json
from jobqueue.backends.sql.session import Session
from jobqueue.models import Job
from jobqueue.records import Claim, Extension, Progress
from jobqueue.states import JobStatus


class HeldClaims:
    """Reads and writes about running jobs. The ORM is fast enough for these, because they are rare."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def review(self, claims: Sequence[Claim]) -> Extension:
        if not claims:
            return Extension()
        with self._session.reading():
            rows = self._session.rows(Job).filter(pk__in=[one.id for one in claims])
            columns = ("id", "fence", "lease_owner", "status", "cancel_requested_at")
            found = {row[:4]: row[4] for row in rows.values_list(*columns)}
        state = {one: (one.id, one.fence, one.owner, JobStatus.IN_PROGRESS.value) for one in claims}
        return Extension(
            lost=tuple(one for one in claims if state[one] not in found),
            cancelled=tuple(one for one in claims if found.get(state[one]) is not None),
        )

    def held_by(self, owner: str) -> list[tuple[str, int]]:
        with self._session.reading():
            rows = self._session.rows(Job).filter(status=JobStatus.IN_PROGRESS.value, lease_owner=owner)
            return list(rows.values_list("id", "fence"))

    def progress(self, reports: Sequence[Progress]) -> tuple[Progress, ...]:
        def work() -> tuple[Progress, ...]:
            now, rows = self._session.now(), self._session.rows(Job).filter(pk__in={one.id for one in reports})
            free = set(rows.order_by("pk").select_for_update(skip_locked=True).values_list("pk", flat=True))
            for one in sorted(reports):
                if one.id in free:
                    held = self._session.rows(Job).filter(
                        pk=one.id, fence=one.fence, lease_owner=one.owner, status=JobStatus.IN_PROGRESS.value
                    )
                    held.update(progress=foreign_json.read(one.report), updated_at=now)
            rest = {one.id for one in reports} - free
            locked = set(rows.filter(pk__in=rest).values_list("pk", flat=True)) if rest else set()  # others are gone
            return tuple(one for one in reports if one.id in locked)

        return self._session.transact(work) if reports else ()
