"""One view, which enqueues a job and reports its process."""

from __future__ import annotations

import os
import threading
from random import Random

from django.http import HttpRequest, JsonResponse
from django.urls import path

from benchmarks.faults.enqueueing import enqueue
from benchmarks.faults.ledger import Ledger


def enqueue_one(_: HttpRequest) -> JsonResponse:
    """Enqueue a job on the record, and return the names of the threads."""
    job = enqueue(Ledger.of_this_process(), "short", Random())  # noqa: S311 - dice, no secrets
    return JsonResponse({"job": job, "pid": os.getpid(), "threads": [one.name for one in threading.enumerate()]})


urlpatterns = [path("", enqueue_one)]
