"""A real HTTP server for webhooks, which answers as told and records requests."""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Received:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """What a server was sent, and what it will say: in turn, the last one for ever."""

    address: str
    port: int
    answers: list = field(default_factory=lambda: [(200, {}, b"thanks")])
    requests: list = field(default_factory=list)
    #: Opened when a slow answer may end.
    over: threading.Event = field(default_factory=threading.Event)

    def url(self, path="/hook", scheme="http", host=""):
        return f"{scheme}://{host or self.address}:{self.port}{path}"

    def say(self, *answers):
        self.answers[:] = answers


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        receiver = self.server.receiver
        body = self.rfile.read(int(self.headers["Content-Length"]))
        receiver.requests.append(Received(self.path, dict(self.headers.items()), body))
        answer = receiver.answers[0] if len(receiver.answers) == 1 else receiver.answers.pop(0)
        with suppress(OSError):  # whoever asked may have had enough
            if callable(answer):
                answer(self, receiver)
            else:
                self._say(*answer)

    def _say(self, status, headers, body):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def drip_headers(handler, receiver):
    """Send a header without end, one byte at a time."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while not receiver.over.wait(0.02):
        handler.wfile.write(b"x")


def drip_body(handler, receiver):
    """Say yes at once, and then go on without end."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while not receiver.over.wait(0.02):
        handler.wfile.write(b"x")


def flood(handler, receiver):
    """Say more than anybody wants to hear."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
    while not receiver.over.is_set():
        handler.wfile.write(b"y" * 100_000)


def raw(data, for_ever=b"", *, each=0.0):
    """Say these very bytes, and then others without end, with pauses between them."""

    def say(handler, receiver):
        handler.wfile.write(data)
        while for_ever and not receiver.over.wait(each):
            handler.wfile.write(for_ever)
        handler.close_connection = True

    return say


def hang_up(handler, receiver):
    """Say nothing."""
    handler.connection.close()


@contextmanager
def receiving(address="127.0.0.1", context=None, port=0):
    """Run a receiver."""
    server = ThreadingHTTPServer((address, port), _Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    server.daemon_threads = True
    server.handle_error = lambda *_: None
    server.receiver = Receiver(address, server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.receiver
    finally:
        server.receiver.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
