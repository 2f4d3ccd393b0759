"""The dashboard on the app's own page in the admin, which is Django's and asks nobody of us for its figures."""

from __future__ import annotations

from typing import Any

from django import template

from jobqueue.models import Dashboard

register = template.Library()


@register.inclusion_tag("jobqueue/admin/dashboard/board.html", takes_context=True)
def dashboard(context: dict[str, Any]) -> dict[str, Any]:
    """Show the dashboard, to whom may see it, where the site has one."""
    # The site is asked for its entry: a project without the admin loads this library too, and must not meet ours.
    request = context["request"]
    site = getattr(request.resolver_match.func, "admin_site", None)
    if site is None or not site.is_registered(Dashboard):
        return {}
    entry = site.get_model_admin(Dashboard)
    return dict(entry.board(request)) if entry.has_view_permission(request) else {}
