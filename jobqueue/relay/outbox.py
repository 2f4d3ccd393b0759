"""The outbox: the job table of the application's own database, where jobs wait to be relayed to a shared one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db.models import Min, Q, QuerySet

from jobqueue import conf
from jobqueue.backends.base import Backend
from jobqueue.backends.sql.backend import SqlBackend
from jobqueue.backends.sql.session import Session
from jobqueue.ids import new_id
from jobqueue.models import Attempt, Job, Relay
from jobqueue.records.relay import Batch, Refused, Waiting
from jobqueue.states import JobStatus

#: The holder of jobs on their way. No worker's name has a slash, and these jobs have no lease, so no sweep takes them
#: back. Their fence stays as it is, because handlers read from it whether a job was attempted before.
_HOLDER = "relay/"
_ON_THEIR_WAY = Q(status=JobStatus.IN_PROGRESS.value, lease_until=None, lease_owner__startswith=_HOLDER)
_QUEUED = Q(status=JobStatus.QUEUED.value)


class Outbox:
    """Keeps jobs until they are stored in the shared database. Each method is one transaction, and may be repeated.

    - One batch is on its way at a time. The batch is offered again until it is closed.
    - If an operator cancels a job on its way, the shared database is asked to cancel it before it leaves here.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._jobs = session.rows(Job)
        self._attempts = session.rows(Attempt)
        self._relays = session.rows(Relay)

    def source(self) -> str:
        """Return the unique name of this outbox, which is generated once and stored."""

        def work() -> str:
            own = self._own().values_list("source", flat=True)
            if not own.exists():
                self._relays.bulk_create([Relay(source=new_id(), is_own=True)], ignore_conflicts=True)
            return own.get()

        return self._session.transact(work)

    def is_empty(self) -> bool:
        """Return whether no job waits to be relayed."""
        with self._session.reading():
            return not self._jobs.filter(_QUEUED).exists() and not self._jobs.filter(_ON_THEIR_WAY).exists()

    def take(self, limit: int) -> Batch:
        """Return the batch on its way. If no batch is, make one of the first queued jobs in order of id."""

        def work() -> Batch:
            self._own().select_for_update().first()  # other relays wait here, and then get the same batch
            # Unordered, because the database would read all queued jobs to sort these.
            begun = list(self._jobs.filter(_ON_THEIR_WAY).values_list("lease_owner", flat=True)[:1])
            holder = begun[0] if begun else self._begin(limit)
            return self._batch(holder) if holder else Batch()

        return self._session.transact(work)

    def _begin(self, limit: int) -> str | None:
        queued = self._jobs.filter(_QUEUED).order_by("pk").select_for_update(skip_locked=True)
        with self._session.true_text():
            ids = list(queued.values_list("pk", flat=True)[:limit])
        holder = f"{_HOLDER}{new_id()}"
        self._jobs.filter(pk__in=ids).update(
            status=JobStatus.IN_PROGRESS.value,
            lease_owner=holder,
            lease_until=None,  # another program may have set a time
            updated_at=self._session.now(),
        )
        return holder if ids else None

    def _batch(self, holder: str) -> Batch:
        jobs = tuple(self._held(holder).order_by("pk").values())
        history = self._attempts.filter(job_id__in=[row["id"] for row in jobs]).order_by("job_id", "fence")
        return Batch(holder, jobs, tuple({**row, "id": None} for row in history.values()))

    def _held(self, holder: str) -> QuerySet[Job]:
        return self._jobs.filter(_ON_THEIR_WAY, lease_owner=holder)

    def asked_to_stop(self, batch: Batch) -> list[str]:
        """List the jobs of a batch that an operator cancelled after it was taken."""
        with self._session.reading():
            return list(self._held(batch.holder).exclude(cancel_requested_at=None).values_list("pk", flat=True))

    def close(self, batch: Batch, refused: Mapping[str, Refused], asked: Sequence[str]) -> None:
        """Delete a batch that is stored in the shared database, and keep its refused jobs with the reason.

        A job that was cancelled just now, and so isn't in ``asked``, stays on its way.
        """

        def work() -> None:
            now = self._session.now()
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

        self._session.transact(work)

    # State

    def lost(self, error: str) -> None:
        """Store that the shared database is out of reach, and when this was first noticed."""

        def work() -> None:
            self._own().filter(lost_at=None).update(lost_at=self._session.now())
            self._own().update(error=error)

        self._session.transact(work)

    def waiting(self) -> Waiting:
        """Count the waiting jobs, and return since when they wait."""
        with self._session.reading():
            rows = self._jobs.filter(_QUEUED | _ON_THEIR_WAY)
            own = self._own().values_list("relayed_at", "lost_at", "error").first() or (None, None, "")
            return Waiting(rows.count(), rows.aggregate(oldest=Min("created_at"))["oldest"], *own)

    def _own(self) -> QuerySet[Relay]:
        return self._relays.filter(is_own=True)


def waiting_in(backend: Backend) -> Waiting | None:
    """Return the state of a backend's outbox, or ``None`` if its jobs aren't relayed."""
    relays = conf.get("RELAY_TO") is not None
    return Outbox(backend.session).waiting() if relays and isinstance(backend, SqlBackend) else None
