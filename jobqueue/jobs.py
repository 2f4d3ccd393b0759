"""The queue's own jobs, discovered like those of any app.

One belongs to the admin and is defined only if the admin is installed. Workers without the admin have no admin log to
write to, and leave its jobs to workers that have it. The other delivers alerts, and is defined only if alerts are on.
"""

from __future__ import annotations

from django.apps import apps

from jobqueue.alert_settings import are_on

if apps.is_installed("django.contrib.admin"):
    from jobqueue.orders.job import operate as operate

if are_on():
    from jobqueue.channels.job import deliver as deliver
