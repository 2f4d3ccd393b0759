"""The port of an operator's actions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from jobqueue.records import (
    Amendment,
    Handled,
    PauseRecord,
    Scope,
)


class Operator(ABC):
    """Carries out an operator's actions on jobs, queues and types.

    Each method is one transaction. It returns which jobs it changed, and which it refused and why.
    """

    @abstractmethod
    def retry(self, ids: Sequence[str], after: timedelta = timedelta(0), every: timedelta = timedelta(0)) -> Handled:
        """Queue failed jobs and dead letters again, with all their attempts. Their history stays.

        The first job is due after ``after``. Each other job, in the order of ``ids``, is due ``every`` later than the
        previous job.
        """

    @abstractmethod
    def retry_edited(
        self,
        job_id: str,
        payload: str,
        payload_version: int,
        seen: datetime | None = None,
        keys: str | None = None,
        fair_key: str | None = None,
    ) -> Handled:
        """Queue a failed job or dead letter again with another payload, as JSON text. ``context`` keeps the first one.

        ``seen`` is the job's ``updated_at`` as the caller knows it. A job that was updated since then is refused.
        ``keys`` are the keys of its limits, which come from the new payload, as JSON text.
        """

    @abstractmethod
    def amend(self, ids: Sequence[str], amendment: Amendment) -> Handled:
        """Change the time, queue or priority of queued jobs. Other jobs are refused."""

    @abstractmethod
    def cancel(self, ids: Sequence[str]) -> Handled:
        """End queued jobs as failed, and ask running ones to stop."""

    @abstractmethod
    def purge(self, ids: Sequence[str]) -> Handled:
        """Delete jobs and their history. Running jobs are refused."""

    @abstractmethod
    def regroup(self, fingerprints: Mapping[str, str]) -> list[str]:
        """Give dead letters, by id, other fingerprints. Return the ids of those that are dead letters.

        Nothing else about them changes. The new groups remember that they were first seen when the first of these
        dead letters was given up.
        """

    @abstractmethod
    def pause(self, scope: Scope, name: str, reason: str = "") -> bool:
        """Stop workers from claiming jobs of a queue or type. Return ``False`` if it was paused already."""

    @abstractmethod
    def resume(self, scope: Scope, name: str) -> bool:
        """End a pause. Return whether there was one."""

    @abstractmethod
    def pauses(self) -> list[PauseRecord]:
        """List the paused queues and types."""
