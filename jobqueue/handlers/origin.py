"""Where jobs come from: the request in whose course they are enqueued, and its user."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.utils.functional import LazyObject, empty

#: The keys under which the two are stored in the column ``context``.
REQUEST_ID, USER = "request_id", "user"
LONGEST = 200
#: What may be an id: a client can send any header. Anything else is left out.
_ID = re.compile(rf"[!-~]{{1,{LONGEST}}}")
#: Where other middleware leaves the id that it has read or made.
_ATTRIBUTES = ("request_id", "id")
_HEADER = "X-Request-ID"

_Found = Mapping[str, str]
_in_force: ContextVar[Callable[[], _Found] | None] = ContextVar("jobqueue_origin", default=None)


def found() -> _Found:
    """Say what is known here of where jobs come from."""
    look = _in_force.get()
    return {} if look is None else look()


@contextmanager
def origin(*, user: object = None, request_id: object = None) -> Iterator[None]:
    """Have the jobs that are enqueued inside say which user and which request they come from.

    ``user`` is a user, or a user's primary key. What is left out stays as it is outside. For a consumer, a command or a
    middleware of your own; ``jobqueue.middleware.job_origin`` does it for requests.
    """
    known = {**found(), **_facts(user, request_id)}
    with _looking(lambda: known):
        yield


@contextmanager
def of_request(request: HttpRequest) -> Iterator[None]:
    """Have jobs say which request they come from, and which user as far as that is known when they are enqueued."""
    with _looking(lambda: _facts(_user_of(request), _id_of(request))):
        yield


@contextmanager
def of_job(carried: Mapping[str, Any]) -> Iterator[None]:
    """Have follow-up jobs come from where their job did; a foreign program may have stored anything there."""
    known = _facts(carried.get(USER), carried.get(REQUEST_ID))
    with _looking(lambda: known):
        yield


@contextmanager
def _looking(look: Callable[[], _Found]) -> Iterator[None]:
    token = _in_force.set(look)
    try:
        yield
    finally:
        _in_force.reset(token)


def _facts(user: object, request_id: object) -> _Found:
    facts = {USER: _text(getattr(user, "pk", user)), REQUEST_ID: _text(request_id)}
    return {name: value for name, value in facts.items() if value}


def _text(value: object) -> str:
    """Write an id, if it is one."""
    if isinstance(value, bool) or not isinstance(value, (str, int, UUID)):
        return ""
    text = str(value)
    return text if _ID.fullmatch(text) else ""


def _id_of(request: HttpRequest) -> object:
    known = (getattr(request, name, None) for name in _ATTRIBUTES)
    return next((one for one in known if _text(one)), None) or request.headers.get(_HEADER)


def _user_of(request: HttpRequest) -> object:
    """Find the user if somebody has asked for it: to ask now would cost queries, and mark the session as used."""
    for user in (getattr(request, "user", None), getattr(request, "_acached_user", None)):
        is_known = not isinstance(user, LazyObject) or user._wrapped is not empty
        if is_known and getattr(user, "is_authenticated", False):
            return user
    return None
