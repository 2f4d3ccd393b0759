"""A web process that answers scrapes, on the database of a run. Its settings come by one argument."""

from __future__ import annotations

import json
import sys
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from django.core.wsgi import get_wsgi_application

from benchmarks.databases import Place

TOKEN = "a token for scrapes"  # noqa: S105 - nothing here is secret
URLS = "benchmarks.scraped_urls"


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Write no line for each scrape."""


def main() -> None:
    """Answer until killed. The port is written to standard output."""
    place = Place(**json.loads(sys.argv[1]))
    place.configure(ROOT_URLCONF=URLS, ALLOWED_HOSTS=["127.0.0.1"])
    with make_server("127.0.0.1", 0, get_wsgi_application(), _Server, _Quiet) as server:
        print(server.server_port, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
