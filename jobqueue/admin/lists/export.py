"""The jobs of a list as CSV or JSON, streamed in batches. Secrets are redacted as on the pages."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

from django.core.exceptions import BadRequest, PermissionDenied
from django.db.models import TextField
from django.db.models.functions import Cast, Left
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_safe

from jobqueue import conf, foreign_json
from jobqueue.admin import display
from jobqueue.admin.job.page import JobPage
from jobqueue.admin.search import results
from jobqueue.admin.search.combine import BadQuery
from jobqueue.backends import current
from jobqueue.models import Job
from jobqueue.policy.redaction import redact_data, secret_values
from jobqueue.records import Filter, Matches

#: Enough for the longest search with each character as four escaped bytes, and for the filters.
LONGEST_ADDRESS = 30_000
#: How many jobs are held in memory at a time.
BATCH = 50
COLUMNS = (
    *("id", "type", "status", "queue", "priority", "tenant", "attempts", "max_retries"),
    *("created_at", "scheduled_at", "started_at", "completed_at", "end_reason", "lease_owner", "parent_id"),
)
FIELDS = (*COLUMNS, "error", "payload")
#: What a spreadsheet takes for the beginning of a formula, or skips before looking for one.
_FORMULA = tuple("=+-@\t\r\n\0＝＋－＠")  # noqa: RUF001 - the full-width signs count, too

Row = dict[str, Any]


class Export(JobPage):
    """An admin whose list of jobs can be exported."""

    def get_urls(self) -> list[URLPattern]:
        wrap, name = self.admin_site.admin_view, f"{self.opts.app_label}_{self.opts.model_name}_export"
        own = [
            path(f"_export/{form}/", wrap(self.export_view), {"form": form}, name=f"{name}_{form}") for form in FORMS
        ]
        return [*own, *super().get_urls()]

    @method_decorator(require_safe)
    def export_view(self, request: HttpRequest, form: str) -> HttpResponseBase:
        """Send the jobs that the list with the same query has on all its pages."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if len(request.META.get("QUERY_STRING", "")) > LONGEST_ADDRESS:
            raise BadRequest("The address is too long.")
        try:
            wanted: Filter = self.wanted(request)
        except BadQuery:  # the list says what is wrong
            return HttpResponseRedirect(f"{self._address('changelist')}?{request.GET.urlencode()}")
        content_type, write = FORMS[form]
        found = results.find(wanted)
        answer: HttpResponse | StreamingHttpResponse
        if request.method == "HEAD":
            answer = HttpResponse(content_type=content_type)
        else:
            answer = StreamingHttpResponse(write(_rows(found)), content_type=content_type)
        answer["Content-Disposition"] = f'attachment; filename="{self.opts.model_name}s.{form}"'
        answer["Cache-Control"] = "no-store"
        answer["X-Content-Type-Options"] = "nosniff"
        return answer


# The rows


def _rows(found: Matches) -> Iterator[Row]:
    """Read the matches in batches. Jobs that were purged meanwhile are missing."""
    for start in range(0, len(found), BATCH):
        with current().any_text():  # the view has returned before the first batch is read
            ids = found[start : start + BATCH]
            batch = {row["id"]: row for row in _read(ids)}
        yield from (_shown(batch[one]) for one in ids if one in batch)


def _read(ids: Sequence[str]) -> list[Row]:
    rows = Job.objects.using(conf.get("DATABASE")).filter(pk__in=ids)
    texts = {
        "error_text": Left("error", display.LONGEST_SHOWN),
        "payload_text": Cast("payload", TextField()),
        "context_text": Cast("context", TextField()),
    }
    return list(rows.values(*COLUMNS, **texts))


def _shown(row: Row) -> Row:
    payload, context = (foreign_json.read(row[f"{name}_text"] or "null") for name in ("payload", "context"))
    error = row["error_text"]
    shown = {name: _plain(row[name]) for name in COLUMNS}
    shown["error"] = None if error is None else display.clean(error, secret_values([payload, context]))
    is_readable = not isinstance(payload, foreign_json.Unreadable)
    shown["payload"] = redact_data(payload) if is_readable else None
    return shown


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


# The forms


class _Echo:
    """A file that returns what is written to it."""

    def write(self, text: str) -> str:
        return text


def _csv(rows: Iterator[Row]) -> Iterator[bytes]:
    writer = csv.writer(_Echo())
    yield _encoded(writer.writerow(FIELDS))
    for row in rows:
        payload = json.dumps(row["payload"], ensure_ascii=False)
        yield _encoded(writer.writerow([_harmless(row[name]) for name in FIELDS[:-1]] + [_harmless(payload)]))


def _harmless(value: Any) -> Any:
    """Keep a spreadsheet from running a text as a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _json(rows: Iterator[Row]) -> Iterator[bytes]:
    lead = "[\n"
    for row in rows:
        yield _encoded(lead + json.dumps(row, ensure_ascii=False, default=str))
        lead = ",\n"
    yield b"\n]\n" if lead != "[\n" else b"[]\n"


def _encoded(text: Any) -> bytes:
    return str(text).encode(errors="backslashreplace")


FORMS: dict[str, tuple[str, Callable[[Iterator[Row]], Iterator[bytes]]]] = {
    "csv": ("text/csv; charset=utf-8", _csv),
    "json": ("application/json", _json),
}
