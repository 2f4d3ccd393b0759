"""The part of an IPFS node's HTTP API that adds and pins small files."""

from __future__ import annotations

import base64
import hashlib
import json
from email import message_from_bytes
from email.policy import HTTP

from tests.example.imitations.serving import LOSE_ANSWER, Imitation


class Ipfs(Imitation):
    """Keeps what it is given under its address; ``adds`` has each that came, also those that came again."""

    def __init__(self):
        super().__init__()
        self.pinned = {}
        self.adds = []

    def serve(self, request):
        kind = request.route.removeprefix("/api/v0/")
        trouble = self.next_trouble(kind)
        if isinstance(trouble, int):
            return request.answer(trouble, _error("something went wrong"))
        if kind == "add":
            return self._add(request, trouble)
        if kind == "pin/ls":
            return self._list(request)
        return request.answer(404, b"404 page not found", "text/plain")

    def _add(self, request, trouble):
        assert request.query["cid-version"] == "1"
        content = _only_part(request)
        cid = _address(content)
        with self.lock:
            self.adds.append(cid)
            if request.query.get("pin", "true") == "true":
                self.pinned[cid] = content
        if trouble == LOSE_ANSWER:
            return request.hang_up()
        line = json.dumps({"Name": "learning.json", "Hash": cid, "Size": str(len(content))})
        return request.answer_in_chunks(line[:20].encode(), line[20:].encode() + b"\n", X_Stream_Output="1")

    def _list(self, request):
        cid = request.query["arg"]
        if cid not in self.pinned:
            return request.answer(500, _error(f"path '{cid}' is not pinned"))
        return request.answer(200, {"Keys": {cid: {"Type": "recursive"}}})


def _error(message):
    return {"Message": message, "Code": 0, "Type": "error"}


def _only_part(request):
    head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
    [part] = message_from_bytes(head + request.body, policy=HTTP).iter_parts()
    assert part.get_content_disposition() == "form-data"
    return part.get_payload(decode=True)


def _address(content):
    """Make a CID by the book: version 1, codec raw, multihash sha2-256 of 32 bytes; base32 without padding."""
    multihash = b"\x12" + bytes([32]) + hashlib.sha256(content).digest()
    return "b" + base64.b32encode(b"\x01\x55" + multihash).decode("ascii").rstrip("=").lower()
