"""The rows of an open list as they are now. ``list.js`` puts them into the page."""

from __future__ import annotations

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.templatetags.admin_list import results
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_safe

from jobqueue.admin.lists.export import LONGEST_ADDRESS, Export

#: The interval, in seconds, at which an open list asks for its rows: each time it searches.
EVERY = 10


class LiveList(Export):
    """An admin whose list of jobs keeps itself up to date."""

    def get_urls(self) -> list[URLPattern]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_rows"
        return [path("_rows/", self.admin_site.admin_view(self.rows_view), name=name), *super().get_urls()]

    @method_decorator(require_safe)
    def rows_view(self, request: HttpRequest) -> HttpResponse:
        """Return the cells of the page of the list with the same query, by job."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if len(request.META.get("QUERY_STRING", "")) > LONGEST_ADDRESS:
            raise BadRequest("The address is too long.")
        try:
            listed = self.get_changelist_instance(request)
        except IncorrectLookupParameters as error:
            raise BadRequest("The list has no such page.") from error
        listed.formset = None  # Django 5.2 sets it in the view of the list alone
        rows = zip(listed.result_list, results(listed), strict=True)
        found = [[job.pk, "".join(map(str, cells))] for job, cells in rows]
        return JsonResponse({"rows": found}, headers={"Cache-Control": "no-store"})
