"""The searches that a user saved, at the list of jobs that they are of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.utils.translation import gettext

from jobqueue import conf
from jobqueue.admin.search.combine import BadQuery
from jobqueue.admin.search.query import check, parse
from jobqueue.models import SavedSearch

#: How many searches a user can save of one list, and how long their names can be.
MOST = 50
LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class SavedSearches:
    """The searches of one list that the user of a request saved."""

    of: admin.ModelAdmin[Any]
    request: HttpRequest

    def all(self) -> list[SavedSearch]:
        """Read them in order of their names."""
        return list(self._rows().order_by("name")[:MOST])

    def answer(self, address: str) -> HttpResponse:
        """Save or delete a search as a form demands, and redirect to the list at that address."""
        if not self.of.has_view_permission(self.request):
            raise PermissionDenied
        query = self._kept(self.request.POST.get("query", ""))
        if self.request.method == "POST":
            try:
                self._delete() if "delete" in self.request.POST else self._save(query)
            except BadQuery as error:
                messages.error(self.request, str(error))
        return HttpResponseRedirect(f"{address}?{query}" if query else address)

    def _save(self, query: str) -> None:
        name = " ".join(self.request.POST.get("name", "").split())
        check(name)
        parse(QueryDict(query).get("q") or "")
        if not name or len(name) > LONGEST_NAME:
            raise BadQuery(gettext("Give the search a name of at most %(count)d characters.") % {"count": LONGEST_NAME})
        others = self._rows().exclude(name=name)
        if others.count() >= MOST:
            raise BadQuery(gettext("You have saved %(count)d searches. Delete one of them first.") % {"count": MOST})
        self._rows().update_or_create({"query": query}, name=name, user_id=self._user_id, listed=self._listed)
        messages.success(self.request, gettext("The search “%(name)s” is saved.") % {"name": name})

    def _delete(self) -> None:
        number = self.request.POST.get("delete", "")
        if number.isdecimal() and len(number) < 19 and self._rows().filter(pk=int(number)).delete()[0]:
            messages.success(self.request, gettext("The saved search is deleted."))

    def _kept(self, query: str) -> str:
        """Return the search and the filters of an address. The page of the list isn't part of a search."""
        try:
            check(query)
        except BadQuery:
            return ""
        filters: Any = self.of.list_filter
        names = ("q", "o", *(one.parameter_name for one in filters))
        given = QueryDict(query)
        return urlencode({name: value for name in names if (value := given.get(name))})

    def _rows(self) -> QuerySet[SavedSearch]:
        rows = SavedSearch.objects.using(conf.get("DATABASE"))
        return rows.filter(user_id=self._user_id, listed=self._listed)

    @property
    def _user_id(self) -> str:
        return str(self.request.user.pk)

    @property
    def _listed(self) -> str:
        return str(self.of.opts.model_name)
