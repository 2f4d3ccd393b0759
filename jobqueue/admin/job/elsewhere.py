"""Links from a job to other systems, and to the pages of the package's own apps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from jobqueue import conf
from jobqueue.admin.job.timeline import trace_of
from jobqueue.ids import portable
from jobqueue.models import Job
from jobqueue.policy.link_template import filled


class OutwardLink(NamedTuple):
    """A link with its words."""

    label: str
    address: str


def elsewhere(job: Job, about: Callable[[], Any], site: str) -> list[OutwardLink]:
    """List the links. ``about`` returns the job's context, and is only called for a link that needs it."""
    return [*_deliveries(job, site), *_configured(job, about)]


def drawn(links: list[OutwardLink]) -> SafeString:
    """Show the links in one line."""
    one = '<a href="{}" rel="noopener noreferrer">{}</a>'
    return format_html_join(" · ", "{}", ((format_html(one, link.address, link.label),) for link in links))


def _configured(job: Job, about: Callable[[], Any]) -> Iterator[OutwardLink]:
    templates = conf.get("LINKS")
    if not templates:
        return
    values = {
        "id": job.pk,
        "type": job.type,
        "queue": job.queue,
        "tenant": job.tenant,
        "workspace": job.workspace,
        "parent": job.parent_id,
        "worker": job.lease_owner,
        "trace": _trace(about) if any("{trace}" in one for one in templates.values()) else "",
    }
    for label, template in templates.items():
        if address := filled(template, values):
            yield OutwardLink(label, address)


def _trace(about: Callable[[], Any]) -> str:
    context = about()
    return trace_of(context) if isinstance(context, dict) else ""


def _deliveries(job: Job, site: str) -> Iterator[OutwardLink]:
    """Yield the link to the log of deliveries, for a job that delivers a webhook."""
    if job.type != "webhook_dispatch":
        return
    try:
        log = reverse("admin:jobqueue_webhooks_delivery_changelist", current_app=site)
    except NoReverseMatch:
        return
    yield OutwardLink(gettext("Deliveries"), f"{log}?q={portable(job.pk)}")
