"""The statements of ports that read too much for the ORM."""

from __future__ import annotations
