"""A new job from the admin: from a form made of its payload's schema, or as a copy of another job with edits."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import TextField
from django.db.models.functions import Cast
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobqueue import conf, foreign_json
from jobqueue.admin.actions.edit_payload import EditPayload
from jobqueue.admin.actions.forms import ReasonForm
from jobqueue.admin.actions.mixin import LOOKS
from jobqueue.admin.actions.payload_fields import PayloadField, payload_fields
from jobqueue.admin.actions.redacted_edit import NotRestored, restored
from jobqueue.admin.base import breadcrumb, known_queues, page
from jobqueue.api.admission import admit
from jobqueue.durations import LONGEST_DURATION
from jobqueue.errors import InvalidOption, JobQueueError, PayloadInvalid, PayloadRefused, PayloadUnfit
from jobqueue.handlers.options import NAME_LENGTH, Options
from jobqueue.handlers.registry import JobType, registry
from jobqueue.models import Job
from jobqueue.orders import error_told, log, together
from jobqueue.policy.redaction import redact_data, redact_text, secret_values

PERMISSION = "jobqueue.enqueue_job"


class NotOffered(Exception):
    """Jobs of a type can't be enqueued here; the message says why."""


def offered() -> list[JobType]:
    """List the types whose jobs can be enqueued here: those with payloads that people may write."""
    return sorted((one for one in registry if one.editable), key=lambda one: one.name)


def type_of(name: str) -> JobType:
    """Return a type whose jobs can be enqueued here. Raises NotOffered."""
    if name not in registry.names:
        told = gettext("This release has no handler for the type %(type)s, so its payloads can't be checked.")
        raise NotOffered(told % {"type": name})
    kind = registry.get(name)
    if not kind.editable:
        raise NotOffered(gettext("Jobs of the type %(type)s can't be enqueued here.") % {"type": name})
    return kind


def payload_of(job: Job, kind: JobType) -> Any:
    """Read the payload of a job, upgraded to the current version. Raises NotOffered."""
    row = Job.objects.using(conf.get("DATABASE")).filter(pk=job.pk)
    text = row.values_list(Cast("payload", TextField()), flat=True).first()
    try:
        payload = foreign_json.read(kind.payload.upgraded(text or "null", job.payload_version))
    except PayloadInvalid:
        payload = foreign_json.Unreadable("it can't be upgraded", "")
    if isinstance(payload, foreign_json.Unreadable):
        raise NotOffered(gettext("This release can't read the payload, so the job can't be copied."))
    return payload


class EnqueueForm(ReasonForm):
    """The payload by its properties, where and when the job runs, and the reason."""

    field_order = None

    queue = forms.CharField(
        label=_("Queue"), max_length=NAME_LENGTH, widget=forms.TextInput({"list": "jq-queues", "autocomplete": "off"})
    )
    priority = forms.IntegerField(
        label=_("Priority"), min_value=1, max_value=10, help_text=_("1 runs first, 10 last. The default is 5.")
    )
    tenant = forms.CharField(label=_("Tenant"), required=False, max_length=NAME_LENGTH)
    delay = forms.IntegerField(
        label=_("Wait"),
        required=False,
        min_value=0,
        max_value=int(LONGEST_DURATION.total_seconds()),
        help_text=_("Seconds until the job is due. Leave the field empty to run the job as soon as possible."),
    )

    def __init__(self, kind: JobType, like: Job | None, payload: Any, data: Any = None) -> None:
        options = kind.options if like is None else kind.options.but(queue=like.queue, priority=like.priority)
        first = {"queue": options.queue, "priority": options.priority, "tenant": like.tenant if like else ""}
        super().__init__(data, initial=first)
        self.kind, self.original = kind, payload
        shown = None if like is None else redact_data(payload)
        self.parts = payload_fields(kind, shown)
        own = {one.name: self._made(one, shown) for one in self.parts}
        why = self.fields.pop("why")
        self.fields = {**own, **self.fields, "why": why}
        #: What will be stored, as the payload type dumps it.
        self.stored = ""

    @staticmethod
    def _made(one: PayloadField, shown: Any) -> forms.Field:
        if not one.place:
            return one.made({} if shown is None else shown, True)
        is_given = isinstance(shown, dict) and one.place in shown
        return one.made(shown[one.place] if is_given else None, is_given)

    def clean(self) -> dict[str, Any]:
        given = super().clean() or self.cleaned_data
        if not self.errors:
            self._check_options(given)
            self._check_payload(given)
        return given

    def _check_options(self, given: dict[str, Any]) -> None:
        for name in ("queue", "tenant"):
            try:
                Options(**{name: given[name] or getattr(Options, name)})
            except InvalidOption as error:
                self.add_error(name, error_told(error))

    def _check_payload(self, given: dict[str, Any]) -> None:
        values: dict[str, Any] = {}
        for one in self.parts:
            if not one.is_left_out(given[one.name]):
                try:
                    values[one.place] = one.value(given[one.name])
                except ValidationError as error:
                    self.add_error(one.name, error)
        if self.errors:
            return
        whole = values[""] if self.parts[0].place == "" else values
        try:
            whole = restored(whole, {} if self.original is None else self.original)
            self.stored = self.kind.payload.dump_edited(whole)
        except NotRestored as error:
            self.add_error(None, str(error))
        except PayloadUnfit as error:
            for place, words in error.complaints:
                self._complain(place, words)
        except PayloadRefused as error:
            self.add_error(None, redact_text(error_told(error), secret_values(whole)))

    def _complain(self, place: str, words: str) -> None:
        """Put a complaint beside the field that it is about."""
        for one in self.parts:
            if one.place and (place == one.place or place.startswith(f"{one.place}.")):
                inside = place.removeprefix(one.place).lstrip(".")
                self.add_error(one.name, f"{inside}: {words}" if inside else words)
                return
        self.add_error(None if self.parts[0].place else "payload", f"{place}: {words}")

    def options(self) -> Options:
        """Return the options of the job."""
        given = self.cleaned_data
        delay = {} if given["delay"] is None else {"delay": timedelta(seconds=given["delay"])}
        return self.kind.options.but(
            queue=given["queue"], priority=given["priority"], tenant=given["tenant"] or None, **delay
        )


class Enqueue(EditPayload):
    """An admin of jobs with pages to enqueue a job, and to run one again as a new job."""

    def enqueue_address(self, request: HttpRequest) -> str:
        """Return the URL where this user can enqueue a job, or an empty string."""
        return self._address("enqueue") if request.user.has_perm(PERMISSION) and offered() else ""

    def again_address(self, request: HttpRequest, job: Job) -> str:
        """Return the URL where this user can run a job again as a new one, or an empty string."""
        known = job.type in registry.names and registry.get(job.type).editable
        return self._address("again", job.pk) if known and request.user.has_perm(PERMISSION) else ""

    def get_urls(self) -> list[URLPattern]:
        wrap, name = self.admin_site.admin_view, f"{self.opts.app_label}_{self.opts.model_name}"
        own = [
            path("_enqueue/", wrap(self.enqueue_view), name=f"{name}_enqueue"),
            path("<path:object_id>/again/", wrap(self.again_view), name=f"{name}_again"),
        ]
        return [*own, *super().get_urls()]

    def enqueue_view(self, request: HttpRequest) -> HttpResponse:
        """Offer the types, then the form of one, then enqueue the job."""
        if (refused := self._refused(request)) is not None:
            return refused
        name = request.GET.get("type", "")
        here, back = self._address("enqueue"), self._address("changelist")
        if not name:
            context = {"media": LOOKS, "types": [one.name for one in offered()], "address": here, "back": back}
            title = gettext("Enqueue a job")
            return page(self, request, "jobqueue/admin/enqueue_types.html", title, [breadcrumb(self)], **context)
        try:
            kind = type_of(name)
        except NotOffered as reason:
            messages.error(request, str(reason))
            return HttpResponseRedirect(here)
        return self._enqueue(request, kind, None, None, back)

    def again_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the form with the values of a job, then enqueue a new one."""
        if (refused := self._refused(request)) is not None:
            return refused
        job = self.get_object(request, unquote(object_id))
        if job is None:
            messages.info(request, gettext("This job is gone."))
            return HttpResponseRedirect(self._address("changelist"))
        try:
            kind = type_of(job.type)
            payload = payload_of(job, kind)
        except NotOffered as reason:
            messages.error(request, str(reason))
            return HttpResponseRedirect(self._address("change", job.pk))
        return self._enqueue(request, kind, job, payload, self._address("change", job.pk))

    def _refused(self, request: HttpRequest) -> HttpResponse | None:
        if not (request.user.has_perm(PERMISSION) and self.has_view_permission(request)):
            raise PermissionDenied
        is_known = request.method in ("GET", "HEAD", "POST")
        return None if is_known else HttpResponseNotAllowed(["GET", "POST"])

    def _enqueue(self, request: HttpRequest, kind: JobType, like: Job | None, payload: Any, back: str) -> HttpResponse:
        form = EnqueueForm(kind, like, payload, request.POST if request.method == "POST" else None)
        if form.is_valid() and (job_id := _admitted(request, form, like)):
            name = f"admin:{self.opts.app_label}_job_change"
            return HttpResponseRedirect(reverse(name, args=[job_id], current_app=self.admin_site.name))
        context = {
            "media": LOOKS,
            "form": form,
            "kind": kind,
            "like": like,
            "queues": sorted(known_queues()),
            "back": back,
        }
        title = gettext("Run again as a new job") if like else gettext("Enqueue %(type)s") % {"type": kind.name}
        trail = [breadcrumb(self), (back, str(like))] if like else [breadcrumb(self)]
        return page(self, request, "jobqueue/admin/enqueue.html", title, trail, **context)


def _admitted(request: HttpRequest, form: EnqueueForm, like: Job | None) -> str:
    """Enqueue the job, log it, and add a message. Return its id, or an empty string if it was refused."""
    kind, why = form.kind, form.cleaned_data["why"]
    did = gettext("Enqueued as a copy of %(id)s") % {"id": like.pk} if like else gettext("Enqueued")
    try:
        payload = kind.payload.load(form.stored, kind.payload.version)
        with together():
            (receipt,) = admit([kind.decide(form.options(), payload)])
            if receipt.is_shed:
                raise JobQueueError(gettext("The queue is full, and the job isn't urgent, so it was not enqueued."))
            log(request.user.pk, Job(pk=receipt.id, type=kind.name), f"{did}: {why}" if why else f"{did}.")
    except (JobQueueError, ValueError) as error:
        messages.error(request, redact_text(error_told(error), secret_values(foreign_json.read(form.stored))))
        return ""
    messages.success(request, gettext("The job is enqueued."))
    return receipt.id
