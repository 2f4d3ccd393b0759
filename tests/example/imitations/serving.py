"""An HTTP server in threads of this process, which misbehaves on request."""

from __future__ import annotations

import json
from collections import deque
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from urllib.parse import parse_qs, urlsplit

#: The request is served, and then the connection breaks before the answer.
LOSE_ANSWER = "lose the answer"


class Imitation:
    """What a service does. ``troubles`` maps a kind of request to the answers it gets before the right ones."""

    def __init__(self):
        self.lock = Lock()
        self.troubles = {}
        self.served = []

    def trouble(self, kind, *answers):
        self.troubles.setdefault(kind, deque()).extend(answers)

    def next_trouble(self, kind):
        with self.lock:
            self.served.append(kind)
            waiting = self.troubles.get(kind)
            return waiting.popleft() if waiting else None

    def serve(self, request):
        """Answer a request; runs in a thread of its own."""
        raise NotImplementedError


class Request(BaseHTTPRequestHandler):
    """One request, with what imitations need of it."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.body = self.rfile.read(int(self.headers["content-length"]))
        parts = urlsplit(self.path)
        self.route = parts.path
        self.query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        self.server.imitation.serve(self)

    def do_GET(self):
        self.answer(405, b"405 - Method Not Allowed\n", "text/plain")

    def answer(self, status, body, kind="application/json", **headers):
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def answer_in_chunks(self, *chunks, **headers):
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("transfer-encoding", "chunked")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        for chunk in (*chunks, b""):
            self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")

    def hang_up(self):
        self.close_connection = True

    def log_message(self, *_):
        pass


@contextmanager
def serving(imitation):
    """Serve an imitation, and yield its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Request) as server:
        server.daemon_threads = True
        server.imitation = imitation
        thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
