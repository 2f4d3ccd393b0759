"""The JSON-RPC API of an Ethereum node, which verifies signers, numbers and fees, and mines on request."""

from __future__ import annotations

import json

from eth_abi.abi import decode
from eth_account import Account
from eth_account.typed_transactions import TypedTransaction
from eth_utils.abi import function_signature_to_4byte_selector
from eth_utils.crypto import keccak
from hexbytes import HexBytes

from tests.example.imitations.serving import LOSE_ANSWER, Imitation

CHAIN_ID = 1337
BASE_FEE, TIP = 10**9, 2 * 10**9
GAS = 60_000
SELECTOR = function_signature_to_4byte_selector("publish(string,string)")


class RpcFault(Exception):
    """What the node answers as an error."""


class Ethereum(Imitation):
    """One chain with one contract. ``sends`` has the hash of each transaction that came, also those that came again."""

    def __init__(self, *, mines_at_once=True):
        super().__init__()
        self.mines_at_once = mines_at_once
        self.pool = {}
        self.mined = {}
        self.sends = []
        self.published = []
        self.block = 100
        self.reverts = False

    def serve(self, request):
        asked = json.loads(request.body)
        assert asked["jsonrpc"] == "2.0"
        method = asked["method"]
        trouble = self.next_trouble(method)
        if isinstance(trouble, int):
            return request.answer(trouble, b"busy", "text/plain", Retry_After="1")
        try:
            with self.lock:
                outcome = {"result": getattr(self, method)(*asked["params"])}
        except RpcFault as fault:
            outcome = {"error": {"code": -32000, "message": str(fault)}}
        if trouble == LOSE_ANSWER:
            return request.hang_up()
        return request.answer(200, {"jsonrpc": "2.0", "id": asked["id"], **outcome})

    # The methods, under the names that the protocol gives them.

    def eth_chainId(self):  # noqa: N802
        return hex(CHAIN_ID)

    def eth_getTransactionCount(self, address, block):  # noqa: N802
        everything = [*self.mined.values(), *(self.pool.values() if block == "pending" else ())]
        return hex(sum(sender == address for sender, *_ in everything))

    def eth_feeHistory(self, count, block, percentiles):  # noqa: N802
        number = int(count, 16)
        return {
            "oldestBlock": hex(self.block - number),
            "baseFeePerGas": [hex(BASE_FEE)] * (number + 1),
            "gasUsedRatio": [0.5] * number,
            "reward": [[hex(TIP)] * len(percentiles)] * number,
        }

    def eth_estimateGas(self, call):  # noqa: N802
        assert bytes.fromhex(call["data"][2:])[:4] == SELECTOR
        return hex(GAS)

    def eth_sendRawTransaction(self, raw):  # noqa: N802
        fields = TypedTransaction.from_bytes(HexBytes(raw)).as_dict()
        tx_hash = "0x" + keccak(hexstr=raw).hex()
        sender = Account.recover_transaction(raw)
        self.sends.append(tx_hash)
        if tx_hash in self.pool:
            raise RpcFault("already known")
        expected = int(self.eth_getTransactionCount(sender, "latest"), 16)
        if fields["nonce"] < expected:
            raise RpcFault(f"nonce too low: next nonce {expected}, tx nonce {fields['nonce']}")
        if any(one[:2] == (sender, fields["nonce"]) for one in self.pool.values()):
            raise RpcFault("replacement transaction underpriced")
        assert fields["chainId"] == CHAIN_ID
        assert fields["gas"] >= GAS
        assert fields["maxFeePerGas"] >= BASE_FEE + fields["maxPriorityFeePerGas"]
        self.pool[tx_hash] = (sender, fields["nonce"], fields)
        if self.mines_at_once:
            self.mine()
        return tx_hash

    def eth_getTransactionByHash(self, tx_hash):  # noqa: N802
        known = self.pool.get(tx_hash) or self.mined.get(tx_hash)
        return {"hash": tx_hash, "nonce": hex(known[1])} if known else None

    def eth_getTransactionReceipt(self, tx_hash):  # noqa: N802
        if tx_hash not in self.mined:
            return None
        block = self.mined[tx_hash][3]
        return {"transactionHash": tx_hash, "blockNumber": hex(block), "status": "0x0" if self.reverts else "0x1"}

    def mine(self):
        """Take what is next of each account into a block, until nothing is next."""
        self.block += 1
        while ready := [one for one in self.pool.items() if self._is_next(*one[1][:2])]:
            for tx_hash, (sender, nonce, fields) in ready:
                del self.pool[tx_hash]
                self.mined[tx_hash] = (sender, nonce, fields, self.block)
                data = bytes(fields["data"])
                assert data[:4] == SELECTOR
                self.published.append(decode(["string", "string"], data[4:]))

    def take_number(self, address, nonce):
        """Mine another transaction of an account, which its owner sent from elsewhere."""
        self.mined[f"elsewhere-{nonce}"] = (address, nonce, {}, self.block)

    def _is_next(self, sender, nonce):
        return nonce == int(self.eth_getTransactionCount(sender, "latest"), 16)
