"""The backend that sends the e-mails, as named by ``JOBQUEUE["EMAIL_VIA"]``."""

from __future__ import annotations

from typing import Any

import django
from django.conf import settings
from django.core import mail
from django.utils.module_loading import import_string

from jobqueue import conf


def courier() -> Any:
    """Return the backend that sends.

    Since Django 6.1 a project may have MAILERS, and EMAIL_VIA is one of its aliases. Without MAILERS, Django 6.1 warns
    whenever it is asked for a backend by path, so the class is called here, as Django does.
    """
    via = conf.get("EMAIL_VIA")
    if mailers() is not None:
        return mail.mailers[via]
    return import_string(via)(**({"alias": None} if django.VERSION >= (6, 1) else {}))


def why_missing() -> str:
    """Return why the backend in EMAIL_VIA can't be imported, or an empty string."""
    try:
        import_string(conf.get("EMAIL_VIA"))
    except ImportError as error:
        return str(error)
    return ""


def mailers() -> dict[str, dict[str, Any]] | None:
    """Return the project's backends by alias, or ``None`` if it has no MAILERS."""
    return getattr(settings, "MAILERS", None) if hasattr(mail, "mailers") else None
