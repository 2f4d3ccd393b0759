"""Tests of uploads on an uncooperative chain: a taken number, no block yet, a contract that refuses."""

from __future__ import annotations

import pytest

from example_project.capture import uploading
from example_project.capture.models import Conversation, Learning, Upload
from example_project.capture.ports.chain import ChainConfig, Inclusion
from example_project.capture.ports.chain_ledger import LedgerChain
from example_project.capture.ports.errors import Refused
from example_project.capture.ports.store_files import FileStore
from example_project.capture.uploading import Publication, Unconfirmed
from jobqueue import JobContext

pytestmark = pytest.mark.sqlite
CTX = JobContext(job_id="a", job_type="mine_upload", queue="q", attempt=1, max_retries=5, fence=1)


class Hesitant(LedgerChain):
    """A ledger that may be told what to say of blocks."""

    said = ()
    rival = None

    def sign(self, nonce, learning_id, cid):
        if self.rival is None:
            return super().sign(nonce, learning_id, cid)
        rival, self.rival = self.rival, None
        rival()
        return super().sign(nonce, learning_id, f"{cid}, with other fees")

    def send(self, signed):
        super().send(signed)
        self.sent = [*getattr(self, "sent", []), signed.tx_hash]

    def inclusion(self, tx_hash):
        if self.said:
            answer, *self.said = self.said
            return answer
        return super().inclusion(tx_hash)


@pytest.fixture
def chain(settings, tmp_path):
    settings.CAPTURE = settings.CAPTURE | {"KEYS": tmp_path}
    return Hesitant(
        ChainConfig(rpc_url=f"file:{tmp_path}/ledger", contract_address="0x0", private_key_ref="local:ledger")
    )


@pytest.fixture
def publish(databases, chain, tmp_path):
    """A function that takes a new learning as far as it gets."""
    store, made = FileStore(f"file:{tmp_path}/store"), []

    def advance(learning=None):
        learning = learning or Learning.objects.create(
            conversation=Conversation.objects.get_or_create(source="test")[0],
            category="pitfall",
            title=f"number {len(made)}",
            content="x",
            confidence=0.9,
            dedupe_hash=str(len(made)),
        )
        made.append(learning)
        return Publication(learning, store, chain).advance(CTX)

    yield advance
    Upload.objects.all().delete()
    Learning.objects.all().delete()
    Conversation.objects.all().delete()


def test_numbers_go_up_and_a_second_run_changes_nothing(publish, chain):
    first, second = publish(), publish()
    assert (first.chain_nonce, second.chain_nonce) == (0, 1)
    again = publish(first.learning)
    assert (again.chain_tx_hash, again.confirmed_at) == (first.chain_tx_hash, first.confirmed_at)
    assert chain.sent == [first.chain_tx_hash, second.chain_tx_hash]


def test_a_number_that_the_account_used_elsewhere_makes_way_for_the_next(publish, chain):
    done = publish()
    waiting = publish()
    elsewhere = chain.sign(2, "elsewhere", "cid")
    # As if it had been signed and stored when its process died, and the account had sent another one meanwhile.
    mine = chain.sign(2, waiting.learning_id, waiting.ipfs_cid)
    Upload.objects.filter(pk=waiting.pk).update(
        status="ipfs_uploaded", chain_nonce=2, signed_transaction=mine.raw, chain_tx_hash=mine.tx_hash
    )
    chain.send(elsewhere)
    resumed = publish(waiting.learning)
    assert (resumed.status, resumed.chain_nonce) == ("confirmed", 3)
    assert mine.tx_hash not in chain.sent
    assert len({done.chain_tx_hash, elsewhere.tx_hash, resumed.chain_tx_hash}) == 3


def test_an_attempt_that_was_overtaken_sends_what_the_other_one_signed(publish, chain):
    chain.rival = lambda: publish(Learning.objects.get())
    upload = publish()
    assert upload.status == "confirmed"
    assert set(chain.sent) == {upload.chain_tx_hash}
    assert chain.next_nonce() == 1


def test_a_number_that_an_upload_has_but_has_not_sent_yet_is_nobody_elses(publish, chain):
    chain.rival = publish
    first = publish()
    assert first.chain_nonce == 0
    assert list(Upload.objects.values_list("chain_nonce", "status").order_by("chain_nonce")) == [
        (0, "confirmed"),
        (1, "confirmed"),
    ]
    assert len(set(chain.sent)) == chain.next_nonce() == 2


def test_of_two_that_choose_the_same_number_one_chooses_again(publish, chain, monkeypatch):
    rivals, chosen = [publish], uploading._numbers_taken

    def choose(account):
        number = chosen(account)
        while rivals:
            rivals.pop()()
        return number

    monkeypatch.setattr(uploading, "_numbers_taken", choose)
    late = publish()
    assert (late.status, late.chain_nonce) == ("confirmed", 1)
    assert len(set(chain.sent)) == chain.next_nonce() == 2


def test_a_transaction_without_a_block_is_sent_again_and_waited_for(publish, chain):
    chain.said = [None]
    with pytest.raises(Unconfirmed):
        publish()
    upload = Upload.objects.get()
    assert upload.status == "tx_submitted"
    assert publish(upload.learning).status == "confirmed"
    assert chain.sent == [upload.chain_tx_hash] * 2


def test_a_contracts_no_is_final(publish, chain):
    chain.said = [Inclusion(block=7, succeeded=False)]
    with pytest.raises(Refused, match="block 7"):
        publish()
    assert Upload.objects.get().status == "tx_submitted"
