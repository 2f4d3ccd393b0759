"""The queue's own jobs, discovered like those of any app.

The only one belongs to the admin and is defined only if the admin is installed. Workers without the admin have no admin
log to write to, and leave its jobs to workers that have it.
"""

from __future__ import annotations

from django.apps import apps

if apps.is_installed("django.contrib.admin"):
    from jobqueue.orders.job import operate as operate
