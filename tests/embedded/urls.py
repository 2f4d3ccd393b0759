"""One view, which enqueues a job and returns its id."""

from __future__ import annotations

import os

from django.http import HttpRequest, HttpResponse
from django.urls import path

from tests.app.worker_jobs import note_run


def enqueue(_request: HttpRequest) -> HttpResponse:
    """Enqueue, and name the job and the process."""
    return HttpResponse(f"{note_run.enqueue(number=1).id} {os.getpid()}")


urlpatterns = [path("enqueue", enqueue)]
