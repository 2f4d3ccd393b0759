"""The memory of errors: since when each is known, in which releases, and when its dead letters were last retried.

All writers of several rows write them in one order, so that no two deadlock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from jobqueue import conf
from jobqueue.backends.sql.session import Session
from jobqueue.models import KnownError
from jobqueue.states import JobStatus


class KnownErrors:
    """Writes the memory, inside a transaction of the caller's."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, fingerprints: Iterable[str | None]) -> None:
        """Remember the errors of new dead letters, in the release that this process runs."""
        self._insert(dict.fromkeys(filter(None, fingerprints), self._session.now()), conf.get("RELEASE"))

    def add_older(self, since: Mapping[str, datetime]) -> None:
        """Remember since when errors are known, unless they are. Their release is unknown."""
        rows = self._session.rows(KnownError).filter(fingerprint__in=list(since))
        known = set(rows.values_list("fingerprint", flat=True)) if since else set()
        self._insert({name: since[name] for name in since if name not in known}, "")

    def note_retry(self, retried: Iterable[Mapping[str, Any]], now: datetime) -> None:
        """Remember that dead letters, as they were, are retried now."""
        since: dict[str, datetime] = {}
        for row in retried:
            name = row["error_fingerprint"]
            if name and row["status"] == JobStatus.DEAD_LETTER.value:
                since[name] = min(since.get(name, now), row["completed_at"] or now)
        self.add_older(since)
        for name in sorted(since):
            self._session.rows(KnownError).filter(fingerprint=name).update(retried_at=now)

    def _insert(self, since: Mapping[str, datetime], release: str) -> None:
        new = [KnownError(fingerprint=name, release=release, first_at=since[name]) for name in sorted(since)]
        if new:
            self._session.rows(KnownError).bulk_create(new, ignore_conflicts=True)
