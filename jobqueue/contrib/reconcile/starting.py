"""The enqueuing of the reconciliation when a worker starts, in a thread, so that the start isn't delayed."""

from __future__ import annotations

import logging
import threading
from typing import Any

from django.db import connections

from jobqueue.api import enqueue

logger = logging.getLogger("jobqueue")


def enqueue_soon(**_: Any) -> None:
    """Enqueue the reconciliation. If several workers start, there is only one."""
    threading.Thread(target=_enqueue, name="jobqueue-reconcile", daemon=True).start()


def _enqueue() -> None:
    try:
        enqueue("reconcile_jobs", unique_key="reconcile_jobs")
    except Exception:  # the worker must start in any case
        logger.warning("The reconciliation could not be enqueued", exc_info=True)
    finally:
        connections.close_all()
