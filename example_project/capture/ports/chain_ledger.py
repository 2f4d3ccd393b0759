"""A chain without a network: a ledger on disk with signed lines, each linked to the previous one."""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Any

from example_project.capture.ports.chain import ChainConfig, Inclusion, Signed, Superseded
from example_project.capture.ports.errors import Refused
from example_project.capture.ports.keys import private_key

GENESIS = "0" * 64


class LedgerChain:
    """The ledger at ``file:/a/file``. The key is the account; a signature is a keyed hash, HMAC-SHA256."""

    def __init__(self, config: ChainConfig) -> None:
        self._config = config
        self._key = private_key(config.private_key_ref)
        self._ledger = ledger_at(Path(config.rpc_url.removeprefix("file:")))

    @property
    def account(self) -> str:
        """Return the account with its chain."""
        return f"ledger:{hashlib.sha256(b'account' + self._key).hexdigest()[:40]}"

    def next_nonce(self) -> int:
        """Return the next number that the ledger expects from the account."""
        with self._ledger.locked():
            numbers = self._ledger.numbers.get(self.account, {})
            return max(numbers, default=-1) + 1

    def sign(self, nonce: int, learning_id: str, cid: str) -> Signed:
        """Return the line that publishes a content, without its place in the ledger."""
        said = {
            "account": self.account,
            "nonce": nonce,
            "contract": self._config.contract_address,
            "learning_id": learning_id,
            "cid": cid,
        }
        raw = _written(said | {"signature": self._signature(said)})
        return Signed(nonce, "0x" + hashlib.sha256(raw.encode()).hexdigest(), raw)

    def send(self, signed: Signed) -> None:
        """Append it, unless it is there. Raises Superseded, and Refused for a line that this key hasn't signed."""
        said = json.loads(signed.raw)
        if not hmac.compare_digest(said.pop("signature"), self._signature(said)):
            raise Refused("The transaction was signed with another key.")
        with self._ledger.locked() as file:
            holder = self._ledger.numbers.get(said["account"], {}).get(said["nonce"])
            if holder is None:
                self._ledger.append(file, signed)
            elif holder != signed.tx_hash:
                raise Superseded(f"Number {said['nonce']} of the account is taken.")

    def inclusion(self, tx_hash: str) -> Inclusion | None:
        """Return the line of a transaction."""
        with self._ledger.locked():
            line = self._ledger.lines.get(tx_hash)
        return None if line is None else Inclusion(line, succeeded=True)

    def _signature(self, said: dict[str, Any]) -> str:
        return hmac.new(self._key, _written(said).encode(), hashlib.sha256).hexdigest()


@dataclass
class Ledger:
    """A file of lines, and what this process has read of it. It is only used under a lock on the file."""

    path: Path
    lines: dict[str, int] = field(default_factory=dict)
    numbers: dict[str, dict[int, str]] = field(default_factory=dict)
    last: str = GENESIS
    read: int = 0

    @contextmanager
    def locked(self) -> Iterator[IO[bytes]]:
        """Lock out other processes and threads, and read what they have appended."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._catch_up(file)
            yield file

    def append(self, file: IO[bytes], signed: Signed) -> None:
        """Append a transaction and sync it to disk."""
        line = _written({"previous": self.last, "hash": signed.tx_hash, "transaction": signed.raw}) + "\n"
        file.seek(self.read)
        file.truncate()  # half a line of a process that died, which was never confirmed
        file.write(line.encode())
        file.flush()
        os.fsync(file.fileno())
        self._catch_up(file)

    def _catch_up(self, file: IO[bytes]) -> None:
        if os.fstat(file.fileno()).st_size < self.read:
            self.lines, self.numbers, self.last, self.read = {}, {}, GENESIS, 0  # another process began a new ledger
        file.seek(self.read)
        for line in file.readlines():
            if line.endswith(b"\n"):
                self._take(line)

    def _take(self, line: bytes) -> None:
        entry = json.loads(line)
        if entry["previous"] != self.last:
            raise Refused(f"Line {len(self.lines) + 1} of the ledger does not follow from the one before it.")
        said = json.loads(entry["transaction"])
        self.numbers.setdefault(said["account"], {})[said["nonce"]] = entry["hash"]
        self.last = hashlib.sha256(line).hexdigest()
        self.read += len(line)
        self.lines[entry["hash"]] = len(self.lines) + 1


ledger_at = cache(Ledger)


def _written(value: dict[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
