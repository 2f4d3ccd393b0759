"""Optional apps of jobs. Each is loaded only if INSTALLED_APPS lists it."""

from __future__ import annotations
