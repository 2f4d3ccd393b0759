"""Ports that kill their process once after the step that a learning's text names."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

from django.db import transaction

from example_project.capture import jobs
from example_project.capture.models import Learning
from example_project.capture.ports.chain_ledger import LedgerChain
from example_project.capture.ports.store_files import FileStore
from example_project.capture.uploading import Publication

#: Which step it is, by the first of what it stores.
SAVED = {"chain_account": "numbered", "chain_tx_hash": "signed", "status": "submitted", "block": "confirmed"}


def note(*words):
    """Append a line to the journal, which survives."""
    with Path(os.environ["EXAMPLE_JOURNAL"]).open("a", encoding="utf-8") as journal:
        journal.write(" ".join(words) + "\n")


def after(step, text):
    """Kill this process, if the text asks for it here and has not been served yet; or hang until somebody else does."""
    found = re.search(r"(hang-)?after-(\w+)", text)
    mark = Path(f"{os.environ['EXAMPLE_JOURNAL']}.{found and found[0]}")
    if found and found[2] == step and not mark.exists():
        mark.touch()
        if found[1]:
            time.sleep(120)
        os.kill(os.getpid(), signal.SIGKILL)


def _text_of(tx_hash):
    return Learning.objects.get(upload__chain_tx_hash=tx_hash).content


class KillingStore(FileStore):
    """Tells what it was given."""

    def put(self, content):
        after("look", content.decode())
        cid = super().put(content)
        note("put", cid)
        after("put", content.decode())
        return cid


class KillingChain(LedgerChain):
    """Tells what was sent."""

    def sign(self, nonce, learning_id, cid):
        signed = super().sign(nonce, learning_id, cid)
        after("sign", Learning.objects.get(pk=learning_id).content)
        return signed

    def send(self, signed):
        super().send(signed)
        note("send", signed.tx_hash)
        after("send", _text_of(signed.tx_hash))

    def inclusion(self, tx_hash):
        found = super().inclusion(tx_hash)
        after("inclusion", _text_of(tx_hash))
        return found


class KillingPublication(Publication):
    """Ends after what the database has just stored."""

    def _upload(self):
        upload = super()._upload()
        after("stored", upload.learning.content)
        return upload

    def _move(self, upload, **changes):
        super()._move(upload, **changes)
        transaction.on_commit(lambda: after(SAVED[min(changes)], upload.learning.content))


jobs.Publication = KillingPublication
