"""The port to a chain: transactions are numbered and signed here, and sent as often as it takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from pydantic import BaseModel, ConfigDict

from example_project.capture.ports.errors import PortError


class Superseded(PortError):
    """Another transaction of the account has this number, and is in the chain: this one never will be."""


class ChainConfig(BaseModel):
    """Where the chain is, to which contract we speak, and where the key is to be found: never the key itself."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rpc_url: str
    contract_address: str
    private_key_ref: str


@dataclass(frozen=True, slots=True)
class Signed:
    """A transaction that is ready to be sent; its number and its hash are known before the chain has seen it."""

    nonce: int
    tx_hash: str
    raw: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Inclusion:
    """The block that holds a transaction, and whether the contract agreed."""

    block: int
    succeeded: bool


class Chain(Protocol):
    """Takes what an account signs, each number once. Raises Busy, Refused, Superseded or another PortError."""

    @property
    def account(self) -> str:
        """Name the account, with its chain: numbers count within this."""
        ...

    def next_nonce(self) -> int:
        """Say which number the chain expects next from the account."""
        ...

    def sign(self, nonce: int, learning_id: str, cid: str) -> Signed:
        """Make the transaction that publishes a content. Nothing is sent."""
        ...

    def send(self, signed: Signed) -> None:
        """Send it; a transaction that the chain knows already is sent well. Raises Superseded."""
        ...

    def inclusion(self, tx_hash: str) -> Inclusion | None:
        """Say where the chain has a transaction, if it has."""
        ...
