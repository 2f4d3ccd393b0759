"""The metrics for Prometheus: what a scrape reads from the database, and the series that it makes of it.

A scrape keeps nothing in the process, so that any number of web processes answer alike.
"""

from __future__ import annotations
