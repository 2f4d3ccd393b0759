"""A chain behind the JSON-RPC of an Ethereum node. Transactions are signed here, so the node never sees a key."""

from __future__ import annotations

from functools import cached_property
from itertools import count
from typing import Any

from eth_abi.abi import encode
from eth_account import Account
from eth_utils.abi import function_signature_to_4byte_selector
from eth_utils.address import to_checksum_address

from example_project.capture.ports.chain import ChainConfig, Inclusion, Signed, Superseded
from example_project.capture.ports.errors import PortError
from example_project.capture.ports.http import post
from example_project.capture.ports.keys import private_key

#: The contract's function, with the learning and its content's address.
PUBLISH = "publish(string,string)"
#: A fee may double this often before a transaction becomes too cheap to be included.
FEE_DOUBLINGS = 2
GAS_MARGIN = 1.2

_numbers = count(1)


class RpcError(PortError):
    """The node refused a request. Its message isn't used, because each kind of node has its own wording."""

    def __init__(self, method: str, code: object) -> None:
        super().__init__(f"The chain answered {method} with the error {code}.")


class EthereumChain:
    """The chain at an address such as ``https://rpc.example.org``."""

    def __init__(self, config: ChainConfig) -> None:
        self._config = config
        self._signer = Account.from_key(private_key(config.private_key_ref))

    @property
    def account(self) -> str:
        """Return the account with its chain, as in CAIP-10."""
        return f"eip155:{self._chain_id}:{self._signer.address}"

    def next_nonce(self) -> int:
        """Return the next number that the chain expects, after pending transactions."""
        return self._count("pending")

    def sign(self, nonce: int, learning_id: str, cid: str) -> Signed:
        """Return the transaction that calls the contract, with current fees."""
        call = {
            "from": self._signer.address,
            "to": to_checksum_address(self._config.contract_address),
            "data": "0x" + (function_signature_to_4byte_selector(PUBLISH) + _arguments(learning_id, cid)).hex(),
        }
        gas = int(int(self._ask("eth_estimateGas", call), 16) * GAS_MARGIN)
        transaction = {
            "type": 2,
            "chainId": self._chain_id,
            "nonce": nonce,
            "gas": gas,
            "value": 0,
            "to": call["to"],
            "data": call["data"],
            **self._fees(),
        }
        signed = self._signer.sign_transaction(transaction)
        return Signed(nonce, "0x" + bytes(signed.hash).hex(), "0x" + bytes(signed.raw_transaction).hex())

    def send(self, signed: Signed) -> None:
        """Send it. If the node refuses, its state shows whether it has the transaction, or never will."""
        try:
            self._ask("eth_sendRawTransaction", signed.raw)
        except RpcError:
            if self._ask("eth_getTransactionByHash", signed.tx_hash) is not None:
                return
            # Only final blocks, because one of several nodes behind an address may lag behind.
            if self._count("finalized") > signed.nonce:
                raise Superseded("Another transaction of the account has its number.") from None
            raise

    def inclusion(self, tx_hash: str) -> Inclusion | None:
        """Return the block of a transaction, and whether the contract succeeded."""
        receipt = self._ask("eth_getTransactionReceipt", tx_hash)
        if receipt is None:
            return None
        return Inclusion(int(receipt["blockNumber"], 16), succeeded=int(receipt["status"], 16) == 1)

    @cached_property
    def _chain_id(self) -> int:
        return int(self._ask("eth_chainId"), 16)

    def _count(self, block: str) -> int:
        return int(self._ask("eth_getTransactionCount", self._signer.address, block), 16)

    def _fees(self) -> dict[str, int]:
        history = self._ask("eth_feeHistory", "0x5", "latest", [50])
        tip = max(int(rewards[0], 16) for rewards in history["reward"])
        return {
            "maxPriorityFeePerGas": tip,
            "maxFeePerGas": int(history["baseFeePerGas"][-1], 16) * FEE_DOUBLINGS + tip,
        }

    def _ask(self, method: str, *parameters: object) -> Any:
        request = {"jsonrpc": "2.0", "id": next(_numbers), "method": method, "params": parameters}
        answer = post("The chain", self._config.rpc_url, json=request).json()
        if "error" in answer:
            raise RpcError(method, answer["error"].get("code"))
        return answer["result"]


def _arguments(learning_id: str, cid: str) -> bytes:
    return encode(["string", "string"], [learning_id, cid])
