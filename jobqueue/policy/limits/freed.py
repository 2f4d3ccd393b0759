"""Whether the jobs that ended make room, under limits or in lanes, that only other workers can use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from jobqueue.policy.limits.limits import LimitBook
from jobqueue.records import Claim, ClaimRequest, Cycle
from jobqueue.records.job import Scope
from jobqueue.records.limit import Limit, LimitKind


def leaves_room(book: LimitBook, ended: Sequence[Claim], cycle: Cycle, request: ClaimRequest | None) -> bool:
    """Return whether a cycle that settled these claims left room that it couldn't fill itself.

    It couldn't if it claimed nothing, if it had no more free slots, or if the limit's jobs may be in queues that this
    worker doesn't serve. Otherwise it has looked at all jobs under the limit or of the lane, in the same transaction.
    One ended job of a lane may make room for several, so the number of jobs that were taken says nothing there.
    """
    if not book or not ended:
        return False
    taken = Counter(limit.place for limit in _limits(book, cycle.claims))
    is_full = request is None or len(cycle.claims) == request.limit
    if is_full and any(book.is_ordered(one.queue) for one in ended):
        return True
    for limit in _limits(book, ended):
        taken[limit.place] -= 1
        if taken[limit.place] < 0 and (is_full or _is_elsewhere(limit, request)):
            return True
    return False


def _limits(book: LimitBook, claims: Iterable[Claim]) -> Iterable[Limit]:
    for one in claims:
        for limit in book.of(one.queue, one.type):
            if limit.kind is LimitKind.CONCURRENCY:
                yield limit


def _is_elsewhere(limit: Limit, request: ClaimRequest | None) -> bool:
    """Return whether jobs under a limit can be in queues that a request leaves out."""
    return limit.scope is Scope.TYPE and request is not None and request.queues is not None
