"""The pages that set and unset a limit of a queue or job type."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobqueue import control
from jobqueue.admin.actions.forms import ReasonForm
from jobqueue.admin.base import address, breadcrumb, page
from jobqueue.admin.operations import limit_rows, queue_rows
from jobqueue.admin.operations.limit_forms import LimitForm, limit_of
from jobqueue.errors import JobQueueError
from jobqueue.models import Queue
from jobqueue.orders import error_told, together
from jobqueue.records import Limit, Scope

MAY_SET = "jobqueue.set_limit"
TITLES: dict[tuple[str, Scope], Any] = {
    ("set", Scope.QUEUE): _("Set a limit of the queue %(name)s"),
    ("set", Scope.TYPE): _("Set a limit of the job type %(name)s"),
    ("unset", Scope.QUEUE): _("Unset a limit of the queue %(name)s?"),
    ("unset", Scope.TYPE): _("Unset a limit of the job type %(name)s?"),
}


def set_view(of: admin.ModelAdmin[Any], request: HttpRequest, scope: Scope, name: str) -> HttpResponse:
    """Ask for a limit and the reason, and store it."""
    if request.method not in ("GET", "HEAD", "POST"):
        return HttpResponseNotAllowed(["GET", "POST"])
    given = {one: request.GET[one] for one in ("kind", "per", "key") if one in request.GET}
    form = LimitForm(scope, name, request.POST if request.method == "POST" else None, initial=given)
    if form.is_valid():
        _set(request, form.limit, form.cleaned_data["why"])
        return HttpResponseRedirect(_back(of, scope, name))
    return _page(of, request, "set", scope, name, form)


def unset_view(of: admin.ModelAdmin[Any], request: HttpRequest, scope: Scope, name: str) -> HttpResponse:
    """Explain what unsetting a limit does, take the reason, and delete the stored limit."""
    if request.method not in ("GET", "HEAD", "POST"):
        return HttpResponseNotAllowed(["GET", "POST"])
    limit, form = limit_of(scope, name, request.GET), ReasonForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        _unset(request, limit, form.cleaned_data["why"])
        return HttpResponseRedirect(_back(of, scope, name))
    return _page(of, request, "unset", scope, name, form)


def _page(
    of: admin.ModelAdmin[Any], request: HttpRequest, verb: str, scope: Scope, name: str, form: ReasonForm
) -> HttpResponse:
    queues, types = ([name], []) if scope is Scope.QUEUE else ([], [name])
    context = {
        "verb": verb,
        "form": form,
        "rows": limit_rows.rows(of, queues, types),
        "label": gettext("Set") if verb == "set" else gettext("Unset"),
        "back": _back(of, scope, name),
    }
    title = TITLES[verb, scope] % {"name": name}
    return page(of, request, "jobqueue/admin/limit.html", title, [breadcrumb(of)], **context)


def _back(of: admin.ModelAdmin[Any], scope: Scope, name: str) -> str:
    return queue_rows.one_queue(of, name) if scope is Scope.QUEUE else address(of, "changelist")


def _set(request: HttpRequest, limit: Limit, why: str) -> None:
    """Store a limit, log it, and add a message."""
    told = limit_rows.words(limit) + (f" ({limit.key})" if limit.key else "")
    try:
        with together():
            control.set_limit(limit, why, request.user.get_username())
            _log(request, limit, gettext("Limit set to %(number)s") % {"number": told}, why)
    except JobQueueError as error:
        messages.error(request, error_told(error))
        return
    messages.success(
        request,
        gettext("%(name)s has the limit %(number)s on every worker within a second. Running jobs continue.")
        % {"name": limit.name, "number": told},
    )


def _unset(request: HttpRequest, limit: Limit, why: str) -> None:
    try:
        with together():
            if was_stored := control.unset_limit(limit):
                _log(request, limit, gettext("Limit unset"), why)
    except JobQueueError as error:
        messages.error(request, error_told(error))
        return
    if was_stored:
        text = gettext("The limit of %(name)s is unset. One in code applies again.")
        messages.success(request, text % {"name": limit.name})
    else:
        messages.info(request, gettext("%(name)s has no such stored limit.") % {"name": limit.name})


def _log(request: HttpRequest, limit: Limit, did: str, why: str) -> None:
    # Logged under the name, because the limit's row is deleted when it is unset.
    target = Queue(pk=limit.name, scope=limit.scope.value, name=limit.name)
    LogEntry.objects.log_actions(request.user.pk, [target], CHANGE, f"{did}: {why}" if why else f"{did}.")  # type: ignore[arg-type]
