"""What a worker asks and tells of the claims it holds, beside settling and extending them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from jobqueue.backends.enlisting import Enlisting
from jobqueue.models import Job
from jobqueue.records import Claim, Extension, Progress
from jobqueue.states import JobStatus


class Watching(Enlisting):
    """Reads and notes that are small, rare beside the cycle, and the same on both databases."""

    def review(self, claims: Sequence[Claim]) -> Extension:
        if not claims:
            return Extension()
        with self.reporting():
            rows = Job.objects.using(self.alias).filter(pk__in=[one.id for one in claims])
            columns = ("id", "fence", "lease_owner", "status", "cancel_requested_at")
            found = {row[:4]: row[4] for row in rows.values_list(*columns)}
        state = {one: (one.id, one.fence, one.owner, JobStatus.IN_PROGRESS.value) for one in claims}
        return Extension(
            lost=tuple(one for one in claims if state[one] not in found),
            cancelled=tuple(one for one in claims if found.get(state[one]) is not None),
        )

    def held_by(self, owner: str) -> list[tuple[str, int]]:
        with self.reporting():
            rows = Job.objects.using(self.alias).filter(status=JobStatus.IN_PROGRESS.value, lease_owner=owner)
            return list(rows.values_list("id", "fence"))

    def progress(self, reports: Sequence[Progress]) -> None:
        def work() -> None:
            now = self.now()
            for one in sorted(reports):
                held = Job.objects.using(self.alias).filter(
                    pk=one.id, fence=one.fence, lease_owner=one.owner, status=JobStatus.IN_PROGRESS.value
                )
                held.update(progress=json.loads(one.report), updated_at=now)

        if reports:
            self.operate(work)
