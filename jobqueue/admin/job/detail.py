"""One job as its page shows it, and the parts of the page that change while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast
from django.template.loader import render_to_string
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from jobqueue import conf
from jobqueue.admin import display
from jobqueue.admin.job import elsewhere, history, timeline
from jobqueue.admin.job.json_tree import read, tree
from jobqueue.admin.job.progress import bar, percent
from jobqueue.admin.job.relatives import children_of, parent_of
from jobqueue.admin.job.why import why
from jobqueue.admin.links import Links
from jobqueue.admin.search.results import CAP
from jobqueue.backends import current
from jobqueue.backends.sql.filters import in_status
from jobqueue.models import Job
from jobqueue.observe.terminal_safe import one_line
from jobqueue.policy.redaction import secret_values, unfolded
from jobqueue.records import Filter
from jobqueue.states import ACTIVE, JobStatus

JSON_COLUMNS = ("payload", "result", "progress", "context")

#: Announced by screen readers when the status changes.
SAID = {
    JobStatus.QUEUED: _("The job is queued."),
    JobStatus.IN_PROGRESS: _("The job is running."),
    JobStatus.COMPLETED: _("The job has completed."),
    JobStatus.FAILED: _("The job was cancelled."),
    JobStatus.DEAD_LETTER: _("The job is a dead letter: it was given up."),
}


class Detail:
    """A job on an admin site. Large columns and further queries are read lazily."""

    def __init__(self, job: Job, site: str) -> None:
        self.job = job
        self.links = Links(site)
        self.now = current().now()
        self._texts: dict[str, str | None] = {}
        self._values: dict[str, Any] = {}

    # The data

    @property
    def is_over(self) -> bool:
        """Return whether the job has ended."""
        return JobStatus(self.job.status) not in ACTIVE

    @property
    def said(self) -> str:
        """The status as a sentence."""
        return str(SAID[JobStatus(self.job.status)])

    def text(self, column: str) -> str | None:
        """Read a JSON column as text: databases accept JSON that Python can't decode."""
        if column not in self._texts:
            # Progress is read every second, the others hardly ever.
            together = [column] if column == "progress" else [one for one in JSON_COLUMNS if one != "progress"]
            rows = Job.objects.using(conf.get("DATABASE")).filter(pk=self.job.pk)
            found = rows.values_list(*(Cast(one, TextField()) for one in together)).first()
            self._texts |= dict(zip(together, found or [None] * len(together), strict=True))
        return self._texts[column]

    def value(self, column: str) -> Any:
        """Decode a JSON column, with numbers as they are written. Missing values are ``None``, like JSON's null."""
        if column not in self._values:
            self._values[column] = read(self.text(column) or "null")
        return self._values[column]

    @cached_property
    def context(self) -> Any:
        """The job's context."""
        return self.value("context")

    @cached_property
    def secrets(self) -> tuple[str, ...]:
        """Secrets that its errors may contain: those of the payload, and of the payload before an edit."""
        return secret_values([self.value("payload"), self.context])

    @cached_property
    def token(self) -> str:
        """A version token of the timeline."""
        job = self.job
        facts = (job.status, job.attempts, job.max_retries, job.fence, job.started_at, job.completed_at)
        known = (*facts, job.scheduled_at, job.cancel_requested_at, job.end_reason, get_language(), *history.mark(job))
        return sha256(repr(known).encode()).hexdigest()[:16]

    # The page

    def payloads(self) -> dict[str, SafeString | str]:
        """Make JSON trees of the payload, the payload before an edit, and the rest of the context."""
        return {
            "payload": tree(self.value("payload"), gettext("Payload")),
            "first": self._first(),
            "context": self._context(),
        }

    def _first(self) -> SafeString | str:
        first = self.context.get("first") if isinstance(self.context, dict) else None
        if not isinstance(first, dict) or "payload" not in first:
            return ""
        return tree(first["payload"], gettext("Payload before it was edited"))

    def _context(self) -> SafeString | str:
        others = self.context
        if isinstance(others, dict):
            others = {key: value for key, value in others.items() if key != "first"}
        return tree(others, gettext("Context")) if others else ""

    def parts(self, verbs: Sequence[Any], addresses: Mapping[str, str], seen: str = "") -> dict[str, SafeString]:
        """Render the parts, without the timeline if ``seen`` is its current token.

        ``addresses`` are those of the forms for an edited retry (``edit``) and for a new job (``again``), or empty.
        """
        token = self.token  # first, so that a change made meanwhile leads to a new timeline next time
        contexts: dict[str, Callable[[], dict[str, Any]]] = {
            "summary": lambda: {"rows": self._summary()},
            "verbs": lambda: {"verbs": verbs, "addresses": addresses},
            "why": self._why,
            "progress": self._progress,
            "timeline": self._timeline,
            "next": self._next,
            "result": self._result,
            "family": self._family,
        }
        wanted = [name for name in contexts if name != "timeline" or seen != token]
        return {name: _drawn(name, contexts[name]()) for name in wanted}

    def _summary(self) -> list[tuple[str, str, Any]]:
        job = self.job
        rows = [
            ("status", gettext("Status"), self._status()),
            ("type", gettext("Type"), _named(job.type, self.links.jobs(Filter(types=frozenset({job.type}))))),
            ("queue", gettext("Queue"), _named(job.queue, self.links.jobs(Filter(queues=frozenset({job.queue}))))),
            ("attempts", gettext("Attempts"), self._attempts()),
            (
                "age",
                gettext("Age"),
                display.near(job.created_at, display.length(display.elapsed(job.created_at, self.now))),
            ),
        ]
        if job.started_at is not None and (job.completed_at or not self.is_over):
            end = self.now if job.completed_at is None else job.completed_at
            took = display.took(job.started_at, end)
            rows.append(("duration", gettext("Duration"), took))
        if job.lease_owner:
            rows.append(("worker", gettext("Worker"), _named(job.lease_owner, self.links.worker(job.lease_owner))))
        if job.tenant:
            rows.append(("tenant", gettext("Tenant"), _named(job.tenant, self.links.jobs(Filter(tenant=job.tenant)))))
        if outward := elsewhere.elsewhere(job, lambda: self.context, self.links.site):
            rows.append(("elsewhere", gettext("Elsewhere"), elsewhere.drawn(outward)))
        return rows

    def _status(self) -> SafeString:
        shown = display.badge(self.job.status, str(self.job.get_status_display()))
        if self.job.status == JobStatus.IN_PROGRESS and self.job.cancel_requested_at:
            return format_html('{} <span class="jq-quiet">{}</span>', shown, gettext("asked to stop"))
        return shown

    def _attempts(self) -> str:
        return gettext("%(made)d of %(allowed)d") % {"made": self.job.attempts, "allowed": self.job.max_retries}

    def _why(self) -> dict[str, Any]:
        job = self.job
        # While the job goes on, its errors are in the timeline, which isn't rendered every second.
        error = history.last_error(job) if job.status in (JobStatus.FAILED, JobStatus.DEAD_LETTER) else ""
        return {
            "is_waiting": job.status == JobStatus.QUEUED,
            "reasons": why(job, self.now, self.links),
            "error": display.text_block(error, self.secrets) if error else "",
            **self._same_error(),
        }

    def _same_error(self) -> dict[str, Any]:
        """Count the other dead letters with the same error, by its index."""
        fingerprint = self.job.error_fingerprint
        if not fingerprint or self.job.status == JobStatus.COMPLETED:
            return {}
        rows = in_status(conf.get("DATABASE"), JobStatus.DEAD_LETTER).filter(error_fingerprint=fingerprint)
        found = rows.values("pk")[: CAP + 1].count() - (self.job.status == JobStatus.DEAD_LETTER)
        if found <= 0:
            return {}
        number = number_format(min(found, CAP), force_grouping=True)
        return {
            "others": found,
            "others_number": f"{number}+" if found >= CAP else number,
            "others_address": self.links.dead_letters(Filter(fingerprint=fingerprint)),
        }

    def _progress(self) -> dict[str, Any]:
        value = self.value("progress")
        if value is None:
            return {}
        drawn = bar(percent(value.get("percent"))) if isinstance(value, dict) else None
        rest = {key: inner for key, inner in value.items() if key != "percent"} if drawn else value
        info = tree(rest, gettext("Progress")) if rest or not drawn else ""
        return {"is_there": True, "bar": drawn, "info": info}

    def _timeline(self) -> dict[str, Any]:
        about = dict(unfolded(self.context)) if isinstance(self.context, dict) else {}
        found = history.past_of(self.job, lambda: self.secrets)
        return {"entries": timeline.told(self.job, found, about, self.links)}

    def _next(self) -> dict[str, Any]:
        entry = timeline.to_come(self.job, self.now)
        return {"entries": [entry] if entry else []}

    def _family(self) -> dict[str, Any]:
        return {"parent": parent_of(self.job, self.links), "children": children_of(self.job, self.links)}

    def _result(self) -> dict[str, Any]:
        # Before the end, a stored result belongs to an attempt that didn't count.
        value = self.value("result") if self.is_over else None
        return {"result": "" if value is None else tree(value, gettext("Result"))}


def _named(name: str, address: str) -> SafeString:
    """Show an identifier, with a link if the site has the page."""
    shown = one_line(name)
    if not address:
        return format_html('<span class="jq-mono">{}</span>', shown)
    return format_html('<a class="jq-mono" href="{}">{}</a>', address, shown)


def _drawn(part: str, context: dict[str, Any]) -> SafeString:
    template = "entries" if part in ("timeline", "next") else part
    return render_to_string(f"jobqueue/admin/job/{template}.html", context)
