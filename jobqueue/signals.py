"""What happened, for those who want to hear of it. Receivers run after the fact and can harm nothing."""

from __future__ import annotations

from django.dispatch import Signal

#: A job was stored and its transaction committed. Arguments: ``job_id``, ``job_type``, ``queue``. Sender: the Handler,
#: or ``None`` for a job whose handler this process does not have.
enqueued = Signal()
