"""Views for monitors. A project puts them into its URLs: ``path("health/", jobqueue.observe.views.health)``."""

from __future__ import annotations

from importlib import import_module

from django.db.utils import Error as DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from jobqueue import backends
from jobqueue.errors import JobQueueError
from jobqueue.observe.access import may_read
from jobqueue.observe.health import State, report
from jobqueue.observe.health.report import PATIENCE
from jobqueue.relay.outbox import waiting_in

REFUSED = (
    "Only staff who may view jobs, and monitors that send JOBQUEUE['MONITOR_TOKEN'] in the Authorization header, may "
    "read this page."
)
#: Loaded at the first scrape, because only the extra "prometheus" installs what it imports.
_EXPOSITION = "jobqueue.observe.prometheus.exposition"


@never_cache
@require_safe
def health(request: HttpRequest) -> HttpResponse:
    """Answer with the health report as JSON, and with the status 503 if the queue is unhealthy."""
    if not may_read(request):
        return JsonResponse({"error": REFUSED}, status=403)
    found = report(backends.current(), waiting_in)
    return JsonResponse(found.document(), status=503 if found.state is State.UNHEALTHY else 200)


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer with the metrics of this moment, in the format of Prometheus or of OpenMetrics.

    Without the database there are none. The status is then 503, and Prometheus notices a failed scrape.
    """
    if not may_read(request):
        return _sentence(REFUSED, 403)
    try:
        exposition = import_module(_EXPOSITION).exposition
    except ModuleNotFoundError as error:
        if error.name != "prometheus_client":
            raise
        return _sentence("Metrics need prometheus_client: install django-jobqueue[prometheus].", 501)
    backend = backends.current()
    try:
        with backend.answering_within(PATIENCE):
            text, content_type = exposition(backend, waiting_in, request.headers.get("Accept", ""))
    except (DatabaseError, JobQueueError) as error:
        # The message may name hosts and users.
        return _sentence(f"The database of the queue cannot be read: {type(error).__name__}.", 503)
    return HttpResponse(text, content_type=content_type)


def _sentence(text: str, status: int) -> HttpResponse:
    return HttpResponse(f"{text}\n", status=status, content_type="text/plain; charset=utf-8")
