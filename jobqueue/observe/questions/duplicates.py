"""Which queued jobs have the same payload as others."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from hashlib import blake2b
from typing import NamedTuple

from jobqueue.backends.base import Backend
from jobqueue.observe.questions.sample import some_of_each

#: How many jobs of each queue and type are compared, and how many in all.
EACH, MOST = 500, 3_000
#: How many ids of a group are told.
EXAMPLES = 5


class Duplicates(NamedTuple):
    """Queued jobs of one type, queue and tenant with the same payload. ``since`` is when the first was created."""

    type: str
    queue: str
    tenant: str
    jobs: int
    since: datetime
    examples: list[str]


class DuplicateGroups(NamedTuple):
    """The groups, the largest first, among so many jobs. If ``is_part``, there are other queued jobs."""

    groups: list[Duplicates]
    looked_at: int
    is_part: bool


def duplicates(backend: Backend, limit: int) -> DuplicateGroups:
    """Compare the first queued jobs of each queue and type, and return the largest groups, at most ``limit``."""
    found: dict[tuple[str, str, str, bytes], list[tuple[datetime, str]]] = defaultdict(list)
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for page in some_of_each(backend, EACH, MOST):
        for one in page:
            digest = blake2b(one.payload.encode(errors="surrogatepass"), digest_size=16).digest()
            found[one.queue, one.type, one.tenant, digest].append((one.created_at, one.id))
            counts[one.queue, one.type] += 1
    groups = [
        Duplicates(kind, queue, tenant, len(jobs), min(jobs)[0], [job_id for _, job_id in sorted(jobs)[:EXAMPLES]])
        for (queue, kind, tenant, _digest), jobs in found.items()
        if len(jobs) > 1
    ]
    groups.sort(key=lambda one: (-one.jobs, one.type, one.queue, one.since))
    looked_at = sum(counts.values())
    return DuplicateGroups(groups[:limit], looked_at, looked_at >= MOST or any(n >= EACH for n in counts.values()))
