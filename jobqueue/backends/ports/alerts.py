"""The port of alerts. A backend may keep the default, which keeps no alerts and so tells nobody."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from jobqueue.records import Draft
from jobqueue.records.alert import AlertChange, AlertRecord, Silence


class Alerts:
    """Keeps alerts and silences.

    - Of one problem, at most one alert is open.
    - A change of an alert and the jobs that tell of it are stored in one transaction, or not at all.
    """

    def open(self) -> list[AlertRecord]:
        """List the alerts that are not resolved, by key."""
        return []

    def past(self, limit: int = 100) -> list[AlertRecord]:
        """List the resolved alerts, the last ones first."""
        return []

    def get(self, alert_id: str) -> AlertRecord | None:
        """Read an alert by its id."""
        return None

    def store(self, changes: Sequence[AlertChange], drafts: Sequence[Draft] = ()) -> bool:
        """Store changes and the jobs that tell of them.

        If an alert is not as it was read, or another one of its problem is open, store nothing and return ``False``.
        """
        return False

    def prune(self, age: timedelta, limit: int = 500) -> int:
        """Delete alerts that were resolved longer ago than ``age``, and silences that are over. Return how many."""
        return 0

    def silences(self) -> list[Silence]:
        """List the silences that are not over, by key."""
        return []

    def silence(self, silence: Silence) -> None:
        """Store a silence, in place of an earlier one with its key."""

    def unsilence(self, key: str) -> bool:
        """Delete a silence. Return whether there was one."""
        return False
