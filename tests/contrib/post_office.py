"""A minimal real SMTP server, which accepts or refuses messages as told."""

from __future__ import annotations

import socketserver
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy


@dataclass
class PostOffice:
    """What a server was handed: sender, recipients and message."""

    port: int = 0
    letters: list = field(default_factory=list)
    #: What it says to a recipient, in turn; then it takes all.
    refusals: list = field(default_factory=list)


class _Clerk(socketserver.StreamRequestHandler):
    def say(self, text):
        self.wfile.write(text.encode() + b"\r\n")

    def handle(self):
        self.say("220 ready")
        sender, recipients = "", []
        while line := self.rfile.readline().decode().strip():
            verb = line[:4].upper()
            if verb in ("EHLO", "HELO", "RSET", "NOOP"):
                self.say("250 fine")
            elif verb == "MAIL":
                sender, recipients = line.partition(":")[2].split(">")[0].strip(" <"), []
                self.say("250 fine")
            elif verb == "RCPT":
                office = self.server.office
                answer = office.refusals.pop(0) if office.refusals else "250 fine"
                recipients += [line.partition(":")[2].strip(" <>")] if answer[0] == "2" else []
                self.say(answer)
            elif verb == "DATA":
                self.say("354 go on")
                self.take(sender, recipients)
            elif verb == "QUIT":
                self.say("221 bye")
                return

    def take(self, sender, recipients):
        lines = []
        while (line := self.rfile.readline()) != b".\r\n":
            lines.append(line[1:] if line.startswith(b".") else line)
        message = message_from_bytes(b"".join(lines), policy=policy.default)
        self.server.office.letters.append((sender, recipients, message))
        self.say("250 taken")


@contextmanager
def delivering():
    """Run a post office."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Clerk) as server:
        server.daemon_threads = True
        server.office = PostOffice(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server.office
        finally:
            server.shutdown()
            thread.join()
