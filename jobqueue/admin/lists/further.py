"""The rest of a search for jobs that wait for somebody. ``further.js`` goes on with it, part by part, in an open list.

Words of payloads have no index, so a list searches them among the newest of such jobs alone. The page goes on by itself
until all are searched: somebody waits for each of these jobs.
"""

from __future__ import annotations

from typing import Any

from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator
from django.utils.formats import number_format
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_safe

from jobqueue.admin import display
from jobqueue.admin.lists.export import LONGEST_ADDRESS
from jobqueue.admin.lists.live_list import LiveList
from jobqueue.admin.search import results
from jobqueue.admin.search.combine import BadQuery
from jobqueue.backends.sql.search.plan import WAITING
from jobqueue.records import Filter, Matches


def goes_on(wanted: Filter) -> bool:
    """Return whether an open list searches all of these jobs, part by part. Of others there may be millions."""
    return bool(wanted.statuses) and wanted.statuses <= WAITING


class FurtherSearch(LiveList):
    """An admin whose list of jobs goes on with a search."""

    def get_urls(self) -> list[URLPattern]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_further"
        return [path("_further/", self.admin_site.admin_view(self.further_view), name=name), *super().get_urls()]

    @method_decorator(require_safe)
    def further_view(self, request: HttpRequest) -> HttpResponse:
        """Search the part before an id. Return what it found, how far it came, and the query of the next part."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if len(request.META.get("QUERY_STRING", "")) > LONGEST_ADDRESS:
            raise BadRequest("The address is too long.")
        try:
            wanted, below = self.wanted(request), results.begins_before(request)
        except BadQuery as error:
            raise BadRequest("The search is not valid.") from error
        if below is None or not goes_on(wanted):
            raise BadRequest("The search does not go on by itself.")
        found = results.find(wanted, before_id=below)
        return JsonResponse(_told(request.GET, found), headers={"Cache-Control": "no-store"})


def _told(query: QueryDict, found: Matches) -> dict[str, Any]:
    rest = None if found.more else found.rest_before
    return {"found": _found(found), "said": _said(found), "next": "" if rest is None else _query(query, rest)}


def _query(query: QueryDict, before_id: str) -> str:
    changed = query.copy()
    changed[results.BELOW] = before_id
    return f"?{changed.urlencode()}"


def _found(found: Matches) -> str:
    """Say how many matches the part has, or nothing."""
    if not len(found):
        return ""
    number = number_format(len(found), force_grouping=True)
    if found.more:
        return gettext("%(count)s+ more results further back") % {"count": number}
    words = ngettext("%(count)s more result further back", "%(count)s more results further back", len(found))
    return words % {"count": number}


def _said(found: Matches) -> str:
    """Say how far the search came."""
    if found.more:
        return gettext("The search stopped at more results than a list has. They go on there.")
    if found.back_to is None or not found.is_part:
        return gettext("All jobs of this status were searched.")
    return gettext("The search goes on: all back to %(since)s were searched so far.") % {
        "since": display.exactly(found.back_to)
    }
