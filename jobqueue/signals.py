"""The signals. Receivers run after the fact, and their errors change nothing.

The sender is always ``None``, because a job may be enqueued or given up where its handler isn't known. ``shed`` carries
``job_type``, ``queue`` and ``priority``. All others but the last five carry ``job_id``, ``job_type`` and ``queue``.
Those sent by a worker also carry ``attempt``, ``max_retries``, ``worker``, ``duration`` and ``delay`` (seconds or
``None``), ``reason``, ``error_class``, ``error`` and ``progress`` (JSON text).
"""

from __future__ import annotations

from django.dispatch import Signal

#: A job was stored and its transaction committed.
enqueued = Signal()
#: A job was not stored, because its queue is full and it isn't urgent.
shed = Signal()

#: An attempt begins, in the executor that runs it.
started = Signal()
#: A handler reported its progress.
progressed = Signal()

#: An attempt's outcome was stored. Sent from an executor.
completed = Signal()
retried = Signal()
dead_lettered = Signal()
cancelled = Signal()
#: A worker lost its claim on a job that it runs. The outcome won't be stored.
lease_lost = Signal()

#: An alert fired or is over. ``alert`` is a dict of what is told of it. Sent by a job, and so perhaps more than once.
alert_fired = Signal()
alert_resolved = Signal()

#: A worker starts to take jobs, or has ended. ``worker`` is its name. Sent from its supervisor.
worker_started = Signal()
worker_stopped = Signal()
#: An executor has started. Reconnect clients that don't survive a fork here. ``pid`` is its process id.
executor_started = Signal()
