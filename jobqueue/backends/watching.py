"""What a worker asks and tells of the claims it holds, beside settling and extending them."""

from __future__ import annotations

from collections.abc import Sequence

from jobqueue import foreign_json
from jobqueue.backends.metering import Metering
from jobqueue.models import Job
from jobqueue.records import Claim, Extension, Progress
from jobqueue.states import JobStatus


class Watching(Metering):
    """Reads and notes that are small, rare beside the cycle, and the same on both databases."""

    def review(self, claims: Sequence[Claim]) -> Extension:
        if not claims:
            return Extension()
        with self.reading():
            rows = Job.objects.using(self.alias).filter(pk__in=[one.id for one in claims])
            columns = ("id", "fence", "lease_owner", "status", "cancel_requested_at")
            found = {row[:4]: row[4] for row in rows.values_list(*columns)}
        state = {one: (one.id, one.fence, one.owner, JobStatus.IN_PROGRESS.value) for one in claims}
        return Extension(
            lost=tuple(one for one in claims if state[one] not in found),
            cancelled=tuple(one for one in claims if found.get(state[one]) is not None),
        )

    def held_by(self, owner: str) -> list[tuple[str, int]]:
        with self.reading():
            rows = Job.objects.using(self.alias).filter(status=JobStatus.IN_PROGRESS.value, lease_owner=owner)
            return list(rows.values_list("id", "fence"))

    def progress(self, reports: Sequence[Progress]) -> tuple[Progress, ...]:
        def work() -> tuple[Progress, ...]:
            now, rows = self.now(), Job.objects.using(self.alias).filter(pk__in={one.id for one in reports})
            free = set(rows.order_by("pk").select_for_update(skip_locked=True).values_list("pk", flat=True))
            for one in sorted(reports):
                if one.id in free:
                    held = Job.objects.using(self.alias).filter(
                        pk=one.id, fence=one.fence, lease_owner=one.owner, status=JobStatus.IN_PROGRESS.value
                    )
                    held.update(progress=foreign_json.read(one.report), updated_at=now)
            rest = {one.id for one in reports} - free
            locked = set(rows.filter(pk__in=rest).values_list("pk", flat=True)) if rest else set()  # or they are gone
            return tuple(one for one in reports if one.id in locked)

        return self.operate(work) if reports else ()
