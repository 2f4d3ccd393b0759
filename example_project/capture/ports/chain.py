"""The port to a chain. Transactions are numbered and signed here, and sent as often as needed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from pydantic import BaseModel, ConfigDict

from example_project.capture.ports.errors import PortError


class Superseded(PortError):
    """Another transaction with this number is in the chain, so this one will never be."""


class ChainConfig(BaseModel):
    """The place of the chain, the contract, and the reference to the key, but never the key itself."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rpc_url: str
    contract_address: str
    private_key_ref: str


@dataclass(frozen=True, slots=True)
class Signed:
    """A transaction that is ready to send. Its number and hash are known in advance."""

    nonce: int
    tx_hash: str
    raw: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Inclusion:
    """The block that holds a transaction, and whether the contract agreed."""

    block: int
    succeeded: bool


class Chain(Protocol):
    """Accepts transactions signed by an account, one for each number. Raises Busy, Refused, Superseded or PortError."""

    @property
    def account(self) -> str:
        """Return the account with its chain, for which numbers are counted."""
        ...

    def next_nonce(self) -> int:
        """Return the next number that the chain expects from the account."""
        ...

    def sign(self, nonce: int, learning_id: str, cid: str) -> Signed:
        """Return the transaction that publishes a content, without sending it."""
        ...

    def send(self, signed: Signed) -> None:
        """Send it. A transaction that the chain already has is a success. Raises Superseded."""
        ...

    def inclusion(self, tx_hash: str) -> Inclusion | None:
        """Return the block of a transaction, or ``None``."""
        ...
