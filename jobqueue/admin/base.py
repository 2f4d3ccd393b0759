"""Entries of the admin that are pages of their own, no lists of rows: who may see them, and what frames them."""

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

#: From Django 6.1 on the way to a page is a list.
TRAIL_IS_LIST = django.VERSION >= (6, 1)

#: Nothing of what Django's own pages bring along; they have scripts for forms and actions.
LOOKS = forms.Media(css={"all": ("jobqueue/admin.css", "jobqueue/charts.css", "jobqueue/operations.css")})

Trail = Sequence[tuple[str, str]]


class Entry(ReadsAnyText):
    """An entry with pages to read; nothing of it is added, edited or deleted in Django's way."""

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
        """Let nobody by who may not see the pages, or lacks one of the permissions."""
        if not (self.has_view_permission(request) and request.user.has_perms(permissions)):
            raise PermissionDenied


def page(
    of: admin.ModelAdmin[Any], request: HttpRequest, template: str, title: str, trail: Trail = (), /, **context: Any
) -> HttpResponse:
    """Answer with a page in the admin's frame; ``trail`` leads to it from the entry on."""
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


def entry(of: admin.ModelAdmin[Any]) -> tuple[str, str]:
    """The step of a trail that leads to an entry's first page."""
    return address(of, "changelist"), str(capfirst(of.opts.verbose_name_plural))


def address(of: admin.ModelAdmin[Any], name: str, *args: str) -> str:
    """Say where a page of an entry is."""
    return reverse(f"admin:{of.opts.app_label}_{of.opts.model_name}_{name}", args=args, current_app=of.admin_site.name)


def counted(count: int, capped: bool = False) -> str:
    """Write a count as people do, and whether there are more."""
    return f"{number_format(count, force_grouping=True)}{'+' if capped else ''}"
