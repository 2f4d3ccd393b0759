"""The retry of a job with another payload: its form, the review of the changes, and the retry."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NoReturn

from django import forms
from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import TextField
from django.db.models.functions import Cast
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobqueue import conf, control, foreign_json
from jobqueue.admin.actions.confirm import is_answer
from jobqueue.admin.actions.forms import ReasonForm
from jobqueue.admin.actions.mixin import LOOKS, ActionsMixin
from jobqueue.admin.actions.redacted_edit import NotRestored, differences, restored
from jobqueue.admin.actions.verbs import VERBS, tell_gone, tell_left_alone
from jobqueue.admin.base import breadcrumb, page
from jobqueue.errors import JobQueueError, PayloadInvalid, PayloadRefused, PayloadUnfit
from jobqueue.handlers.registry import JobType, registry
from jobqueue.models import Job
from jobqueue.orders import error_told, log, together, worded
from jobqueue.policy.redaction import redact_data, redact_text, secret_values

PERMISSION = "jobqueue.edit_job"
#: How many characters a text area and a request handle well.
LONGEST_EDITED = 250_000
CHANGES_SHOWN = 200


class NotEdited(Exception):
    """A job's payload can't be edited here; the message says why."""


@dataclass(frozen=True, slots=True)
class EditablePayload:
    """A payload to edit, upgraded to the current version: in full, and redacted as text."""

    job: Job
    kind: JobType
    payload: Any
    shown: str

    @property
    def seen(self) -> str:
        """The version token that tells whether the job changed since the form was rendered."""
        return self.job.updated_at.isoformat()


def editable_payload(job: Job) -> EditablePayload:
    """Read the payload of a job. Raises NotEdited with the reason if it can't be edited."""
    if not VERBS["retry"].accepts(job.status):
        raise NotEdited(gettext("Only the payload of cancelled jobs and dead letters can be edited."))
    if job.type not in registry.names:
        told = gettext("This release has no handler for the type %(type)s, so its payloads can't be checked.")
        raise NotEdited(told % {"type": job.type})
    kind = registry.get(job.type)
    if not kind.editable:
        raise NotEdited(gettext("Payloads of the type %(type)s can't be edited.") % {"type": job.type})
    row = Job.objects.using(conf.get("DATABASE")).filter(pk=job.pk)
    text = row.values_list(Cast("payload", TextField()), flat=True).first()
    try:
        payload = foreign_json.read(kind.payload.upgraded(text or "null", job.payload_version))
    except PayloadInvalid as error:
        raise _not_read() from error
    if isinstance(payload, foreign_json.Unreadable):
        raise _not_read()
    shown = json.dumps(redact_data(payload), indent=2, ensure_ascii=False)
    if len(shown) > LONGEST_EDITED:
        raise NotEdited(gettext("The payload is too long to be edited here."))
    return EditablePayload(job, kind, payload, shown.encode(errors="backslashreplace").decode())


def _not_read() -> NotEdited:
    return NotEdited(gettext("This release can't read the payload, so it can't be edited."))


class PayloadForm(ReasonForm):
    """The payload as JSON, and the reason for the change."""

    field_order = ("payload", "why")

    payload = forms.CharField(
        label=_("Payload"),
        strip=False,
        max_length=2 * LONGEST_EDITED,
        widget=forms.Textarea(
            attrs={"rows": 20, "spellcheck": "false", "autocapitalize": "off", "autocomplete": "off", "wrap": "soft"}
        ),
        help_text=_("JSON. A hidden value, shown as [redacted], is kept unless you replace it."),
    )
    seen = forms.CharField(widget=forms.HiddenInput)

    def __init__(self, subject: EditablePayload, data: Any = None) -> None:
        super().__init__(data, initial={"payload": subject.shown, "seen": subject.seen})
        self.subject = subject
        #: What will be stored: as the user wrote it, with its hidden values; and as the payload type dumps it.
        self.whole: Any = None
        self.stored: Any = None

    def clean(self) -> dict[str, Any]:
        if self.cleaned_data.get("seen") != self.subject.seen:
            # Otherwise the hidden values of one payload could end up in another.
            raise ValidationError(gettext("The job has changed since you opened this page. Go back and open it again."))
        return self.cleaned_data

    def clean_payload(self) -> str:
        text: str = self.cleaned_data["payload"]
        try:
            self.whole = restored(read_json(text), self.subject.payload)
            self.stored = foreign_json.read(self.subject.kind.payload.dump_edited(self.whole))
        except NotRestored as error:
            raise ValidationError(str(error)) from error
        except PayloadUnfit as error:
            raise ValidationError([f"{place}: {words}" for place, words in error.complaints]) from error
        except PayloadRefused as error:
            raise ValidationError(redact_text(error_told(error), secret_values(self.whole))) from error
        if not differences(self.subject.payload, self.stored):
            raise ValidationError(gettext("The payload is unchanged. To run the job again with it, use “Retry”."))
        return text


def read_json(text: str) -> Any:
    """Read JSON that a person wrote. Raises ValidationError with the place of a mistake."""

    def refuse(constant: str) -> NoReturn:
        raise ValidationError(gettext("%(constant)s is not JSON.") % {"constant": constant})

    if foreign_json.obstacle(text, makes_numbers=False):
        raise ValidationError(gettext("The JSON is nested too deeply."))
    if foreign_json.obstacle(text):
        raise ValidationError(gettext("The JSON holds a number that is too long."))
    try:
        return json.loads(text, parse_constant=refuse)
    except json.JSONDecodeError as error:
        told = gettext("This is not valid JSON: see line %(line)d, column %(column)d.")
        raise ValidationError(told % {"line": error.lineno, "column": error.colno}) from error
    except ValueError as error:
        raise ValidationError(gettext("The JSON holds a number that is too long.")) from error


class EditPayload(ActionsMixin):
    """An admin of jobs with a page to retry a job with another payload."""

    def edit_address(self, request: HttpRequest, job: Job) -> str:
        """Return the URL where this user can edit the payload of a job, or an empty string."""
        if not request.user.has_perm(PERMISSION):
            return ""
        known = job.type in registry.names and registry.get(job.type).editable
        return self._address("edit", job.pk) if known and VERBS["retry"].accepts(job.status) else ""

    def get_urls(self) -> list[URLPattern]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_edit"
        own = path("<path:object_id>/edit/", self.admin_site.admin_view(self.edit_view), name=name)
        return [own, *super().get_urls()]

    def edit_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the form, then the changes for confirmation, then retry the job."""
        if request.method not in ("GET", "HEAD", "POST"):
            return HttpResponseNotAllowed(["GET", "POST"])
        if not (request.user.has_perm(PERMISSION) and self.has_view_permission(request)):
            raise PermissionDenied
        job_id = unquote(object_id)
        job = self.get_object(request, job_id)
        if job is None:
            tell_gone(request, VERBS["retry"], job_id)
            return HttpResponseRedirect(self._address("changelist"))
        try:
            subject = editable_payload(job)
        except NotEdited as reason:
            messages.error(request, str(reason))
            return HttpResponseRedirect(self._address("change", job.pk))
        form = PayloadForm(subject, request.POST if request.method == "POST" else None)
        if not form.is_valid() or "again" in request.POST:
            return self._show(request, subject, form)
        return self._store(request, subject, form) if is_answer(request) else self._review(request, subject, form)

    def _show(self, request: HttpRequest, subject: EditablePayload, form: PayloadForm) -> HttpResponse:
        return self._page(
            request, subject, "jobqueue/admin/edit.html", gettext("Retry with another payload"), form=form
        )

    def _review(self, request: HttpRequest, subject: EditablePayload, form: PayloadForm) -> HttpResponse:
        found = differences(subject.payload, form.stored)
        return self._page(
            request,
            subject,
            "jobqueue/admin/edit_review.html",
            gettext("Retry with this payload?"),
            changes=found[:CHANGES_SHOWN],
            not_shown=max(0, len(found) - CHANGES_SHOWN),
            kept=[(name, form.cleaned_data[name]) for name in ("payload", "why", "seen")],
            why=form.cleaned_data["why"],
        )

    def _store(self, request: HttpRequest, subject: EditablePayload, form: PayloadForm) -> HttpResponse:
        job, why = subject.job, form.cleaned_data["why"]
        message = gettext("Retried with another payload")
        try:
            with together():
                handled = control.retry_edited(job.pk, form.whole, seen=job.updated_at)
                if handled.done:
                    log(request.user.pk, job, f"{message}: {why}" if why else f"{message}.")
        except (JobQueueError, ValueError) as error:
            messages.error(request, redact_text(error_told(error), secret_values(form.whole)))
            return HttpResponseRedirect(self._address("change", job.pk))
        if handled.done:
            messages.success(request, gettext("The job is queued again with another payload."))
        tell_left_alone(request, worded(handled.refused))
        return HttpResponseRedirect(self._where_it_is(request, job))

    def _page(
        self, request: HttpRequest, subject: EditablePayload, template: str, title: str, **context: Any
    ) -> HttpResponse:
        back = self._address("change", subject.job.pk)
        trail = [breadcrumb(self), (back, str(subject.job))]
        here = self._address("edit", subject.job.pk)
        shared = {"media": LOOKS, "job": subject.job, "back": back, "address": here}
        return page(self, request, template, title, trail, **shared, **context)
