"""The dashboard: a page with the state of the queue, and a view that sends its changes to an open page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.forms import Media, Script
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import NoReverseMatch, URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from jobqueue.admin.base import LOOKS, PageAdmin, address, page
from jobqueue.admin.dashboard import scales
from jobqueue.admin.dashboard.panels import WINDOW_LABELS, panels
from jobqueue.admin.dashboard.snapshot import Asked, Snapshot, look
from jobqueue.admin.search.query import spelled
from jobqueue.handlers.registry import registry
from jobqueue.models import Dashboard
from jobqueue.observe.metrics import WINDOWS
from jobqueue.records import Filter
from jobqueue.states import JobStatus

#: The models with lists of jobs.
LISTS = ("job", "deadletter")
#: The interval, in seconds, at which an open page asks for changes.
EVERY = 5


@admin.register(Dashboard)
class DashboardAdmin(PageAdmin):
    """The dashboard, in place of a change list."""

    @property
    def media(self) -> Media:
        return LOOKS + Media(js=[Script("jobqueue/dashboard.js", defer=True)])  # type: ignore[list-item]

    def get_urls(self) -> list[URLPattern]:
        # Only these: there are no rows to show, add or delete.
        view, name = self.admin_site.admin_view, f"{self.opts.app_label}_{self.opts.model_name}"
        return [
            path("", view(self.changelist_view), name=f"{name}_changelist"),
            path("live/", view(self.live_view), name=f"{name}_live"),
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
        known = request.GET.get("known", "").split(",")
        changed = {
            panel.name: {"digest": panel.digest, "html": panel.body}
            for panel in panels(seen, self._address)
            if panel.digest not in known
        }
        return JsonResponse({"at": _time(seen), "parts": changed}, headers={"Cache-Control": "no-store"})

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
            "live": f"{address(self, 'live')}?{asked.query}",
            "reload": f"?{asked.query}",
            "every": EVERY,
            "at": _time(seen),
        }

    def _address(self, model: str, **names: str) -> str:
        """Return the URL of another admin's page, filtered, or an empty string if the site doesn't have it."""
        try:
            there = reverse(f"admin:{self.opts.app_label}_{model}_changelist", current_app=self.admin_site.name)
        except NoReverseMatch:
            return ""
        query = {"q": spelled(_filter(**names))} if model in LISTS and names else names
        # Other programs may have stored text that has no UTF-8.
        return f"{there}?{urlencode(query, errors='replace')}" if query else there


def _filter(status: str = "", type: str = "", queue: str = "", id: str = "") -> Filter:  # noqa: A002 - columns
    statuses = frozenset({JobStatus(status)}) if status else frozenset()
    types, queues, ids = (frozenset({one} - {""}) for one in (type, queue, id))
    return Filter(statuses=statuses, types=types, queues=queues, ids=ids)


def _names(column: str, seen: Snapshot) -> list[str]:
    """List the names to choose from: those in the code, in the metrics, and in the URL."""
    of_code: dict[str, Iterable[str]] = {
        "type": registry.names,
        "queue": ["default", *(one.options.queue for one in registry)],
    }
    past = {"type": seen.figures.by_type, "queue": seen.figures.by_queue}[column]
    met = [*(getattr(depth, column) for depth in seen.depths), *(share.name for share in past)]
    return sorted({*of_code[column], *met, getattr(seen.asked, column)} - {""})


def _time(seen: Snapshot) -> str:
    return f"{scales.here(seen.now):%H:%M:%S}"
