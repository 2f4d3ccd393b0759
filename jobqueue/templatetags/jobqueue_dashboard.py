"""The dashboard as a template tag, for the app's index page, which Django's own view renders."""

from __future__ import annotations

from typing import Any

from django import template

from jobqueue.models import Dashboard

register = template.Library()


@register.inclusion_tag("jobqueue/admin/dashboard/board.html", takes_context=True)
def dashboard(context: dict[str, Any]) -> dict[str, Any]:
    """Render the dashboard, if the site has it and the user may see it."""
    # The admin must not be imported here: Django loads this library even in projects without the admin.
    request = context["request"]
    site = getattr(request.resolver_match.func, "admin_site", None)
    if site is None or not site.is_registered(Dashboard):
        return {}
    entry = site.get_model_admin(Dashboard)
    return dict(entry.board(request)) if entry.has_view_permission(request) else {}
