"""Middleware: the start of the embedded worker, and the origin of jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from asgiref.sync import iscoroutinefunction
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest
from django.utils.decorators import sync_and_async_middleware

from jobqueue.handlers.origin import of_request
from jobqueue.worker import embedded


@sync_and_async_middleware
def embedded_worker(_get_response: Callable[[Any], Any]) -> NoReturn:
    """Keep a worker beside this web process if ``JOBQUEUE["EMBEDDED"]`` is on.

    Django instantiates middleware only when a server loads the application: not in ``migrate``, not in a worker, not in
    the autoreloader's parent.
    """
    embedded.begin()
    raise MiddlewareNotUsed


@sync_and_async_middleware
def job_origin(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Record in each job which request enqueued it, and which user if the view has accessed ``request.user``.

    The request's id is ``request.request_id`` or ``request.id`` if another middleware sets one, otherwise the
    ``X-Request-ID`` header.
    """
    if iscoroutinefunction(get_response):

        async def answer_later(request: HttpRequest) -> Any:
            with of_request(request):
                return await get_response(request)

        return answer_later

    def answer(request: HttpRequest) -> Any:
        with of_request(request):
            return get_response(request)

    return answer
