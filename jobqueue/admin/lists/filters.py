"""The filters in the sidebar of the lists.

Their choices come from the code, from pauses, and from the indexes of jobs that aren't completed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobqueue.admin.base import known_queues
from jobqueue.admin.search.combine import BadQuery
from jobqueue.admin.search.query import check, read_status
from jobqueue.backends import current
from jobqueue.clock import SYSTEM
from jobqueue.handlers.registry import registry
from jobqueue.models import Job
from jobqueue.models.job import STATUS_LABELS
from jobqueue.records import Filter

#: From this many choices on, a search box is quicker than a list of links.
MANY = 12
#: How many queues are read from the table, of each status.
MOST_QUEUES = 200

WINDOWS = {
    "15m": (timedelta(minutes=15), _("Last 15 minutes")),
    "1h": (timedelta(hours=1), _("Last hour")),
    "1d": (timedelta(days=1), _("Last day")),
    "7d": (timedelta(days=7), _("Last week")),
}


class _Beside(admin.SimpleListFilter):
    """Offers choices. ``results.wanted`` reads the chosen ones together with the search box."""

    parameter_name: str

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        return queryset


class StatusFilter(_Beside):
    """The five statuses."""

    title = _("status")
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, Any]]:
        return STATUS_LABELS


class _Names(_Beside):
    """Names that this process knows, and the one in the URL even if it is unknown."""

    @abstractmethod
    def names(self) -> Iterable[str]:
        """List the choices."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, Any]]:
        asked = {self.value()} - {None, ""}
        return [(name, name) for name in sorted({*self.names(), *map(str, asked)})]

    @property
    def template(self) -> str:  # type: ignore[override]
        return "admin/filter/django_admin_list_filter.html" if self._searchable() else admin.SimpleListFilter.template

    def _searchable(self) -> bool:
        return len(self.lookup_choices) >= MANY and apps.is_installed("dalf")

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        yield from super().choices(changelist)
        if self._searchable():
            yield {"field_name": self.parameter_name, "lookup_kwarg": self.parameter_name}


class TypeFilter(_Names):
    """The job types of this release, and their aliases."""

    title = _("type")
    parameter_name = "type"

    def names(self) -> Iterable[str]:
        return registry.names


class QueueFilter(_Names):
    """The queues that job types name, those that are paused, and those of jobs that aren't completed."""

    title = _("queue")
    parameter_name = "queue"

    def names(self) -> Iterable[str]:
        return {*known_queues(), *filter(_is_possible, current().jobs.queues(MOST_QUEUES))}


def _is_possible(name: str) -> bool:
    """Return whether an address can have a name that another program wrote."""
    try:
        check(name)
    except BadQuery:
        return False
    return True


class CreatedFilter(_Beside):
    """How long ago a job was enqueued, at most."""

    title = _("time of creation")
    parameter_name = "created"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, Any]]:
        return [(name, label) for name, (_length, label) in WINDOWS.items()]


def _status(value: str) -> Filter:
    return Filter(statuses=frozenset({read_status(value)}))


def _type(value: str) -> Filter:
    check(value)
    return Filter(types=frozenset({value}))


def _queue(value: str) -> Filter:
    check(value)
    return Filter(queues=frozenset({value}))


def _created(value: str) -> Filter:
    if value not in WINDOWS:
        raise BadQuery(
            gettext("There is no such time of creation. Choose one of %(names)s.") % {"names": ", ".join(WINDOWS)}
        )
    length, _label = WINDOWS[value]
    return Filter(created_after=SYSTEM.now() - length)


#: How the value of each filter is read. The functions raise BadQuery.
BESIDE: dict[str, Callable[[str], Filter]] = {
    StatusFilter.parameter_name: _status,
    TypeFilter.parameter_name: _type,
    QueueFilter.parameter_name: _queue,
    CreatedFilter.parameter_name: _created,
}
