"""One log line per event, with facts as fields; never a payload. Nobody else words the log."""

from __future__ import annotations

import logging
from typing import Any

from jobqueue import signals

logger = logging.getLogger("jobqueue")


def connect() -> None:
    """Begin to listen; connecting twice is connecting once."""
    signals.enqueued.connect(_enqueued, dispatch_uid="jobqueue.observe.logs")


def _enqueued(*, job_id: str, job_type: str, queue: str, **_: Any) -> None:
    logger.info("Job enqueued: %s %s", job_type, job_id, extra={"job_id": job_id, "job_type": job_type, "queue": queue})
