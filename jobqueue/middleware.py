"""What stands in ``MIDDLEWARE``: it starts the embedded worker with the web process, and is in no request's way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from django.core.exceptions import MiddlewareNotUsed
from django.utils.decorators import sync_and_async_middleware

from jobqueue.worker import embedded


@sync_and_async_middleware
def embedded_worker(_get_response: Callable[[Any], Any]) -> NoReturn:
    """Keep a worker beside this web process, where ``JOBQUEUE["EMBEDDED"]`` says so.

    Django makes its middleware when a server loads the application, and only then: not in ``migrate``, not in a worker,
    not in the autoreloader's parent.
    """
    embedded.begin()
    raise MiddlewareNotUsed
