"""A learning's way into the network, a step at a time. Each step can be taken again by whoever comes after a crash.

The row says how far it is. Before a step acts outside, the row holds all that is needed to find out later whether it
did: the content's address follows from the content, and the transaction is stored, signed and numbered, before it is
sent. So a second look finds the first upload, and a second send is the same transaction.
"""

from __future__ import annotations

import json
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max

from example_project.capture.models import Learning, Upload
from example_project.capture.ports.chain import Chain, Signed, Superseded
from example_project.capture.ports.errors import Busy, Refused
from example_project.capture.ports.store import Store, cid_of
from jobqueue import JobContext
from jobqueue.clock import SYSTEM

#: So often a number is sought that no other upload has taken meanwhile.
TRIES = 100


class Unconfirmed(Exception):
    """The chain has the transaction, but no block has it yet."""


class Publication:
    """One learning, one store and one chain."""

    def __init__(self, learning: Learning, store: Store, chain: Chain) -> None:
        self._learning = learning
        self._store = store
        self._chain = chain

    def advance(self, ctx: JobContext) -> Upload:
        """Take the steps that are left. Raises Unconfirmed, and what the ports raise."""
        upload = Upload.objects.filter(learning=self._learning).first() or self._upload()
        while upload.status != Upload.Status.CONFIRMED:
            ctx.checkpoint()
            if upload.chain_nonce is None:
                self._number(upload)
            elif not upload.signed_transaction:
                self._sign(upload, upload.chain_nonce)
            elif upload.status == Upload.Status.IPFS_UPLOADED:
                self._submit(upload)
            else:
                self._confirm(upload)
        return upload

    def _upload(self) -> Upload:
        """Store the content, unless it is there: then whoever put it there had no time to say so."""
        content = content_of(self._learning)
        cid = cid_of(content)
        if not self._store.has(cid):
            self._store.put(content)
        stored, _ = Upload.objects.get_or_create(
            learning=self._learning,
            defaults={"ipfs_cid": cid, "status": Upload.Status.IPFS_UPLOADED, "uploaded_at": SYSTEM.now()},
        )
        return stored

    def _number(self, upload: Upload) -> None:
        """Give the transaction the next number of the account; the database sees to it that no other upload has it."""
        account, expected = self._chain.account, self._chain.next_nonce()
        for _ in range(TRIES):
            try:
                with transaction.atomic():
                    self._move(upload, chain_account=account, chain_nonce=max(expected, _numbers_taken(account)))
            except IntegrityError:
                continue  # another upload was quicker, so there is progress
            return
        raise Busy("Other uploads took each number first.")

    def _sign(self, upload: Upload, nonce: int) -> None:
        """Sign the transaction, and store it before anybody sends it."""
        signed = self._chain.sign(nonce, self._learning.pk, upload.ipfs_cid)
        self._move(upload, signed_transaction=signed.raw, chain_tx_hash=signed.tx_hash)

    def _submit(self, upload: Upload) -> None:
        """Send the transaction, which the chain takes once however often it comes."""
        signed = Signed(upload.chain_nonce or 0, upload.chain_tx_hash or "", upload.signed_transaction or "")
        try:
            self._chain.send(signed)
        except Superseded:
            # The chain will never take this one, so nothing happens twice if another one takes its place.
            nothing = dict.fromkeys(("chain_nonce", "signed_transaction", "chain_tx_hash"))
            self._move(upload, status=Upload.Status.IPFS_UPLOADED, **nothing)
        else:
            self._move(upload, status=Upload.Status.TX_SUBMITTED)

    def _confirm(self, upload: Upload) -> None:
        found = self._chain.inclusion(upload.chain_tx_hash or "")
        if found is None:
            self._submit(upload)  # a node may have dropped it
            raise Unconfirmed("No block has the transaction yet.")
        if not found.succeeded:
            raise Refused(f"The contract refused the transaction in block {found.block}.")
        self._move(upload, status=Upload.Status.CONFIRMED, block=found.block, confirmed_at=SYSTEM.now())

    def _move(self, upload: Upload, **changes: Any) -> None:
        """Change the row if it is as we know it, and go on from what it is: a late attempt undoes nothing."""
        known = {name: getattr(upload, name) for name in ("status", "chain_nonce", "chain_tx_hash")}
        Upload.objects.filter(pk=upload.pk, **known).update(**changes, updated_at=SYSTEM.now())
        upload.refresh_from_db()


def content_of(learning: Learning) -> bytes:
    """Write what is published: the same bytes whenever it is asked, for their address follows from them."""
    published = {
        "category": learning.category,
        "title": learning.title,
        "content": learning.content,
        "confidence": learning.confidence,
        "tags": learning.tags,
    }
    return json.dumps(published, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def _numbers_taken(account: str) -> int:
    highest: int | None = Upload.objects.filter(chain_account=account).aggregate(highest=Max("chain_nonce"))["highest"]
    return 0 if highest is None else highest + 1
