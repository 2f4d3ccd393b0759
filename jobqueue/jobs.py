"""The queue's own jobs, found like those of any app. The one there is serves the admin, and exists where that does.

A worker whose settings lack the admin has no log to write to, and leaves such jobs to one that has it.
"""

from __future__ import annotations

from django.apps import apps

if apps.is_installed("django.contrib.admin"):
    from jobqueue.orders.background import operate as operate
