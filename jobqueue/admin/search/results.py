"""The results of a search: the ids of matching jobs, without those that match only by what redaction hides."""

from __future__ import annotations

from dataclasses import replace

from django.http import HttpRequest

from jobqueue.admin.lists.filters import BESIDE
from jobqueue.admin.search.combine import both
from jobqueue.admin.search.query import check, parse
from jobqueue.backends import current
from jobqueue.orders.shown import is_checked, shown
from jobqueue.records import Filter, MatchCount, Matches

#: The name in the address of the id before which a list begins.
BELOW = "below"
#: How many results are counted and can be paged through.
CAP = 10_000
#: The same if each match must be checked for secrets.
CAP_OF_CHECKED = 1_000


def wanted(request: HttpRequest) -> Filter:
    """Combine the search box and the sidebar into one filter. Raises BadQuery."""
    found = parse(request.GET.get("q", ""))
    for parameter, read in BESIDE.items():
        if (value := request.GET.get(parameter)) is not None:
            found = both(found, read(value))
    return found


def begins_before(request: HttpRequest) -> str | None:
    """Return the id before which the list begins, if it goes on where another one ended. Raises BadQuery."""
    job_id = request.GET.get(BELOW) or None
    if job_id is not None:
        check(job_id)
    return job_id


def find(asked: Filter, oldest_first: bool = False, before_id: str | None = None) -> Matches:
    """Find the ids of the jobs that match a filter, or of those with ids less than ``before_id``."""
    if not is_checked(asked):
        return current().jobs.search(asked, CAP, oldest_first, before_id)
    cap = min(CAP, CAP_OF_CHECKED)
    found = current().jobs.search(asked, cap + 1, before_id=before_id)
    ids = shown(asked, found[:])
    seen = ids[:cap]
    return replace(found, ids=seen[::-1] if oldest_first else seen, found=len(ids), cap=cap)


def counted(asked: Filter) -> MatchCount:
    """Count matches in bounded time: up to the cap if the backend can tell, otherwise as far as a list searches."""
    if not is_checked(asked):
        return current().jobs.count_matches(asked, CAP)
    found = find(asked)
    return MatchCount(len(found), found.more, found.is_part)


def may_lack_some(asked: Filter, found: Matches) -> bool:
    """Return whether unchecked jobs may match as well. Whether they do is not said, as that could reveal secrets."""
    return is_checked(asked) and found.searched > CAP_OF_CHECKED and not found.more
