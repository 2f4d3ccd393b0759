"""The channels that tell people of alerts, and the job that delivers to each of them."""

from __future__ import annotations
