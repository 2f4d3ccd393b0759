"""The columns of a list of jobs. They use only what the list has read, without further queries."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobqueue.admin import display
from jobqueue.admin.job.progress import bar, percent
from jobqueue.admin.links import Links
from jobqueue.clock import SYSTEM
from jobqueue.handlers.options import Options
from jobqueue.models import Job
from jobqueue.records import Filter
from jobqueue.states import JobStatus


class Columns:
    """The columns, with further values in small below the main one to leave room for the sidebar."""

    admin_site: admin.AdminSite

    @admin.display(description=_("job"), ordering="id")
    def named(self, job: Any) -> Any:
        """Show the type and the id, and below them what has no column of its own in a narrow list."""
        error, name = (
            display.first_line(job.error_start),
            '<span class="jq-type">{}</span><span class="jq-id">{}</span>',
        )
        small = [("jq-for-place", job.queue), ("jq-for-place", job.tenant), ("jq-for-error", error)]
        below = format_html_join("", '<span class="jq-small {}">{}</span>', (one for one in small if one[1]))
        return format_html("{}{}", format_html(name, job.type, job.pk), below)

    @admin.display(description=_("status"))
    def shown_status(self, job: Any) -> Any:
        badge = display.badge(job.status, job.get_status_display())
        made = {"made": job.attempts, "allowed": job.max_retries}
        tries = gettext("attempt %(made)d of %(allowed)d") % made if job.attempts else None
        return _over(badge, bar(percent(job.percent)), tries)

    @admin.display(description=_("attempts"))
    def tries(self, job: Job) -> str:
        return gettext("%(made)d of %(allowed)d") % {"made": job.attempts, "allowed": job.max_retries}

    @admin.display(description=_("queue"))
    def placed(self, job: Job) -> Any:
        """Show the queue, the priority if it isn't the default, and the tenant."""
        links, usual = Links(self.admin_site.name), job.priority == Options.priority
        return _over(
            _link(job.queue, links.jobs(Filter(queues=frozenset({job.queue})))),
            None if usual else gettext("priority %(number)d") % {"number": job.priority},
            _link(job.tenant, links.jobs(Filter(tenant=job.tenant))) if job.tenant else None,
        )

    @admin.display(description=_("age"))
    def when(self, job: Job) -> Any:
        if job.status == JobStatus.QUEUED and job.scheduled_at > SYSTEM.now():
            return display.near(job.scheduled_at, gettext("runs %(when)s") % {"when": display.ago(job.scheduled_at)})
        return _over(display.near(job.created_at, display.ago(job.created_at)), _took(job))

    @admin.display(description=_("error"))
    def shown_error(self, job: Any) -> Any:
        line = display.first_line(job.error_start)
        return format_html('<span class="jq-error" title="{}">{}</span>', line, line) if line else None


def _over(value: Any, *below: Any) -> SafeString:
    """Put values in small below another one."""
    small = format_html_join("", '<span class="jq-small">{}</span>', ((one,) for one in below if one))
    return format_html("{}{}", value, small)


def _link(name: str, address: str) -> SafeString | str:
    return format_html('<a href="{}">{}</a>', address, name) if address else name


def _took(job: Job) -> str | None:
    """Return how long the last attempt took, or how long it has been running."""
    if job.started_at is None:
        return None
    if job.status == JobStatus.IN_PROGRESS:
        return gettext("running for %(length)s") % {"length": display.took(job.started_at, SYSTEM.now())}
    if job.completed_at is None:
        return None
    return gettext("took %(length)s") % {"length": display.took(job.started_at, job.completed_at)}
