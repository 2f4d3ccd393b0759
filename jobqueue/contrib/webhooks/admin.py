"""The admin of endpoints and deliveries. Secrets can be set, but are never shown again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from jobqueue.contrib.webhooks import reach
from jobqueue.contrib.webhooks.models import Delivery, Endpoint
from jobqueue.contrib.webhooks.signing import InvalidSecret, check_secret, new_secret
from jobqueue.ids import is_ulid

if TYPE_CHECKING:  # Django's own classes cannot be subscripted
    _Form = forms.ModelForm[Endpoint]
    _EndpointAdmin = admin.ModelAdmin[Endpoint]
    _DeliveryAdmin = admin.ModelAdmin[Delivery]
else:
    _Form, _EndpointAdmin, _DeliveryAdmin = forms.ModelForm, admin.ModelAdmin, admin.ModelAdmin


class EndpointForm(_Form):
    """The form of an endpoint, with a field for a new secret."""

    new_secret = forms.CharField(
        label=_("New secret"), required=False, max_length=500, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )

    class Meta:
        model = Endpoint
        fields = ("name", "url", "enabled")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if (enabled := self.fields.get("enabled")) is not None:
            enabled.show_hidden_initial = True  # distinguishes an operator's change from a worker's
        field, fresh = self.fields.get("new_secret"), new_secret()
        if field is None:
            return  # the user may only view it
        field.help_text = gettext(
            "Copy the secret to the receiver before you save, because it is not shown again. Write env:NAME to read "
            "the secret from an environment variable of the workers."
        )
        if self.instance.pk is None:
            field.initial, field.required = fresh, True
        else:
            kept = gettext("Leave the field empty to keep the current secret. A new secret: %(secret)s") % {
                "secret": fresh
            }
            field.help_text = f"{kept}. {field.help_text}"

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"]
        # An endpoint whose address is no longer allowed can still be renamed and disabled.
        if url != self.instance.url and (why := reach.refusal(url)):
            raise forms.ValidationError(why)
        return url

    def clean_new_secret(self) -> str:
        secret: str = self.cleaned_data["new_secret"]
        if secret:
            try:
                check_secret(secret)
            except InvalidSecret as error:
                raise forms.ValidationError(str(error)) from error
        return secret


@admin.register(Endpoint)
class EndpointAdmin(_EndpointAdmin):
    """The admin of endpoints, with actions to enable and disable them."""

    form = EndpointForm
    list_display = ("label", "enabled", "failures", "failing_since", "delivered_at", "disabled_reason")
    list_filter = ("enabled",)
    search_fields = ("name",)
    readonly_fields = (
        "disabled_reason", "failures", "failing_since", "delivered_at", "previous_until", "created_at", "deliveries",
    )  # fmt: skip
    fields = ("name", "url", "new_secret", "enabled", *readonly_fields)
    actions = ("enable", "disable")

    @admin.display(description=_("name"), ordering="name")
    def label(self, obj: Endpoint) -> str:
        return str(obj)

    def get_fields(self, request: HttpRequest, obj: Endpoint | None = None) -> Any:
        if obj is None:
            return [one for one in self.fields if one not in self.readonly_fields]  # a new one has no past
        return (
            self.fields
            if self.has_change_permission(request, obj)
            else [one for one in self.fields if one != "new_secret"]
        )

    def save_model(self, request: HttpRequest, obj: Endpoint, form: Any, change: bool) -> None:
        secret = form.cleaned_data.get("new_secret")
        if secret and change:
            obj.rotate(secret)
        elif secret:
            obj.secret = secret
        if "enabled" in form.changed_data or not change:
            _switch(obj, obj.enabled)
        else:
            obj.enabled = Endpoint.objects.values_list("enabled", flat=True).get(pk=obj.pk)
        super().save_model(request, obj, form, change)
        if "url" in form.changed_data and (why := reach.warning(obj.url)):
            told = gettext("The endpoint is saved, but nothing can be delivered to it at present: %(why)s")
            messages.warning(request, told % {"why": why})

    @admin.display(description=_("deliveries"))
    def deliveries(self, obj: Endpoint) -> str:
        """Link to the log of this endpoint."""
        log = _address(self.admin_site, "jobqueue_webhooks_delivery_changelist")
        return _link(f"{log}?endpoint__id__exact={obj.pk}" if log else "", gettext("Show the log"))

    @admin.action(description=_("Enable selected endpoints"), permissions=["change"])
    def enable(self, request: HttpRequest, queryset: QuerySet[Endpoint]) -> None:
        count = self._switch_all(request, queryset, enabled=True)
        said = ngettext("%(count)d endpoint is enabled.", "%(count)d endpoints are enabled.", count)
        messages.success(request, said % {"count": count})

    @admin.action(description=_("Disable selected endpoints"), permissions=["change"])
    def disable(self, request: HttpRequest, queryset: QuerySet[Endpoint]) -> None:
        count = self._switch_all(request, queryset, enabled=False)
        said = ngettext("%(count)d endpoint is disabled.", "%(count)d endpoints are disabled.", count)
        messages.success(request, said % {"count": count})

    def _switch_all(self, request: HttpRequest, queryset: QuerySet[Endpoint], *, enabled: bool) -> int:
        for endpoint in (chosen := list(queryset.filter(enabled=not enabled))):
            _switch(endpoint, enabled)
            endpoint.save(update_fields=["enabled", "disabled_reason", "failures", "failing_since"])
            self.log_change(request, endpoint, gettext("Enabled.") if enabled else gettext("Disabled."))
        return len(chosen)


def _address(site: admin.AdminSite, name: str, *args: str) -> str:
    """Return the URL of a page, or an empty string if the site has no such page."""
    try:
        return reverse(f"admin:{name}", args=args, current_app=site.name)
    except NoReverseMatch:
        return ""


def _link(address: str, words: str) -> str:
    return format_html('<a href="{}">{}</a>', address, words) if address else words


def _switch(endpoint: Endpoint, enabled: bool) -> None:
    if enabled:
        endpoint.enable()
    else:
        endpoint.disable(gettext("Disabled in the admin."))


@admin.register(Delivery)
class DeliveryAdmin(_DeliveryAdmin):
    """The read-only admin of the log of deliveries."""

    list_display = ("sent_at", "endpoint", "event", "attempt", "outcome", "status_code", "took", "reason")
    list_filter = ("outcome",)
    list_select_related = ("endpoint",)
    search_fields = ("delivery_id__exact", "endpoint__name", "event")
    search_help_text = _("A delivery id, an endpoint's name, or an event.")
    ordering = ("-sent_at", "-pk")
    show_full_result_count = False
    fields = (
        "endpoint", "event", "job", "attempt", "outcome", "status_code", "reason", "answer", "took", "sent_at",
    )  # fmt: skip
    readonly_fields = ("job", "took")

    @admin.display(description=_("duration"), ordering="duration")
    def took(self, obj: Delivery) -> str:
        """Show the duration in milliseconds or seconds."""
        if not 0 <= obj.duration < 86_400:
            return str(obj.duration)
        if obj.duration < 1:
            return gettext("%(count)d ms") % {"count": round(obj.duration * 1000)}
        return gettext("%(count)s s") % {"count": number_format(round(obj.duration, 1), 1)}

    @admin.display(description=_("job"))
    def job(self, obj: Delivery) -> str:
        """Link to the job. A delivery of a job with a foreign id has only a hash of that id."""
        is_id = is_ulid(obj.delivery_id)
        return _link(
            _address(self.admin_site, "jobqueue_job_change", obj.delivery_id) if is_id else "", obj.delivery_id
        )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Delivery | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Delivery | None = None) -> bool:
        # Deleting an endpoint deletes its log, which only those who may delete endpoints can do.
        return request.user.has_perm("jobqueue_webhooks.delete_endpoint")
