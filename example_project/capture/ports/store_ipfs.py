"""The store behind the HTTP API of an IPFS node."""

from __future__ import annotations

import json

import httpx

from example_project.capture.ports.errors import PortError
from example_project.capture.ports.http import client, error_of, post
from example_project.capture.ports.store import cid_of

_NOT_PINNED = "is not pinned"


class IpfsStore:
    """The store at an address such as ``http://127.0.0.1:5001``. Contents are pinned, so that no node drops them."""

    def __init__(self, endpoint: str) -> None:
        self._api = f"{endpoint.rstrip('/')}/api/v0"

    def has(self, cid: str) -> bool:
        """Return whether a content is pinned. If not, the API returns an error that only its text identifies."""
        try:
            response = client().post(f"{self._api}/pin/ls", params={"arg": cid, "type": "recursive"})
        except httpx.HTTPError as error:
            raise PortError(f"The store did not answer: {type(error).__name__}.") from error
        if response.is_success:
            return cid in response.json().get("Keys", {})
        if response.status_code == 500 and _NOT_PINNED in response.text:
            return False
        raise error_of("The store", response)

    def put(self, content: bytes) -> str:
        """Add and pin a content. The node must compute the same address."""
        options = {"cid-version": "1", "raw-leaves": "true", "pin": "true", "quieter": "true"}
        files = {"file": ("learning.json", content, "application/octet-stream")}
        response = post("The store", f"{self._api}/add", params=options, files=files)
        # A line for each object. A late error comes in a trailer, without an object.
        added = [json.loads(line) for line in response.text.splitlines() if line]
        if not added or added[-1].get("Hash") != cid_of(content):
            raise PortError("The store did not keep the content, or keeps it under another address.")
        return str(added[-1]["Hash"])
