"""The operator's actions, with the ORM because they are rare."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction

from jobqueue.backends.ports import Operator
from jobqueue.backends.sql.known_errors import KnownErrors
from jobqueue.backends.sql.session import Session
from jobqueue.models import Attempt, Job, Pause
from jobqueue.records import Amendment, Ground, Handled, PauseRecord, Refusal, Scope
from jobqueue.states import JobStatus, Move, sources

_RUNNING = {JobStatus.IN_PROGRESS.value}


class SqlOperator(Operator):
    """Changes jobs in a table. Each method is one transaction that locks its rows in order of id."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known_errors = KnownErrors(session)

    def _locked(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        rows = (
            self._session.rows(Job)
            .filter(pk__in=ids)
            .order_by("pk")
            .select_for_update()
            .values("pk", "status", "unique_key", "error_fingerprint", "completed_at")
        )
        return {row["pk"]: dict(row) for row in rows}

    def retry(self, ids: Sequence[str], after: timedelta = timedelta(0), every: timedelta = timedelta(0)) -> Handled:
        delays = {job_id: after + place * every for place, job_id in enumerate(dict.fromkeys(ids))}
        return self._session.transact(lambda: self._retry(delays, {}))

    def retry_edited(
        self,
        job_id: str,
        payload: str,
        payload_version: int,
        seen: datetime | None = None,
        keys: str | None = None,
        fair_key: str | None = None,
    ) -> Handled:
        def work() -> Handled:
            self._locked([job_id])  # first, so that nobody changes the row after it is read
            rows = self._session.rows(Job).filter(pk=job_id)
            row: Mapping[str, Any] = rows.values("payload", "payload_version", "context", "updated_at").first() or {}
            if row and seen not in (None, row["updated_at"]):
                return Handled(refused=(Ground.HAS_CHANGED.refusal(job_id),))
            first = {name: row[name] for name in ("payload", "payload_version") if row}
            before = row.get("context")
            # After several edits, the context still has the first payload. Another program may have stored anything.
            context = {"first": first} | (before if isinstance(before, dict) else {})
            changes = {"payload": json.loads(payload), "payload_version": payload_version, "context": context}
            return self._retry({job_id: timedelta(0)}, {**changes, "concurrency_key": keys, "fair_key": fair_key})

        return self._session.transact(work)

    def _retry(self, delays: Mapping[str, timedelta], changes: Mapping[str, Any]) -> Handled:
        rows, now = self._locked(list(delays)), self._session.now()
        done, refused = [], _missing(delays, rows)
        for job_id, row in rows.items():
            if JobStatus(row["status"]) not in sources(Move.REVIVE):
                refused.append(Ground.NOT_RETRIABLE.refusal(job_id, row["status"]))
            elif self._revive(job_id, {**changes, "scheduled_at": now + delays[job_id], "updated_at": now}):
                done.append(job_id)
            else:
                refused.append(Ground.KEY_IS_HELD.refusal(job_id, row["unique_key"]))
        self._known_errors.note_retry([rows[job_id] for job_id in done], now)
        return Handled(tuple(done), tuple(refused))

    def _revive(self, job_id: str, changes: Mapping[str, Any]) -> bool:
        """Queue a job again. Return ``False`` if a newer job has its unique key."""
        try:
            with transaction.atomic(using=self._session.alias):
                self._session.rows(Job).filter(pk=job_id).update(
                    status=JobStatus.QUEUED.value,
                    attempts=0,
                    crash_count=0,
                    error=None,
                    error_fingerprint=None,
                    end_reason=None,
                    result=None,
                    progress=None,
                    cancel_requested_at=None,
                    expires_at=None,  # otherwise an expired job would expire again at once
                    started_at=None,
                    completed_at=None,
                    lease_owner=None,
                    lease_until=None,
                    **changes,
                )
        except IntegrityError:
            return False
        return True

    def amend(self, ids: Sequence[str], amendment: Amendment) -> Handled:
        def work() -> Handled:
            rows, now = self._locked(ids), self._session.now()
            due_at = now if amendment.now else amendment.scheduled_at
            said = {"queue": amendment.queue, "priority": amendment.priority, "scheduled_at": due_at}
            changes: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
            if amendment.queue is not None:  # a claim gives it a place in the lane of its new queue, if that has any
                changes |= {"lane": None, "lane_position": None, "fair_key": None}
            waiting = [job_id for job_id, row in rows.items() if row["status"] == JobStatus.QUEUED.value]
            self._session.rows(Job).filter(pk__in=waiting).update(**changes, updated_at=now)
            others = [
                Ground.NOT_QUEUED.refusal(job_id, row["status"])
                for job_id, row in rows.items()
                if row["status"] != JobStatus.QUEUED.value
            ]
            return Handled(tuple(waiting), tuple(_missing(ids, rows) + others))

        return self._session.transact(work)

    def cancel(self, ids: Sequence[str]) -> Handled:
        return self._session.transact(lambda: self._cancel(ids))

    def _cancel(self, ids: Sequence[str]) -> Handled:
        rows, now = self._locked(ids), self._session.now()
        refused = _missing(ids, rows)
        refused += [
            Ground.HAS_ENDED.refusal(job_id, row["status"])
            for job_id, row in rows.items()
            if JobStatus(row["status"]) not in sources(Move.CANCEL)
        ]
        live = [job_id for job_id, row in rows.items() if JobStatus(row["status"]) in sources(Move.CANCEL)]
        running = tuple(job_id for job_id in live if rows[job_id]["status"] in _RUNNING)
        mine = self._session.rows(Job).filter(pk__in=live)
        mine.filter(status=JobStatus.QUEUED.value).update(
            status=JobStatus.FAILED.value, end_reason="cancelled", completed_at=now, updated_at=now
        )
        mine.filter(status=JobStatus.IN_PROGRESS.value, cancel_requested_at=None).update(
            cancel_requested_at=now, updated_at=now
        )
        return Handled(tuple(live), tuple(refused), running)

    def purge(self, ids: Sequence[str]) -> Handled:
        return self._session.transact(lambda: self._purge(ids))

    def _purge(self, ids: Sequence[str]) -> Handled:
        rows = self._locked(ids)
        running = [job_id for job_id, row in rows.items() if row["status"] in _RUNNING]
        gone = [job_id for job_id in rows if job_id not in running]
        self._session.rows(Attempt).filter(job_id__in=gone).delete()
        self._session.rows(Job).filter(pk__in=gone).delete()
        refused = _missing(ids, rows) + [Ground.IS_RUNNING.refusal(job_id) for job_id in running]
        return Handled(tuple(gone), tuple(refused))

    def regroup(self, fingerprints: Mapping[str, str]) -> list[str]:
        return self._session.transact(lambda: self._regroup(fingerprints))

    def _regroup(self, fingerprints: Mapping[str, str]) -> list[str]:
        rows, now = self._locked(list(fingerprints)), self._session.now()
        groups: dict[str, list[str]] = {}
        for job_id, row in rows.items():
            if row["status"] == JobStatus.DEAD_LETTER.value:
                groups.setdefault(fingerprints[job_id], []).append(job_id)
        for name, ids in groups.items():
            self._session.rows(Job).filter(pk__in=ids).update(error_fingerprint=name)
        self._known_errors.add_older(
            {name: min(rows[one]["completed_at"] or now for one in ids) for name, ids in groups.items()}
        )
        return [job_id for ids in groups.values() for job_id in ids]

    def pause(self, scope: Scope, name: str, reason: str = "") -> bool:
        def work() -> bool:
            _row, made = self._session.rows(Pause).get_or_create(
                scope=scope.value, name=name, defaults={"reason": reason, "paused_at": self._session.now()}
            )
            return made

        return self._session.transact(work)

    def resume(self, scope: Scope, name: str) -> bool:
        def work() -> bool:
            return bool(self._session.rows(Pause).filter(scope=scope.value, name=name).delete()[0])

        return self._session.transact(work)

    def pauses(self) -> list[PauseRecord]:
        with self._session.reading():
            known = [scope.value for scope in Scope]  # a newer release may have stored others
            rows = self._session.rows(Pause).filter(scope__in=known).order_by("scope", "name")
            return [PauseRecord(Scope(row.scope), row.name, row.reason, row.paused_at) for row in rows]


def _missing(ids: Iterable[str], found: dict[str, Any]) -> list[Refusal]:
    return [Ground.MISSING.refusal(job_id) for job_id in ids if job_id not in found]
