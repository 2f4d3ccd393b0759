"""Who may read the view for monitors: staff, a monitor with the token, and requests that ``MONITOR_CHECK`` accepts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare
from django.utils.module_loading import import_string

from jobqueue import conf

_SCHEME = "bearer "


def may_read(request: HttpRequest) -> bool:
    """Return whether a request may read. A token counts only in the Authorization header: URLs are written to logs.

    The user comes last, because reading a session takes a query, which fails if the database is away.
    """
    token = conf.get("MONITOR_TOKEN")
    if token is not None and constant_time_compare(_given_token(request), token):
        return True
    check = conf.get("MONITOR_CHECK")
    return bool(check is not None and _rule(check)(request)) or _is_staff(request)


def _is_staff(request: HttpRequest) -> bool:
    user = getattr(request, "user", None)
    return bool(user is not None and user.is_active and user.is_staff and user.has_perm("jobqueue.view_job"))


def _given_token(request: HttpRequest) -> str:
    header = request.headers.get("Authorization", "")
    return header[len(_SCHEME) :].strip() if header.lower().startswith(_SCHEME) else ""


@cache
def _rule(path: str) -> Callable[[HttpRequest], object]:
    try:
        rule = import_string(path)
    except ImportError as error:
        raise ImproperlyConfigured(
            f"JOBQUEUE['MONITOR_CHECK'] is {path!r}, which cannot be imported: {error}."
        ) from error
    if not callable(rule):
        raise ImproperlyConfigured(f"JOBQUEUE['MONITOR_CHECK'] is {path!r}, which is no function.")
    checked: Callable[[HttpRequest], object] = rule
    return checked


def _forget(*, setting: str, **_: object) -> None:
    if setting == "JOBQUEUE":
        _rule.cache_clear()


setting_changed.connect(_forget)
