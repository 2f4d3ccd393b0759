"""The choice of jobs under limits on Postgres, where a lock for each limit lets one worker at a time decide."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jobqueue.backends.ports.limits import Limits
from jobqueue.backends.postgresql import values
from jobqueue.backends.postgresql.claims import limit_statements as statements
from jobqueue.backends.postgresql.claims.lanes import PostgresLaneClaims
from jobqueue.backends.postgresql.claims.turns import PostgresFairClaims
from jobqueue.backends.postgresql.session import PostgresSession
from jobqueue.backends.sql.claims.crowd import REST_FOR_EACH, WALKED_AT_ONCE, Group
from jobqueue.backends.sql.claims.limited_claims import LimitedClaims, Start, limited_types
from jobqueue.clock import SYSTEM
from jobqueue.policy.limits.limits import Account, Candidate, LimitBook
from jobqueue.records import ClaimRequest

#: Seconds between two walks through the groups that tell only which queues and types have lanes with due jobs.
_REST_OF_LANES = 0.02


class PostgresLimitedClaims(LimitedClaims):
    """Reads with prepared statements."""

    _session: PostgresSession

    def __init__(self, limits: Limits, session: PostgresSession) -> None:
        super().__init__(limits, session)
        self.lanes = PostgresLaneClaims(session)
        self.turns = PostgresFairClaims(session)
        self._found: list[Group] = []
        self._walk_at = 0.0
        self._asked: object = None

    def groups(self, request: ClaimRequest, book: LimitBook) -> list[Group]:
        """Return the groups under limits that have due jobs, those with the first jobs first.

        If another program has made very many groups, the last walk's are used for a while.
        """
        asked = (request.types, request.queues)
        if SYSTEM.monotonic() >= self._walk_at or asked != self._asked or not self._found:
            self._asked = asked
            given = values.of_request(request) | {
                "limited_types": sorted(limited_types(request, book)),
                "limited_queues": values.like(book.queue_patterns),
            }
            rows = self._session.run_planned(statements.GROUPS, given)
            count, self._found = rows[0][0], [Group(*row[1:]) for row in rows if row[1] is not None]
            rest = REST_FOR_EACH * count if count > WALKED_AT_ONCE else _REST_OF_LANES if book.has_only_lanes else 0.0
            self._walk_at = SYSTEM.monotonic() + rest
        return self._found

    def lock(self, places: Sequence[str]) -> set[str]:
        return {row[0] for row in self._session.run_planned(statements.LOCK, {"places": list(places)})}

    def running(self) -> Iterable[tuple[str, str, str | None, int]]:
        return [(row[0], row[1], row[2], row[3]) for row in self._session.run_planned(statements.RUNNING, {})]

    def first(self, most: dict[Group, int]) -> list[Candidate]:
        groups = json.dumps([{**group._asdict(), "most": count} for group, count in most.items()])
        return self._candidates(statements.FIRST, {"groups": groups}) if most else []

    def heads(self, group: Group, after: str, most: int) -> list[Candidate]:
        return self._candidates(statements.HEADS, {**group._asdict(), "after": after, "most": most})

    def first_of_keys(self, group: Group, most: Sequence[tuple[str | None, int]]) -> list[Candidate]:
        keys = json.dumps([{"key": key, "most": count} for key, count in most])
        return self._candidates(statements.FIRST_OF_KEYS, {**group._asdict(), "keys": keys})

    def _candidates(self, statement: str, given: dict[str, Any]) -> list[Candidate]:
        return [Candidate(*row) for row in self._session.run_planned(statement, given)]

    def starts(self, windows: Mapping[Account, float]) -> list[tuple[str, str, int, float]]:
        given = json.dumps([{"place": place, "key": key, "per": per} for (place, key), per in windows.items()])
        rows = self._session.run_planned(statements.STARTS, {"accounts": given})
        return [(row[0], row[1], int(row[2]), row[3]) for row in rows]

    def add_starts(self, starts: Sequence[Start]) -> None:
        self._session.run_planned(statements.ADD_STARTS, {"starts": json.dumps([one._asdict() for one in starts])})

    def prune_starts(self) -> None:
        self._session.run_planned(statements.PRUNE, {})
