"""E-mail through the queue: a backend that enqueues messages in the caller's transaction, and a job that sends them.

``EMAIL_BACKEND = "jobqueue.contrib.email.EmailBackend"``
"""

from __future__ import annotations

from jobqueue.contrib.email.backend import EmailBackend

__all__ = ["EmailBackend"]
