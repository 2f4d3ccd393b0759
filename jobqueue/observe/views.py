"""Views for monitors. A project puts them into its URLs: ``path("health/", jobqueue.observe.views.health)``."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from jobqueue import backends
from jobqueue.observe.access import may_read
from jobqueue.observe.health import State, report
from jobqueue.relay.outbox import waiting_in

REFUSED = (
    "Only staff who may view jobs, and monitors that send JOBQUEUE['MONITOR_TOKEN'] in the Authorization header, may "
    "read this page."
)


@never_cache
@require_safe
def health(request: HttpRequest) -> HttpResponse:
    """Answer with the health report as JSON, and with the status 503 if the queue is unhealthy."""
    if not may_read(request):
        return JsonResponse({"error": REFUSED}, status=403)
    found = report(backends.current(), waiting_in)
    return JsonResponse(found.document(), status=503 if found.state is State.UNHEALTHY else 200)
