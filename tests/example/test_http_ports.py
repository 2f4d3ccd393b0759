"""Tests of the HTTP ports against local servers, alone and in the whole pipeline."""

from __future__ import annotations

import secrets

import pytest

from example_project.capture.models import new_id
from example_project.capture.ports import http
from example_project.capture.ports.assistant import CATEGORIES, Text
from example_project.capture.ports.assistant_messages import MessagesAssistant
from example_project.capture.ports.chain import ChainConfig, Superseded
from example_project.capture.ports.chain_ethereum import EthereumChain
from example_project.capture.ports.errors import Busy, PortError, Refused
from example_project.capture.ports.store import cid_of
from example_project.capture.ports.store_ipfs import IpfsStore
from tests.example.imitations.ethereum import CHAIN_ID, Ethereum
from tests.example.imitations.ipfs import Ipfs
from tests.example.imitations.messages import KEY, Messages
from tests.example.imitations.serving import LOSE_ANSWER, serving

pytestmark = pytest.mark.timeout(180)
CONTRACT = "0x" + "ab" * 20
TEXTS = [
    Text("m1", "user", "My name is Annabella Privata and it fails."),
    Text("m2", "assistant", "We decided to use SQLite because it needs no server."),
]


@pytest.fixture(autouse=True)
def _no_connection_is_left():
    yield
    http.client().close()
    http.client.cache_clear()


# The store


@pytest.fixture
def ipfs():
    imitation = Ipfs()
    with serving(imitation) as address:
        yield imitation, IpfsStore(address)


def test_the_node_comes_to_the_address_that_we_knew(ipfs):
    imitation, store = ipfs
    content = "{“a”: 1}".encode()
    assert not store.has(cid_of(content))
    assert store.put(content) == cid_of(content)
    assert store.has(cid_of(content))
    assert imitation.pinned == {cid_of(content): content}


def test_a_store_in_trouble_is_asked_again_and_one_that_refuses_is_not(ipfs):
    imitation, store = ipfs
    imitation.trouble("pin/ls", 500, 403)
    with pytest.raises(PortError, match="answered 500") as caught:
        store.has("bafy")
    assert type(caught.value) is PortError
    with pytest.raises(Refused):
        store.has("bafy")
    imitation.trouble("add", LOSE_ANSWER)
    with pytest.raises(PortError, match="did not answer"):
        store.put(b"kept all the same")
    assert store.has(cid_of(b"kept all the same"))


# The chain


@pytest.fixture
def chain(monkeypatch):
    monkeypatch.setenv("A_KEY", "0x" + secrets.token_hex(32))
    imitation = Ethereum()
    with serving(imitation) as address:
        config = ChainConfig(rpc_url=address, contract_address=CONTRACT, private_key_ref="env:A_KEY")
        yield imitation, EthereumChain(config)


def test_a_transaction_is_signed_here_and_the_same_one_is_taken_once(chain):
    imitation, port = chain
    assert port.account.startswith(f"eip155:{CHAIN_ID}:0x")
    assert port.next_nonce() == 0
    signed = port.sign(0, "a learning", "a cid")
    assert imitation.sends == []
    assert port.inclusion(signed.tx_hash) is None
    port.send(signed)
    port.send(signed)
    assert imitation.sends == [signed.tx_hash] * 2
    assert imitation.published == [("a learning", "a cid")]
    assert port.inclusion(signed.tx_hash).succeeded
    assert port.next_nonce() == 1


def test_numbers_may_come_out_of_order_and_wait_for_each_other(chain):
    imitation, port = chain
    second, first = port.sign(1, "second", "b"), port.sign(0, "first", "a")
    port.send(second)
    port.send(second)
    assert port.inclusion(second.tx_hash) is None
    port.send(first)
    assert imitation.published == [("first", "a"), ("second", "b")]


def test_a_number_that_was_used_elsewhere_is_told_from_a_node_in_trouble(chain):
    imitation, port = chain
    signed = port.sign(0, "a learning", "a cid")
    imitation.trouble("eth_sendRawTransaction", 429, LOSE_ANSWER)
    with pytest.raises(Busy) as caught:
        port.send(signed)
    assert caught.value.retry_after == 1
    with pytest.raises(PortError, match="did not answer"):
        port.send(signed)
    port.send(signed)  # it had come all the same
    assert len(imitation.published) == 1
    late = port.sign(1, "another", "cid")
    imitation.take_number(port.account.rpartition(":")[2], 1)
    with pytest.raises(Superseded):
        port.send(late)


# The assistant


@pytest.fixture
def assistant(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    imitation = Messages()
    with serving(imitation) as address:
        yield imitation, MessagesAssistant(address)


def test_the_assistant_answers_in_the_form_it_is_asked_for(assistant):
    imitation, port = assistant
    [oversight] = port.validate(TEXTS)  # what it does not quote as it is written is left out
    assert (oversight.message_id, oversight.category, oversight.snippet) == ("m1", "name", "Annabella Privata")
    [lesson] = port.extract(TEXTS, CATEGORIES)
    assert (lesson.category, lesson.content, lesson.source_message_ids) == ("decision", TEXTS[1].content, ("m2",))
    assert port.extract(TEXTS, ["pitfall"]) == []
    assert port.complete("The lamp must be green.") == "- The lamp must be green."
    assert {body["model"] for body in imitation.asked} == {"claude-sonnet-4-5"}


@pytest.mark.parametrize(
    ("status", "kind", "wait"),
    [(429, Busy, 1.0), (529, Busy, None), (500, PortError, None), (401, Refused, None), (400, Refused, None)],
)
def test_what_the_assistant_says_instead_is_sorted_and_never_quoted(assistant, status, kind, wait):
    imitation, port = assistant
    imitation.trouble("messages", status)
    with pytest.raises(PortError) as caught:
        port.validate(TEXTS)
    assert type(caught.value) is kind
    assert getattr(caught.value, "retry_after", None) == wait
    assert str(status) in str(caught.value)
    assert "_error" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_an_answer_in_another_form_is_an_error_that_quotes_nothing(assistant):
    imitation, port = assistant
    imitation.odd_answer = {"findings": [{"snippet": "Annabella"}]}
    with pytest.raises(PortError, match="another form") as caught:
        port.validate(TEXTS)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


# All of it


@pytest.mark.parametrize("site", [pytest.param("_file", marks=pytest.mark.sqlite)], indirect=True, ids=["sqlite"])
def test_the_pipeline_goes_through_networks_in_trouble_and_publishes_once(site, client):
    """A busy assistant, a store whose answer is lost, a chain that is busy and takes its time."""
    messages, ipfs, ethereum = Messages(), Ipfs(), Ethereum(mines_at_once=False)
    messages.trouble("messages", 429)
    ipfs.trouble("add", LOSE_ANSWER)
    ethereum.trouble("eth_sendRawTransaction", 429)
    sent = {
        "conversation_id": new_id(),
        "messages": [{"role": one.role, "content": one.content} for one in TEXTS],
    }
    with serving(messages) as assistant, serving(ipfs) as store, serving(ethereum) as chain:
        outside = {
            "EXAMPLE_ASSISTANT": assistant,
            "ANTHROPIC_API_KEY": KEY,
            "EXAMPLE_STORE": store,
            "EXAMPLE_CHAIN": chain,
            "EXAMPLE_CONTRACT": CONTRACT,
            "EXAMPLE_KEY_REF": "env:A_KEY",
            "A_KEY": secrets.token_hex(32),
            "EXAMPLE_CONFIRM_EVERY": "0.2",
        }
        assert client.post("/capture/", json=sent).status_code == 202
        with site.working(**outside):
            site.until("SELECT count(*) FROM job_queue_attempt WHERE ending = 'snoozed'", 2)
            with ethereum.lock:
                ethereum.mine()
            site.until("SELECT count(*) FROM uploads WHERE status = 'confirmed'", 1)
            site.until("SELECT count(*) FROM job_queue WHERE status = 'completed'", 3)
    [(learning_id, cid, tx_hash)] = site.rows("SELECT learning_id, ipfs_cid, chain_tx_hash FROM uploads")
    assert ipfs.adds == [cid]
    assert set(ethereum.sends) == {tx_hash}
    assert ethereum.published == [(learning_id, cid)]
    assert site.value("SELECT content FROM messages WHERE position = 0") == "My name is [NAME] and it fails."
    assert site.rows("SELECT error FROM job_queue WHERE type = 'mine_upload' AND error LIKE '%secret%'") == []
