"""The orders in the admin: a list, a page for each, and the stop."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from jobqueue.admin import live
from jobqueue.admin.actions.verbs import VERBS
from jobqueue.admin.base import address, breadcrumb, page
from jobqueue.admin.links import Links, within_site
from jobqueue.admin.orders import rows
from jobqueue.admin.orders.jobs import GONE, jobs_now
from jobqueue.backends import current
from jobqueue.errors import JobQueueError
from jobqueue.models import Order
from jobqueue.models.job import STATUS_LABELS
from jobqueue.models.order import OPEN, OrderState
from jobqueue.orders import error_told
from jobqueue.orders.confirmation import stop
from jobqueue.orders.selection import orders

SHOWN = 100
#: Longer than any key.
MOST_DIGITS = 19


@admin.register(Order)
class OrderAdmin(live.LivePageAdmin):
    """The pages of the orders. Orders are given from lists, errors and jobs."""

    def get_urls(self) -> list[URLPattern]:
        name, wrap = f"{self.opts.app_label}_{self.opts.model_name}", self.admin_site.admin_view
        return [
            path("", wrap(self.changelist_view), name=f"{name}_changelist"),
            path("<path:object_id>/change/", wrap(self.change_view), name=f"{name}_change"),
            path("<path:object_id>/change/live/", wrap(self.change_live_view), name=f"{name}_change_live"),
            path("<path:object_id>/stop/", wrap(self.stop_view), name=f"{name}_stop"),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the orders, the newest first. A question that nobody has answered is no order."""
        self.require(request)
        found, below = orders().exclude(state=OrderState.ASKED).order_by("-pk"), request.GET.get("below", "")
        if below and "\0" not in below:
            found = found.filter(pk__lt=below)
        listed, now = list(found[: SHOWN + 1]), current().now()
        context = {
            "orders": [rows.row(self, one, now) for one in listed[:SHOWN]],
            "older": listed[SHOWN - 1].pk if len(listed) > SHOWN else "",
        }
        return page(self, request, "jobqueue/admin/orders.html", gettext("Orders"), **context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show one order, and what became of its jobs."""
        self.require(request)
        order = _find(object_id)
        if order is None:
            messages.info(request, gettext("There is no such order."))
            return HttpResponseRedirect(address(self, "changelist"))
        shown = self._one(request, order)
        reload = request.get_full_path()
        here = f"{address(self, 'change_live', quote(order.pk))}?{request.GET.urlencode()}"
        context = {**shown, **live.frame(here, reload, shown["now"])}
        return page(self, request, "jobqueue/admin/order.html", rows.what(order), [breadcrumb(self)], **context)

    @method_decorator(require_safe)
    def change_live_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Return the parts of an order's page that have changed. An order that is gone has no news."""
        self.require(request)
        order = _find(object_id)
        shown: dict[str, Any] = {"now": current().now(), "parts": []} if order is None else self._one(request, order)
        return live.changes(request, shown["now"], shown["parts"])

    def _one(self, request: HttpRequest, order: Order) -> dict[str, Any]:
        now, links = current().now(), Links(self.admin_site.name)
        job = current().jobs.get(order.job_id) if order.job_id else None
        may_stop = order.state in OPEN and _may_stop(request, order)
        status = request.GET.get("status", "")
        jobs = jobs_now(order, status if _is_status(status) else "", _number(request.GET.get("after", "")), links)
        shown = {
            "order": rows.row(self, order, now),
            "facts": list(rows.facts(order, now)),
            "reasons": rows.reasons(order),
            "notices": rows.notices(order, job, now),
            "seconds": rows.seconds_left(order, now),
            "stop_address": address(self, "stop", quote(order.pk)) if may_stop else "",
            "back": within_site(order.back),
            "job_address": links.job(order.job_id) if job is not None and order.job_id else "",
            "jobs": jobs,
            "status": status,
        }
        parts = [live.part("order", "order_facts", shown), live.part("jobs", "order_jobs", shown)]
        return {**shown, "now": now, "parts": parts}

    def stop_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Stop an order. After a link, show its page, which has the button."""
        if request.method not in ("GET", "POST"):
            return HttpResponseNotAllowed(["GET", "POST"])
        self.require(request)
        order = _find(object_id)
        if order is None:
            messages.info(request, gettext("There is no such order."))
            return HttpResponseRedirect(address(self, "changelist"))
        if not _may_stop(request, order):
            raise PermissionDenied
        if request.method == "POST":
            self._stop(request, order)
        return HttpResponseRedirect(address(self, "change", quote(order.pk)))

    def _stop(self, request: HttpRequest, order: Order) -> None:
        try:
            is_stopped = stop(order.pk, request.user.pk, request.user.get_username())
        except JobQueueError as error:
            messages.error(request, error_told(error))
            return
        if is_stopped:
            messages.success(request, gettext("The order is stopped."))
        else:
            messages.info(request, gettext("The order has ended already."))


def _find(object_id: str) -> Order | None:
    order_id = unquote(object_id)
    # Postgres rejects texts with a NUL.
    return None if "\0" in order_id else orders().exclude(state=OrderState.ASKED).filter(pk=order_id).first()


def _may_stop(request: HttpRequest, order: Order) -> bool:
    """Return whether the user has the permission of the verb."""
    return order.verb in VERBS and VERBS[order.verb].is_allowed(request)


def _is_status(text: str) -> bool:
    return text == GONE or text in dict(STATUS_LABELS)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < MOST_DIGITS else 0
