"""The upload of a learning in steps, each of which can be repeated after a crash.

The row records the progress. Before a step acts outside, the row has everything needed to find out later whether it
did: the address follows from the content, and the transaction is stored, signed and numbered, before it is sent. A
repeated step therefore finds the first upload, or sends the same transaction.
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

#: How often to look for a number that no other upload has taken meanwhile.
TRIES = 100


class Unconfirmed(Exception):
    """The chain has the transaction, but it isn't in a block yet."""


class Publication:
    """One learning, one store and one chain."""

    def __init__(self, learning: Learning, store: Store, chain: Chain) -> None:
        self._learning = learning
        self._store = store
        self._chain = chain

    def advance(self, ctx: JobContext) -> Upload:
        """Take the remaining steps. Raises Unconfirmed, and the errors of the ports."""
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
        """Store the content unless it is there, which means that an earlier attempt died before recording it."""
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
        """Give the transaction the account's next number. The database ensures that no other upload has it."""
        account, expected = self._chain.account, self._chain.next_nonce()
        for _ in range(TRIES):
            try:
                with transaction.atomic():
                    self._move(upload, chain_account=account, chain_nonce=max(expected, _numbers_taken(account)))
            except IntegrityError:
                continue  # another upload was faster, so there is progress
            return
        raise Busy("Other uploads took each number first.")

    def _sign(self, upload: Upload, nonce: int) -> None:
        """Sign the transaction, and store it before it is sent."""
        signed = self._chain.sign(nonce, self._learning.pk, upload.ipfs_cid)
        self._move(upload, signed_transaction=signed.raw, chain_tx_hash=signed.tx_hash)

    def _submit(self, upload: Upload) -> None:
        """Send the transaction. The chain accepts it once, however often it is sent."""
        signed = Signed(upload.chain_nonce or 0, upload.chain_tx_hash or "", upload.signed_transaction or "")
        try:
            self._chain.send(signed)
        except Superseded:
            # The chain will never accept this one, so replacing it can't publish twice.
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
        """Update the row if it is unchanged, and reload it, so that a late attempt undoes nothing."""
        known = {name: getattr(upload, name) for name in ("status", "chain_nonce", "chain_tx_hash")}
        Upload.objects.filter(pk=upload.pk, **known).update(**changes, updated_at=SYSTEM.now())
        upload.refresh_from_db()


def content_of(learning: Learning) -> bytes:
    """Return the published content. It is always the same bytes, because its address follows from them."""
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
