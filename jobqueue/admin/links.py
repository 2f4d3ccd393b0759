"""Links between the admin's pages. A link is empty if the site has no such page."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib.admin.utils import quote
from django.urls import NoReverseMatch, reverse
from django.utils.http import url_has_allowed_host_and_scheme

from jobqueue.admin.search.query import spelled
from jobqueue.records import Filter


def within_site(stored: str, otherwise: str = "") -> str:
    """Return a stored address if it is one of this site. Another program may have stored any other, even a script."""
    is_here = stored.startswith("/") and stored.isprintable() and url_has_allowed_host_and_scheme(stored, None)
    return stored if is_here else otherwise


@dataclass(frozen=True, slots=True)
class Links:
    """The links of the admin site with this name."""

    site: str

    def job(self, job_id: str) -> str:
        return self._to("job_change", job_id)

    def jobs(self, wanted: Filter) -> str:
        return self._to("job_changelist", q=spelled(wanted))

    def dead_letters(self, wanted: Filter) -> str:
        return self._to("deadletter_changelist", q=spelled(wanted))

    def order(self, order_id: str) -> str:
        return self._to("order_change", order_id)

    def worker(self, owner: str) -> str:
        return self._to("worker_change", owner)

    def schedule(self, schedule_id: str) -> str:
        return self._to("schedule_change", schedule_id)

    def alert(self, alert_id: str) -> str:
        return self._to("alert_change", alert_id)

    def workers(self) -> str:
        return self._to("worker_changelist")

    def queues(self) -> str:
        return self._to("queue_changelist")

    def _to(self, page: str, *ids: str, **query: str) -> str:
        try:
            address = reverse(f"admin:jobqueue_{page}", args=[quote(one) for one in ids], current_app=self.site)
        except NoReverseMatch:
            return ""
        return f"{address}?{urlencode(query, errors='replace')}" if query else address
