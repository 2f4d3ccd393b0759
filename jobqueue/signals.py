"""What happened, for those who want to hear of it. Receivers run after the fact and can harm nothing."""

from __future__ import annotations

from django.dispatch import Signal

#: A job was stored and its transaction committed. Arguments: ``job_id``, ``job_type``, ``queue``. The sender
#: is always ``None``: a job may be enqueued where its handler is not known.
enqueued = Signal()
