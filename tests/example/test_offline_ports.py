"""Tests of the offline ports: addresses as in IPFS, a tamper-evident ledger, keys by reference."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from example_project.capture import ports
from example_project.capture.ports.assistant import CATEGORIES, Text
from example_project.capture.ports.assistant_rules import RuleAssistant
from example_project.capture.ports.chain import ChainConfig, Superseded
from example_project.capture.ports.chain_ledger import LedgerChain, ledger_at
from example_project.capture.ports.errors import Refused
from example_project.capture.ports.keys import private_key
from example_project.capture.ports.store import MAX_BYTES, cid_of
from example_project.capture.ports.store_files import FileStore

#: What ``ipfs add --cid-version=1`` says of files with these contents.
KNOWN = {
    b"": "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
    b"hello world": "bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e",
    b"hello world\n": "bafkreifjjcie6lypi6ny7amxnfftagclbuxndqonfipmb64f2km2devei4",
}


@pytest.fixture(autouse=True)
def network(settings, tmp_path):
    settings.CAPTURE = settings.CAPTURE | {"KEYS": tmp_path / "keys"}
    return tmp_path


def config(network, key="local:ledger"):
    return ChainConfig(rpc_url=f"file:{network}/ledger", contract_address="0x0", private_key_ref=key)


@pytest.mark.parametrize("content", KNOWN)
def test_an_address_is_that_of_ipfs(content):
    assert cid_of(content) == KNOWN[content]


def test_a_content_that_ipfs_would_cut_in_pieces_has_no_such_address():
    cid_of(b"x" * MAX_BYTES)
    with pytest.raises(ValueError, match="have an address of this kind"):
        cid_of(b"x" * (MAX_BYTES + 1))


def test_a_store_keeps_each_content_once(network):
    store = FileStore(f"file:{network}/store")
    cid = store.put(b"hello world")
    assert store.put(b"hello world") == cid
    assert store.has(cid)
    assert not store.has(cid_of(b"other"))
    assert store.get(cid) == b"hello world"
    assert len([path for path in (network / "store").rglob("*") if path.is_file()]) == 1
    with pytest.raises(ValueError, match="no address"):
        store.has("../../etc/passwd")


def test_a_ledger_takes_each_number_and_each_transaction_once(network):
    chain = LedgerChain(config(network))
    first, rival = chain.sign(0, "a", "cid"), chain.sign(0, "b", "cid")
    for _ in range(3):
        chain.send(first)
    with pytest.raises(Superseded):
        chain.send(rival)
    with pytest.raises(Refused, match="another key"):
        LedgerChain(config(network, "local:another")).send(first)
    assert chain.next_nonce() == 1
    assert chain.inclusion(first.tx_hash).block == 1
    assert chain.inclusion(rival.tx_hash) is None


def test_many_write_to_a_ledger_at_a_time_and_half_a_line_is_written_over(network):
    chain = LedgerChain(config(network))
    signed = [chain.sign(nonce, "a", "cid") for nonce in range(40)]
    with ThreadPoolExecutor(8) as senders:
        list(senders.map(chain.send, signed[:20]))
        with (network / "ledger").open("a") as file:
            file.write('{"hash": "half a li')
        list(senders.map(chain.send, signed[20:]))
    lines = [json.loads(line) for line in (network / "ledger").read_text().splitlines()]
    assert {line["hash"] for line in lines} == {one.tx_hash for one in signed}
    assert len(lines) == 40


def test_a_ledger_that_was_altered_is_not_believed(network):
    chain = LedgerChain(config(network))
    for nonce in range(3):
        chain.send(chain.sign(nonce, "a", "cid"))
    path = network / "ledger"
    path.write_text(path.read_text().replace("cid", "dic", 1))
    ledger_at.cache_clear()
    with pytest.raises(Refused, match="Line 2 of the ledger does not follow"):
        LedgerChain(config(network)).next_nonce()


def test_a_key_is_found_by_reference_alone(network, monkeypatch):
    monkeypatch.setenv("A_KEY", "0x" + "ab" * 32)
    monkeypatch.setenv("NO_KEY", "my secret")
    assert private_key("env:A_KEY") == b"\xab" * 32
    made = private_key("local:fresh")
    assert private_key("local:fresh") == made != private_key("local:other")
    assert (network / "keys" / "fresh.key").stat().st_mode & 0o777 == 0o600
    for reference in ("ab" * 32, "env:UNSET_KEY", "env:NO_KEY", "local:../up", "file:/etc/passwd"):
        with pytest.raises(Refused) as caught:
            private_key(reference)
        assert "secret" not in str(caught.value)
        assert "ab" * 32 not in str(caught.value)


def test_what_is_not_in_the_settings_is_not_opened(settings):
    with pytest.raises(Refused, match="STORES"):
        ports.open_store("file:/tmp/somewhere/else")
    known = settings.CAPTURE["CHAINS"][0]
    with pytest.raises(Refused, match="CHAINS"):
        ports.open_chain(ChainConfig(**known | {"private_key_ref": "env:DATABASE_URL"}))


READ = {
    "My name is Annabella Privata, and it fails.": "Annabella Privata",
    "Best regards,\nOlaf Beispiel": "Olaf Beispiel",
    "I live at 12 Harbour Street, ring twice": "12 Harbour Street",
    "write to anna at example dot org": "anna at example dot org",
    "DE89 3704 0044 0532 0130 00 is the account": "DE89 3704 0044 0532 0130 00",
    "born on 01.02.1990 in spring": "01.02.1990",
}


def test_the_rules_of_the_assistant_find_by_context():
    assistant = RuleAssistant("rules:")
    for content, snippet in READ.items():
        assert [one.snippet for one in assistant.validate([Text("m", "user", content)])] == [snippet]
    harmless = "DE89 3704 0044 0532 0130 01 has wrong check digits. My name is long. We meet at Harbour Street."
    assert assistant.validate([Text("m", "user", harmless)]) == []


def test_the_rules_of_the_assistant_draw_lessons_and_weigh_them():
    said = (
        "We decided to keep `sqlite` because it needs no server. Perhaps we should never do it on Fridays.\n"
        "- By convention each module has a docstring.\nHave a nice day, all of you.\nNever."
    )
    lessons = RuleAssistant("rules:").extract([Text("m", "assistant", said)], CATEGORIES)
    assert [(one.category, one.confidence, one.tags) for one in lessons] == [
        ("decision", 0.95, ("sqlite",)),
        ("pitfall", 0.4, ()),
        ("convention", 0.6, ()),
    ]
    assert RuleAssistant("rules:").extract([Text("m", "assistant", said)], CATEGORIES) == lessons
