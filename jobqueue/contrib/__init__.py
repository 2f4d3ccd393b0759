"""Jobs that come with the queue. Each part is an app of its own, and none loads unless INSTALLED_APPS names it."""

from __future__ import annotations
