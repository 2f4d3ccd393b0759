"""What happens when a worker starts: a job is enqueued, by a thread, so that the start waits for nothing."""

from __future__ import annotations

import logging
import threading
from typing import Any

from django.db import connections

from jobqueue.api import enqueue

logger = logging.getLogger("jobqueue")


def enqueue_soon(**_: Any) -> None:
    """Enqueue the reconciliation; of several workers that start, one does."""
    threading.Thread(target=_enqueue, name="jobqueue-reconcile", daemon=True).start()


def _enqueue() -> None:
    try:
        enqueue("reconcile_jobs", unique_key="reconcile_jobs")
    except Exception:  # a worker shall work, whatever becomes of this
        logger.warning("The reconciliation could not be enqueued", exc_info=True)
    finally:
        connections.close_all()
