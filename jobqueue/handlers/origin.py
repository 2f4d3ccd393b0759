"""The origin of jobs: the request that enqueued them, and its user."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.utils.functional import LazyObject, empty

#: The keys of the request and the user in the column ``context``.
REQUEST_ID, USER = "request_id", "user"
LONGEST = 200
#: The form of a valid request id. Others are ignored, because a client can send any header.
_ID = re.compile(rf"[!-~]{{1,{LONGEST}}}")
#: The attributes in which other middleware stores the id.
_ATTRIBUTES = ("request_id", "id")
_HEADER = "X-Request-ID"

_Found = Mapping[str, str]
_in_force: ContextVar[Callable[[], _Found] | None] = ContextVar("jobqueue_origin", default=None)


def found() -> _Found:
    """Return the current origin."""
    look = _in_force.get()
    return {} if look is None else look()


@contextmanager
def origin(*, user: object = None, request_id: object = None) -> Iterator[None]:
    """Store the user and the request in all jobs that are enqueued inside this context.

    ``user`` is a user or a user's primary key. An argument that is left out keeps its value from an enclosing context.
    This is for consumers, commands and your own middleware; ``jobqueue.middleware.job_origin`` does it for requests.
    """
    known = {**found(), **_facts(user, request_id)}
    with _looking(lambda: known):
        yield


@contextmanager
def of_request(request: HttpRequest) -> Iterator[None]:
    """Record in jobs which request they come from, and which user, if known when they are enqueued."""
    with _looking(lambda: _facts(_user_of(request), _id_of(request))):
        yield


@contextmanager
def of_job(carried: Mapping[str, Any]) -> Iterator[None]:
    """Pass a job's origin on to its follow-up jobs. Values of a wrong form, stored by other programs, are ignored."""
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
    """Return an id as text, or an empty string for anything else."""
    if isinstance(value, bool) or not isinstance(value, (str, int, UUID)):
        return ""
    text = str(value)
    return text if _ID.fullmatch(text) else ""


def _id_of(request: HttpRequest) -> object:
    known = (getattr(request, name, None) for name in _ATTRIBUTES)
    return next((one for one in known if _text(one)), None) or request.headers.get(_HEADER)


def _user_of(request: HttpRequest) -> object:
    """Return the user if it was already loaded: loading it would cost queries and mark the session as accessed."""
    for user in (getattr(request, "user", None), getattr(request, "_acached_user", None)):
        is_known = not isinstance(user, LazyObject) or user._wrapped is not empty
        if is_known and getattr(user, "is_authenticated", False):
            return user
    return None
