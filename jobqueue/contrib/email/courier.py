"""Who really sends: the backend that ``JOBQUEUE["EMAIL_VIA"]`` names, in each of Django's ways to name one."""

from __future__ import annotations

from typing import Any

import django
from django.conf import settings
from django.core import mail
from django.utils.module_loading import import_string

from jobqueue import conf


def courier() -> Any:
    """Make the backend that sends.

    From Django 6.1 on a project may have MAILERS; then EMAIL_VIA is an alias there. Without them, that Django would
    warn of its old ways each time it is asked for a backend by path, so the class is called here, as Django does.
    """
    via = conf.get("EMAIL_VIA")
    if mailers() is not None:
        return mail.mailers[via]
    return import_string(via)(**({"alias": None} if django.VERSION >= (6, 1) else {}))


def why_missing() -> str:
    """Say why the backend that EMAIL_VIA names by path cannot be imported; nothing where it can."""
    try:
        import_string(conf.get("EMAIL_VIA"))
    except ImportError as error:
        return str(error)
    return ""


def mailers() -> dict[str, dict[str, Any]] | None:
    """Return the backends that a project names by alias, if it does."""
    return getattr(settings, "MAILERS", None) if hasattr(mail, "mailers") else None
