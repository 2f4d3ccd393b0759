"""The test project, served for a browser by threads of this process under a strict security policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.test.testcases import LiveServerThread

HOST = "127.0.0.1"
POLICY = "default-src 'self'"


class StrictHandler(StaticFilesHandler):
    """Sends the policy with every answer, static files among them; and has no icon, as it says itself."""

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/favicon.ico":  # any browser asks for it
            start_response("204 No Content", [])
            return []

        own = [("Content-Security-Policy", POLICY)]
        if environ["PATH_INFO"].startswith("/static/"):
            own += [("Cache-Control", "max-age=3600")]  # as in production: each page has the same files

        def start(status: str, headers: list[tuple[str, str]], *error: Any) -> Any:
            return start_response(status, [*headers, *own], *error)

        return super().__call__(environ, start)


@contextmanager
def serving() -> Iterator[str]:
    """Serve, and say where."""
    server = LiveServerThread(HOST, StrictHandler)
    server.daemon = True
    server.start()
    server.is_ready.wait()
    if server.error:
        raise server.error
    yield f"http://{HOST}:{server.port}"
    server.terminate()
