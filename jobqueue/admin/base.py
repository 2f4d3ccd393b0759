"""Admins with pages of their own instead of lists of rows: permissions, frame and breadcrumbs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import django
from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.text import capfirst

from jobqueue.admin.any_text import ReadsAnyText
from jobqueue.backends import current
from jobqueue.handlers.registry import registry
from jobqueue.records import Scope

#: From Django 6.1 on, breadcrumbs are a list.
TRAIL_IS_LIST = django.VERSION >= (6, 1)

#: Shows beside the app's name how much needs attention.
ATTENTION = forms.Script("jobqueue/attention.js", defer=True)
BADGE = forms.Media(js=[ATTENTION])  # type: ignore[list-item]
#: Without the media of Django's own pages, which have scripts for forms and actions.
LOOKS = forms.Media(css={"all": ("jobqueue/admin.css", "jobqueue/charts.css", "jobqueue/operations.css")}) + BADGE

Trail = Sequence[tuple[str, str]]


class PageAdmin(ReadsAnyText):
    """An admin with read-only pages: nothing can be added, changed or deleted by Django's own views."""

    @property
    def media(self) -> forms.Media:
        return LOOKS

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("jobqueue.view_job")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def require(self, request: HttpRequest, *permissions: str) -> None:
        """Raise PermissionDenied unless the user may see the pages and has the permissions."""
        if not (self.has_view_permission(request) and request.user.has_perms(permissions)):
            raise PermissionDenied


def page(
    of: admin.ModelAdmin[Any], request: HttpRequest, template: str, title: str, trail: Trail = (), /, **context: Any
) -> HttpResponse:
    """Render a page in the admin's frame; ``trail`` are the breadcrumbs below the app's."""
    app = reverse("admin:app_list", args=[of.opts.app_label], current_app=of.admin_site.name)
    framed = {
        **of.admin_site.each_context(request),
        "title": title,
        "opts": of.opts,
        "media": of.media,
        "trail": [(app, of.opts.app_config.verbose_name), *trail],
        "trail_is_list": TRAIL_IS_LIST,
        **context,
    }
    request.current_app = of.admin_site.name
    return TemplateResponse(request, template, framed)


def breadcrumb(of: admin.ModelAdmin[Any]) -> tuple[str, str]:
    """The breadcrumb of an admin's first page."""
    return address(of, "changelist"), str(capfirst(of.opts.verbose_name_plural))


def address(of: admin.ModelAdmin[Any], name: str, *args: str) -> str:
    """Return the URL of a page of an admin."""
    return reverse(f"admin:{of.opts.app_label}_{of.opts.model_name}_{name}", args=args, current_app=of.admin_site.name)


def known_queues() -> set[str]:
    """Return the queues that handlers name, and those that are paused."""
    paused = {pause.name for pause in current().operator.pauses() if pause.scope is Scope.QUEUE}
    return {"default", *(one.options.queue for one in registry), *paused}


def counted(count: int, capped: bool = False) -> str:
    """Format a count, with a plus sign if there are more."""
    return f"{number_format(count, force_grouping=True)}{'+' if capped else ''}"
