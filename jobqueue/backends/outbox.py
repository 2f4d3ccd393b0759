"""The outbox: the job table of the application's own database, where jobs wait to be relayed to a shared one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db.models import Min, Q, QuerySet

from jobqueue.backends.sql import SqlBackend
from jobqueue.ids import new_id
from jobqueue.models import Attempt, Job, Relay
from jobqueue.records.relay import Batch, Refused, Waiting
from jobqueue.states import JobStatus

#: Who holds jobs on their way. No worker's name has a slash, and no lease of theirs ends: no sweep takes them back.
#: Their fence stays: nobody attempts them here, and handlers read in it whether somebody has.
_HOLDER = "relay/"
_ON_THEIR_WAY = Q(status=JobStatus.IN_PROGRESS.value, lease_until=None, lease_owner__startswith=_HOLDER)
_QUEUED = Q(status=JobStatus.QUEUED.value)


class Outbox:
    """What happens to jobs on this side. Each verb is one transaction, and may be repeated.

    - One batch is on its way at a time, and what was begun is offered again until it is closed.
    - Whoever wants a job on its way to stop is not forgotten: it is asked for over there before it leaves here.
    """

    def __init__(self, backend: SqlBackend) -> None:
        self._backend = backend
        self._jobs = Job.objects.using(backend.alias)
        self._attempts = Attempt.objects.using(backend.alias)
        self._relays = Relay.objects.using(backend.alias)

    def source(self) -> str:
        """Return the name of this outbox, made up once and kept: no other has it."""

        def work() -> str:
            own = self._own().values_list("source", flat=True)
            if not own.exists():
                self._relays.bulk_create([Relay(source=new_id(), is_own=True)], ignore_conflicts=True)
            return own.get()

        return self._backend.operate(work)

    def is_empty(self) -> bool:
        """Say whether nothing waits."""
        with self._backend.reading():
            return not self._jobs.filter(_QUEUED).exists() and not self._jobs.filter(_ON_THEIR_WAY).exists()

    def take(self, limit: int) -> Batch:
        """Take the batch that is on its way, or else the first queued jobs in order of id."""

        def work() -> Batch:
            self._own().select_for_update().first()  # whoever else takes waits, and finds what is begun
            # In no order: for that a database would rather walk through all that is queued.
            begun = list(self._jobs.filter(_ON_THEIR_WAY).values_list("lease_owner", flat=True)[:1])
            holder = begun[0] if begun else self._begin(limit)
            return self._batch(holder) if holder else Batch()

        return self._backend.operate(work)

    def _begin(self, limit: int) -> str | None:
        queued = self._jobs.filter(_QUEUED).order_by("pk").select_for_update(skip_locked=True)
        with self._backend.true_text():
            ids = list(queued.values_list("pk", flat=True)[:limit])
        holder = f"{_HOLDER}{new_id()}"
        self._jobs.filter(pk__in=ids).update(
            status=JobStatus.IN_PROGRESS.value,
            lease_owner=holder,
            lease_until=None,  # another program may have set one
            updated_at=self._backend.now(),
        )
        return holder if ids else None

    def _batch(self, holder: str) -> Batch:
        jobs = tuple(self._held(holder).order_by("pk").values())
        history = self._attempts.filter(job_id__in=[row["id"] for row in jobs]).order_by("job_id", "fence")
        return Batch(holder, jobs, tuple({**row, "id": None} for row in history.values()))

    def _held(self, holder: str) -> QuerySet[Job]:
        return self._jobs.filter(_ON_THEIR_WAY, lease_owner=holder)

    def asked_to_stop(self, batch: Batch) -> list[str]:
        """List the jobs of a batch that an operator has cancelled since they are on their way."""
        with self._backend.reading():
            return list(self._held(batch.holder).exclude(cancel_requested_at=None).values_list("pk", flat=True))

    def close(self, batch: Batch, refused: Mapping[str, Refused], asked: Sequence[str]) -> None:
        """Let go of a batch that is stored over there, and keep what was refused, with the reason.

        What an operator has cancelled just now, and so is not in ``asked``, stays on its way.
        """

        def work() -> None:
            now = self._backend.now()
            for job_id, one in refused.items():
                self._held(batch.holder).filter(pk=job_id).update(
                    status=one.status.value,
                    end_reason=one.reason,
                    error=one.error,
                    lease_owner=None,
                    cancel_requested_at=None,
                    completed_at=now,
                    updated_at=now,
                )
            done = self._held(batch.holder).filter(Q(cancel_requested_at=None) | Q(pk__in=asked))
            ids = list(done.order_by("pk").select_for_update().values_list("pk", flat=True))
            self._attempts.filter(job_id__in=ids).delete()
            self._jobs.filter(pk__in=ids).delete()
            self._own().update(relayed_at=now, lost_at=None, error="")

        self._backend.operate(work)

    # How it fares

    def lost(self, error: str) -> None:
        """Note that the other side is out of reach, for those who look; the first time says since when."""

        def work() -> None:
            self._own().filter(lost_at=None).update(lost_at=self._backend.now())
            self._own().update(error=error)

        self._backend.operate(work)

    def waiting(self) -> Waiting:
        """Count what waits, and tell since when."""
        with self._backend.reading():
            rows = self._jobs.filter(_QUEUED | _ON_THEIR_WAY)
            own = self._own().values_list("relayed_at", "lost_at", "error").first() or (None, None, "")
            return Waiting(rows.count(), rows.aggregate(oldest=Min("created_at"))["oldest"], *own)

    def _own(self) -> QuerySet[Relay]:
        return self._relays.filter(is_own=True)
