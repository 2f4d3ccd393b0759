"""The page of a question: it counts the jobs of an order, asks, and takes the answer."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.forms import Media
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext

from jobqueue.admin import display
from jobqueue.admin.actions import confirm, forms
from jobqueue.admin.actions.verbs import VERBS, Verb, perform
from jobqueue.admin.base import BADGE, breadcrumb, counted, known_queues, page
from jobqueue.admin.links import Links, within_site
from jobqueue.control import BATCH
from jobqueue.errors import JobQueueError
from jobqueue.models import Order
from jobqueue.models.order import OrderState
from jobqueue.orders import error_told
from jobqueue.orders.confirmation import DELAY, needs_job
from jobqueue.orders.confirmation import confirm as confirm_order
from jobqueue.orders.selection import collect, is_readable, orders

LOOKS = Media(css={"all": ("admin/css/forms.css", "jobqueue/admin.css", "jobqueue/acting.css")}) + BADGE
IDS_SHOWN = 20
#: How many seconds of a request are spent on counting. Then the page is shown, and asks for the rest a second later.
COUNTING = 0.4


class Question:
    """The question about one order, in one request to the admin ``of`` jobs or dead letters."""

    def __init__(self, of: Any, request: HttpRequest, order_id: str) -> None:
        self.of, self.request = of, request
        self.address = of._address("question", order_id)
        self.links = Links(of.admin_site.name)
        # Only who asked may answer.
        mine = orders().filter(pk=order_id, user_id=str(request.user.pk), verb__in=[str(one) for one in of.actions])
        self.found: Order | None = None if "\0" in order_id else mine.first()

    def response(self) -> HttpResponse:
        """Answer the request."""
        if not self.of.has_view_permission(self.request):
            raise PermissionDenied
        order = self.found
        if order is None or not is_readable(order):
            return self._unanswerable()
        if not VERBS[order.verb].is_allowed(self.request):
            raise PermissionDenied
        if order.state != OrderState.ASKED:
            messages.info(self.request, gettext("You have answered this question already."))
            return HttpResponseRedirect(self._order_address(order))
        try:
            counted_so_far = collect(order, COUNTING)
            return self._unanswerable() if counted_so_far is None else self._of(counted_so_far)
        except JobQueueError as error:
            messages.error(self.request, error_told(error))
            return HttpResponseRedirect(self._back(order))

    def _unanswerable(self) -> HttpResponse:
        messages.info(self.request, gettext("This question can no longer be answered. Choose the jobs again."))
        return HttpResponseRedirect(self.of._address("changelist"))

    def _of(self, order: Order) -> HttpResponse:
        if order.counted_at is None:
            return self._counting(order)
        is_answer = self.request.method == "POST"
        why = self.request.GET.get("why", "")
        form = forms.form_of(order, self.request.POST if is_answer else None, why)
        if is_answer and order.total and form.is_valid():
            return self._take(order, form)
        return self._page(order, form)

    def _take(self, order: Order, form: forms.ReasonForm) -> HttpResponse:
        given = forms.instruction(VERBS[order.verb], self.request, form)
        page = self._order_address(order)
        if confirm_order(order, given, confirm.asked(order)) and not needs_job(order):
            perform(self.request, order, page)
            # At a pace, the jobs run for a while after the order: its page shows how they fare.
            return HttpResponseRedirect(self._back(order) if given.per_minute is None else page)
        return HttpResponseRedirect(page)

    def _back(self, order: Order) -> str:
        return within_site(order.back, self.of._address("changelist"))

    def _order_address(self, order: Order) -> str:
        return self.links.order(order.pk) or self._back(order)

    def _counting(self, order: Order) -> HttpResponse:
        found = {"count": counted(order.total), "looked": order.steps}
        title = gettext("%(label)s: counting the jobs") % {"label": VERBS[order.verb].text.label}
        context = {"media": LOOKS, "found": found, "back": self._back(order), "affected": None, "counting": True}
        answer = self._shown(title, context)
        answer["Refresh"] = f"1; url={self.address}"
        return answer

    def _page(self, order: Order, form: forms.ReasonForm) -> HttpResponse:
        verb: Verb = VERBS[order.verb]
        ids = sorted(order.wanted.get("ids", [])) if order.is_selection else []
        asked = confirm.asked(order)
        context = {
            "media": LOOKS,
            "verb": verb,
            "affected": confirm.affected_by(order),
            "counted_at": order.counted_at and display.at(order.counted_at),
            "will": confirm.effect(order),
            "asked": asked,
            "form": form,
            "queues": sorted(known_queues()) if isinstance(form, forms.MoveForm) else (),
            "in_background": needs_job(order),
            "at_once": BATCH,
            "delay": DELAY.seconds if verb.deletes else 0,
            "address": self.address,
            "back": self._back(order),
            "shown": ids[:IDS_SHOWN],
            "not_shown": len(ids) - IDS_SHOWN,
        }
        return self._shown(gettext("%(question)s?") % {"question": asked}, context)

    def _shown(self, title: str, context: dict[str, Any]) -> HttpResponse:
        return page(self.of, self.request, "jobqueue/admin/confirm.html", title, [breadcrumb(self.of)], **context)
