"""Webhooks: the job ``webhook_dispatch``, the endpoints it sends to, a log of deliveries, and what receivers need."""

from __future__ import annotations
