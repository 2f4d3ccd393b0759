"""The removal of the fence in a worker with this app."""

from __future__ import annotations

from django.db import connection

from tests.worker.unfenced.fence import take_out

take_out(connection.vendor)
