"""The dashboard: a page that says at a glance how the queue is, and the same in pieces for a page that is open."""

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

from jobqueue.admin.base import LOOKS, Entry, address, page
from jobqueue.admin.dashboard import scales
from jobqueue.admin.dashboard.panels import WINDOW_LABELS, parts
from jobqueue.admin.dashboard.snapshot import Asked, Snapshot, look
from jobqueue.admin.search.query import spelled
from jobqueue.handlers.registry import registry
from jobqueue.models import Dashboard
from jobqueue.observe.figures import WINDOWS
from jobqueue.records import Filter
from jobqueue.states import JobStatus

#: The entries that are lists of jobs.
LISTS = ("job", "deadletter")
#: How many seconds an open page waits before it asks again.
EVERY = 5


@admin.register(Dashboard)
class DashboardAdmin(Entry):
    """The dashboard; its list is the page."""

    @property
    def media(self) -> Media:
        return LOOKS + Media(js=[Script("jobqueue/dashboard.js", defer=True)])  # type: ignore[list-item]

    def get_urls(self) -> list[URLPattern]:
        # These alone: there are no rows to be shown, added or deleted.
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
        """Answer with the parts that are not as the page has them; it names those it has by their digests."""
        self.require(request)
        seen = look(Asked.of(request.GET))
        known = request.GET.get("known", "").split(",")
        changed = {
            part.name: {"digest": part.digest, "html": part.body}
            for part in parts(seen, self._address)
            if part.digest not in known
        }
        return JsonResponse({"at": _time(seen), "parts": changed}, headers={"Cache-Control": "no-store"})

    def board(self, request: HttpRequest) -> dict[str, Any]:
        """Gather what the page shows, for whoever may see it."""
        asked = Asked.of(request.GET)
        seen = look(asked)
        return {
            "parts": parts(seen, self._address),
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
        """Say where another entry is that shows what is named; a site need not have it."""
        try:
            there = reverse(f"admin:{self.opts.app_label}_{model}_changelist", current_app=self.admin_site.name)
        except NoReverseMatch:
            return ""
        query = {"q": spelled(_filter(**names))} if model in LISTS and names else names
        return f"{there}?{urlencode(query)}" if query else there


def _filter(status: str = "", type: str = "", queue: str = "") -> Filter:  # noqa: A002 - the columns' names
    statuses = frozenset({JobStatus(status)}) if status else frozenset()
    return Filter(statuses=statuses, types=frozenset({type} - {""}), queues=frozenset({queue} - {""}))


def _names(column: str, seen: Snapshot) -> list[str]:
    """List the names to choose from: those that the code knows, those in the figures, and the one asked for."""
    of_code: dict[str, Iterable[str]] = {
        "type": registry.names,
        "queue": ["default", *(one.options.queue for one in registry)],
    }
    past = {"type": seen.figures.by_type, "queue": seen.figures.by_queue}[column]
    met = [*(getattr(depth, column) for depth in seen.depths), *(share.name for share in past)]
    return sorted({*of_code[column], *met, getattr(seen.asked, column)} - {""})


def _time(seen: Snapshot) -> str:
    return f"{scales.here(seen.now):%H:%M:%S}"
