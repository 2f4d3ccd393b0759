"""The dashboard: a page with the state of the queue, and a view that sends its changes to an open page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import NoReverseMatch, URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.text import capfirst
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_safe

from jobqueue.admin import live
from jobqueue.admin.base import address, counted, page
from jobqueue.admin.dashboard.panels import WINDOW_LABELS, panels
from jobqueue.admin.dashboard.snapshot import Asked, Snapshot, look
from jobqueue.admin.search.query import spelled
from jobqueue.backends import current
from jobqueue.handlers.registry import registry
from jobqueue.models import Dashboard
from jobqueue.observe import health
from jobqueue.observe.metrics import WINDOWS
from jobqueue.records import Filter
from jobqueue.relay.outbox import waiting_in
from jobqueue.states import JobStatus

#: The models with lists of jobs.
LISTS = ("job", "deadletter")


@admin.register(Dashboard)
class DashboardAdmin(live.LivePageAdmin):
    """The dashboard, in place of a change list."""

    def get_urls(self) -> list[URLPattern]:
        # Only these: there are no rows to show, add or delete.
        view, name = self.admin_site.admin_view, f"{self.opts.app_label}_{self.opts.model_name}"
        return [
            path("", view(self.changelist_view), name=f"{name}_changelist"),
            path("live/", view(self.live_view), name=f"{name}_live"),
            path("attention/", view(self.attention_view), name=f"{name}_attention"),
        ]

    @method_decorator(require_safe)
    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        self.require(request)
        title = str(capfirst(self.opts.verbose_name))
        context = {**self.board(request), **(extra_context or {})}
        return page(self, request, "jobqueue/admin/dashboard.html", title, **context)

    @method_decorator(require_safe)
    def live_view(self, request: HttpRequest) -> HttpResponse:
        """Return the panels that have changed. The page sends the digests of those that it has."""
        self.require(request)
        seen = look(Asked.of(request.GET))
        return live.changes(request, seen.now, panels(seen, self._address))

    @method_decorator(require_safe)
    def attention_view(self, request: HttpRequest) -> HttpResponse:
        """Return how many problems need attention, for the badge beside the app's name."""
        self.require(request)
        backend = current()
        found = health.findings(health.look(backend, waiting_in(backend)))
        count = sum(one.level > health.Level.NOTICE for one in found)
        text = ngettext("%(count)s problem needs attention", "%(count)s problems need attention", count)
        answer = {"count": count, "text": text % {"count": counted(count)}}
        return JsonResponse(answer, headers={"Cache-Control": "no-store"})

    def board(self, request: HttpRequest) -> dict[str, Any]:
        """Return the context of the page."""
        asked = Asked.of(request.GET)
        seen = look(asked)
        return {
            "panels": panels(seen, self._address),
            "asked": asked,
            "windows": [
                (label, f"?{asked._replace(window=WINDOWS[name]).query}", name == asked.window.name)
                for name, label in WINDOW_LABELS.items()
            ],
            "choices": [
                (name, label, getattr(asked, name), _names(name, seen))
                for name, label in (("type", gettext("Type")), ("queue", gettext("Queue")))
            ],
            **live.frame(f"{address(self, 'live')}?{asked.query}", f"?{asked.query}", seen.now),
        }

    def _address(self, model: str, **names: str) -> str:
        """Return the URL of another admin's page, filtered, or an empty string if the site doesn't have it."""
        try:
            there = reverse(f"admin:{self.opts.app_label}_{model}_changelist", current_app=self.admin_site.name)
        except NoReverseMatch:
            return ""
        names = {name: value for name, value in names.items() if value}
        query = {"q": spelled(_filter(**names))} if model in LISTS and names else names
        if model == "deadletter" and set(names) == {"type"}:
            query = {"of": names["type"]}  # by error
        # Other programs may have stored text that has no UTF-8.
        return f"{there}?{urlencode(query, errors='replace')}" if query else there


def _filter(  # named as the columns are
    *,
    status: str = "",
    type: str = "",  # noqa: A002
    queue: str = "",
    id: str = "",  # noqa: A002
    tenant: str = "",
) -> Filter:
    statuses = frozenset({JobStatus(status)}) if status else frozenset()
    types, queues, ids = (frozenset({one} - {""}) for one in (type, queue, id))
    return Filter(statuses=statuses, types=types, queues=queues, ids=ids, tenant=tenant or None)


def _names(column: str, seen: Snapshot) -> list[str]:
    """List the names to choose from: those in the code, in the metrics, and in the URL."""
    of_code: dict[str, Iterable[str]] = {
        "type": registry.names,
        "queue": ["default", *(one.options.queue for one in registry)],
    }
    past = {"type": seen.figures.by_type, "queue": seen.figures.by_queue}[column]
    met = [*(getattr(depth, column) for depth in seen.depths), *(share.name for share in past)]
    return sorted({*of_code[column], *met, getattr(seen.asked, column)} - {""})
