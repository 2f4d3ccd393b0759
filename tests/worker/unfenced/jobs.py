"""Takes the fence out of the worker that has this app."""

from __future__ import annotations

from django.db import connection

from tests.worker.unfenced.fence import take_out

take_out(connection.vendor)
