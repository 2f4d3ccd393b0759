"""How a list stays fast among millions of rows: a count that stops, columns left out, and searches by index."""

from __future__ import annotations

import re
from typing import Any, cast

from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest
from django.utils.formats import number_format
from django.utils.functional import cached_property

from jobqueue.models import Job

#: Counted, paged through and acted on at once: so many, and no more.
CAP = 10_000
#: JSON and texts of any length; the list shows the error's beginning.
LEFT_OUT = ("payload", "result", "context", "progress", "error")
ERROR_SHOWN = 300

#: Short of it, nearly every id begins so.
SHORTEST_BEGINNING = 4
_BEGINNING = re.compile(rf"[0-9A-HJKMNP-TV-Z]{{{SHORTEST_BEGINNING},26}}")


class CappedPaginator(Paginator):  # type: ignore[type-arg]
    """Counts to the cap; ``capped`` says that there are more."""

    @cached_property
    def few(self) -> list[Any] | None:
        """The keys of all there is, if one page holds them."""
        keys = list(self._keys[: self.per_page + 1])
        return keys if len(keys) <= self.per_page else None

    @cached_property
    def found(self) -> int:
        return len(self.few) if self.few is not None else self._keys[: CAP + 1].count()

    @cached_property
    def count(self) -> int:
        return min(self.found, CAP)

    @property
    def capped(self) -> bool:
        return self.found > CAP

    @property
    def _keys(self) -> QuerySet[Any, Any]:
        # Without an order, for which a planner would rather walk the primary key than use the index of a filter.
        return cast("QuerySet[Job]", self.object_list).order_by().values_list("pk", flat=True)


class JobList(ChangeList):
    """A list without the large columns."""

    def get_queryset(self, request: HttpRequest, *args: Any, **kwargs: Any) -> QuerySet[Job]:
        found: QuerySet[Job] = super().get_queryset(request, *args, **kwargs)
        return found.defer(*LEFT_OUT).annotate(error_start=Left("error", ERROR_SHOWN))

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        if self.paginator.few is not None:
            self.result_list = self.queryset.filter(pk__in=self.paginator.few)
        elif not self.multi_page:  # a page as large as the cap would be all there is
            self.result_list = self.result_list[:CAP]

    @property
    def more_than(self) -> str:
        """The cap as people write it, where it was met."""
        return number_format(CAP, force_grouping=True) if self.paginator.capped else ""


def search(queryset: QuerySet[Job], term: str) -> QuerySet[Job]:
    """Find by id or its beginning, by key, by type or tenant; the first of these that fits anything decides."""
    beginning = term.upper()
    looks = [Q(pk=term), Q(idempotency_key=term)]
    if _BEGINNING.fullmatch(beginning):
        # A range of the primary key, for LIKE finds no index on Postgres; the highest ULID ends in Zs.
        looks.append(Q(pk__gte=beginning, pk__lte=beginning.ljust(26, "Z"), pk__startswith=beginning))
    for look in looks:
        if (found := queryset.filter(look)).exists():
            return found
    return queryset.filter(Q(type=term) | Q(tenant=term))
