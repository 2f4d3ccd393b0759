"""Webhooks: the job ``webhook_dispatch``, its endpoints, the log of deliveries, and verification for receivers."""

from __future__ import annotations
