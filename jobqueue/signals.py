"""What happened, for those who want to hear of it. Receivers run after the fact and can harm nothing.

The sender is always ``None``: a job may be enqueued, or given up, where its handler is not known. All but the last
three carry ``job_id``, ``job_type`` and ``queue``; those a worker sends also ``attempt``, ``max_retries``, ``worker``,
``duration`` and ``delay`` (seconds or ``None``), ``reason``, ``error_class``, ``error`` and ``progress`` (JSON text).
"""

from __future__ import annotations

from django.dispatch import Signal

#: A job was stored and its transaction committed.
enqueued = Signal()

#: An attempt begins, in the executor that runs it.
started = Signal()
#: A handler reported how far it is.
progressed = Signal()

#: What an attempt came to is stored. Sent from an executor.
completed = Signal()
retried = Signal()
dead_lettered = Signal()
cancelled = Signal()
#: A worker no longer holds a job that it runs; whatever that comes to is not stored.
lease_lost = Signal()

#: A worker starts to take jobs, or has ended; ``worker`` is its name. Sent from its supervisor.
worker_started = Signal()
worker_stopped = Signal()
#: A process that runs handlers begins; clients that do not survive a fork begin anew here. ``pid`` is its number.
executor_started = Signal()
