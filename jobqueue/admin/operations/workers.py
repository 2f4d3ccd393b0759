"""The workers in the admin: a read-only list, and a page for each with its jobs."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.translation import gettext

from jobqueue import conf
from jobqueue.admin.base import PageAdmin, address, breadcrumb, page
from jobqueue.admin.operations import worker_rows
from jobqueue.backends import current
from jobqueue.models import Worker
from jobqueue.records.worker import is_recent


@admin.register(Worker)
class WorkerAdmin(PageAdmin):
    """The read-only pages of the workers."""

    def get_urls(self) -> list[URLPattern]:
        name, wrap = f"{self.opts.app_label}_{self.opts.model_name}", self.admin_site.admin_view
        return [
            path("", wrap(self.changelist_view), name=f"{name}_changelist"),
            path("<path:object_id>/change/", wrap(self.change_view), name=f"{name}_change"),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show all workers, with warnings."""
        self.require(request)
        now = current().now()
        rows, more = worker_rows.newest()
        context = {
            "workers": [worker_rows.shown(self, one, now) for one in rows],
            "more": more,
            "notices": worker_rows.notices(rows, worker_rows.holdings(), now, all_known=not more),
        }
        return page(self, request, "jobqueue/admin/workers.html", gettext("Workers"), **context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show one worker and its jobs."""
        self.require(request)
        worker = _find(unquote(object_id))
        if worker is None:
            words = gettext("This worker is gone: it ended, or was silent for a day. Its jobs are not lost.")
            messages.info(request, words)
            return HttpResponseRedirect(address(self, "changelist"))
        now = current().now()
        jobs, more = worker_rows.runs(self, worker.owner, now)
        held = worker_rows.holdings().get(worker.owner, worker_rows.Holding())
        context = {
            "worker": worker_rows.shown(self, worker, now),
            "all_types": ", ".join(worker_rows.texts(worker.types)),
            "jobs": jobs,
            "more": more,
            "notices": [] if is_recent(worker.seen_at, now) else [worker_rows.silence(worker, held, now)],
        }
        title = gettext("Worker %(name)s") % {"name": worker.name}
        return page(self, request, "jobqueue/admin/worker.html", title, [breadcrumb(self)], **context)


def _find(owner: str) -> Worker | None:
    # Postgres rejects texts with a NUL.
    return None if "\0" in owner else Worker.objects.using(conf.get("DATABASE")).filter(pk=owner).first()
