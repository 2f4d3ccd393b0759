"""Tests of outgoing requests: their addresses, their time limit, and the bounds of the answer."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import time
from contextlib import suppress
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobqueue.clock import SYSTEM
from jobqueue.contrib.webhooks import sending
from jobqueue.contrib.webhooks.addresses import AddressRefused, permitted, target_of
from jobqueue.contrib.webhooks.sending import Unreachable, post
from tests.contrib.receiver import drip_body, drip_headers, flood, hang_up, raw, receiving

LOOPBACK = ["127.0.0.0/8"]

PRIVATE = (
    "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "224.0.0.1",
    "0.0.0.0",  # noqa: S104 - to be refused
    "255.255.255.255", "192.0.2.1", "::1", "::", "fe80::1", "fe80::1%1", "fc00::1", "ff02::1", "::ffff:127.0.0.1",
    "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::1", "2001:0:7f00:1::", "no address",
    "fec0::1", "64:ff9b:1::7f00:1", "::ffff:0:7f00:1", "200::1", "5f00::1",
)  # fmt: skip
PUBLIC = ("93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "::ffff:93.184.215.14", "64:ff9b::5db8:d70e")
NO_URLS = (
    "ftp://a.example/", "file:///etc/passwd", "//a.example/", "https://", "https://user@a.example/",
    "https://user:pw@a.example/", "https://a.example:99999/", "https://a.example/a b", "https://a.example/\r\nX: y",
    "https://ä.example/", "https://a.example\\@b.example/", "https://[::1/", "https://a.example/" + "x" * 2_000,
)  # fmt: skip


def deliver(url, *, networks=LOOPBACK, timeout=20.0, most=1_000, **options):
    return post(
        target_of(url), {"Content-Type": "text/plain"}, b"hello", networks=networks, timeout=timeout, most=most,
        **options,
    )  # fmt: skip


@pytest.fixture
def receiver():
    with receiving() as found:
        yield found


@pytest.mark.parametrize("url", NO_URLS)
def test_such_a_url_is_refused(url):
    with pytest.raises(AddressRefused):
        target_of(url)


def test_only_public_addresses_are_connected_to():
    secure, plain = target_of("https://a.example/"), target_of("http://a.example/")
    for address in PRIVATE:
        with pytest.raises(AddressRefused):
            permitted(secure, [], lambda *_, address=address: [address])
    for address in PUBLIC:
        assert permitted(secure, [], lambda *_, address=address: [address]) == [address]
        with pytest.raises(AddressRefused):
            permitted(plain, [], lambda *_, address=address: [address])
    assert permitted(secure, [], lambda *_: [*PRIVATE, *PUBLIC]) == list(PUBLIC)
    allowed = permitted(plain, ["10.0.0.0/8", "fc00::/7"], lambda *_: [*PRIVATE, *PUBLIC])
    assert allowed == ["10.1.2.3", "fc00::1", "::ffff:10.0.0.1"]


@pytest.mark.parametrize("host", ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "localhost"])
def test_however_the_loopback_is_written_it_is_refused(host, receiver):
    with pytest.raises((AddressRefused, Unreachable)):
        deliver(receiver.url(host=host), networks=[])
    assert receiver.requests == []


def test_a_name_that_changes_its_mind_changes_nothing():
    """Of two servers on one port one may be reached; the resolver names that one first, and then the other."""
    with receiving("127.0.0.2") as good, receiving("127.0.0.1", port=good.port) as bad:
        answers = iter([["127.0.0.2"], ["127.0.0.1"]])
        url = good.url(host="rebinding.example")
        assert deliver(url, networks=["127.0.0.2/32"], ask=lambda *_: next(answers)).status == 200
        assert next(answers) == ["127.0.0.1"]  # it was asked once
        assert (len(good.requests), len(bad.requests)) == (1, 0)
        assert good.requests[0].headers["Host"] == f"rebinding.example:{good.port}"
        with pytest.raises(AddressRefused):
            deliver(url, networks=["127.0.0.2/32"], ask=lambda *_: ["127.0.0.1"])
        assert bad.requests == []


def test_who_answers_without_end_is_not_listened_to(receiver):
    receiver.say(drip_headers)
    began = SYSTEM.monotonic()
    with pytest.raises(Unreachable, match=r"within 0\.5 s"):
        deliver(receiver.url(), timeout=0.5)
    assert SYSTEM.monotonic() - began < 15
    receiver.say(drip_body)
    assert deliver(receiver.url(), timeout=2).status == 200
    receiver.say(flood)
    assert deliver(receiver.url(), most=1_000).text == "y" * 1_000


HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
#: What comes behind a verdict does not change it; of the text, what came is kept.
NONSENSE = {
    "a chunk of -5 bytes": (CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n", None),
    "a chunk of -1 bytes": (CHUNKED + b"-1\r\n" + b"y" * 5_000, None),
    "a chunk of no number": (CHUNKED + b"3\r\nyes\r\nzz\r\n", "yes"),
    "a chunk that never ends": (CHUNKED + b"f" * 5_000 + b"\r\nyes", "yes"),
    "a chunk without its end": (CHUNKED + b"5\r\nhel", "hel"),
    "a chunk's line that never ends": (CHUNKED + b"3;" + b"x" * 70_000 + b"\r\nyes\r\n0\r\n\r\n", ""),
    "chunks of one byte": (CHUNKED + b"1\r\ny\r\n" * 3_000 + b"0\r\n\r\n", "y" * 1_000),
    "a length of -5": (HEAD + b"Content-Length: -5\r\n\r\nyes", "yes"),
    "a length of 5,000 digits": (HEAD + b"Content-Length: " + b"9" * 5_000 + b"\r\n\r\nyes", "yes"),
    "a length that is no number": (HEAD + b"Content-Length: many\r\n\r\nyes", "yes"),
    "less than it says": (HEAD + b"Content-Length: 100\r\n\r\nyes", "yes"),
    "bytes that are no text": (HEAD + b"Content-Length: 3\r\n\r\n\xff\x00y", "\N{REPLACEMENT CHARACTER}y"),
    "no end of its headers": (HEAD, ""),
    "no headers at all": (HEAD + b"\r\nyes", "yes"),
    "lines that are no headers": (HEAD + b"nonsense\r\n: x\r\n\xff\xfe: y\r\n\r\n", None),
    "patience that is no number": (HEAD + b"Retry-After: soon\r\nContent-Length: 0\r\n\r\n", ""),
    "hints before it": (b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 3 + HEAD + b"\r\nyes", "yes"),
    "100 before it": (b"HTTP/1.1 100 Continue\r\n\r\n" * 5 + HEAD + b"\r\nyes", "yes"),
}


@pytest.mark.parametrize("nonsense", NONSENSE)
def test_no_nonsense_behind_a_verdict_changes_it(receiver, nonsense):
    said, text = NONSENSE[nonsense]
    receiver.say(raw(said))
    answer = deliver(receiver.url())
    assert answer.status == 200
    assert len(answer.text) <= 1_000
    assert text is None or answer.text == text


@pytest.mark.parametrize("status", [204, 304])
def test_a_text_where_none_may_be_is_not_read(receiver, status):
    receiver.say(raw(b"HTTP/1.1 %d X\r\nContent-Length: 3\r\n\r\nyes" % status, b"y"))
    assert deliver(receiver.url())[:2] == (status, "")


ENDLESS = {
    "100 Continue": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "103 Early Hints": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100),
    "100 Continue with headers": (b"HTTP/1.1 100 Continue\r\n", b"X: y\r\n"),
    "a status": (b"HTTP/1.1 200 ", b"x" * 1_000),
    "an empty line": (b"", b"\r\n" * 100),
    "a header": (HEAD + b"X: ", b"x" * 1_000),
    "headers": (HEAD, b"X: " + b"x" * 1_000 + b"\r\n"),
}


@pytest.mark.parametrize("endless", ENDLESS)
def test_who_never_comes_to_an_answer_is_left_soon(receiver, endless):
    receiver.say(raw(*ENDLESS[endless]))
    began, used = SYSTEM.monotonic(), time.process_time()
    with pytest.raises(Unreachable):
        deliver(receiver.url(), timeout=60)
    assert SYSTEM.monotonic() - began < 30
    assert time.process_time() - used < 5


ENDLESS_TEXTS = {
    "trailers": (CHUNKED + b"0\r\n", b"X: y\r\n" * 100),
    "empty trailers": (CHUNKED + b"3\r\nyes\r\n0\r\n", b"x" * 1_000 + b"\r\n"),
    "a chunk's line": (CHUNKED, b"0" * 1_000),
    "chunks' lines": (CHUNKED, b"1;" + b"x" * 60_000 + b"\r\ny\r\n"),
    "a chunk of -1 bytes": (CHUNKED + b"-1\r\n", b"y" * 1_000),
    "a text": (HEAD + b"\r\n", b"y" * 1_000),
}


@pytest.mark.parametrize("endless", ENDLESS_TEXTS)
def test_a_text_without_end_is_left_soon(receiver, endless):
    receiver.say(raw(*ENDLESS_TEXTS[endless]))
    began = SYSTEM.monotonic()
    answer = deliver(receiver.url(), timeout=60)
    assert answer.status == 200
    assert len(answer.text) <= 1_000
    assert SYSTEM.monotonic() - began < 30


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.binary(max_size=20)
        | st.sampled_from([HEAD, CHUNKED, b"\r\n", b"HTTP/1.1 ", b"100", b"-5\r\n", b"Retry-After: ", b"0" * 400])
    ).map(b"".join)
)
def test_whatever_a_receiver_says_there_is_an_answer_or_none(receiver, said):
    receiver.say(raw(said))
    with suppress(Unreachable):
        assert 100 <= deliver(receiver.url(), timeout=5).status <= 999


@given(
    st.text(st.characters(max_codepoint=255))
    | st.from_regex(r"\A[A-Z][a-z]{2}, [0-9]{1,4} [A-Z][a-z]{2} [0-9:+ -]{0,30}")
)
def test_whatever_patience_is_asked_for_is_a_number_or_none(text):
    response = SimpleNamespace(getheader=lambda name: text)
    assert sending._patience(response) is None or sending._patience(response) >= 0


def test_faults_of_the_network_are_told_without_naming_where(receiver):
    receiver.say(hang_up)
    faults = [receiver.url(), "http://127.0.0.1:1/", "http://name.invalid/"]
    for url in faults:
        with pytest.raises(Unreachable) as raised:
            deliver(url)
        assert "127.0.0.1" not in str(raised.value)
        assert "invalid" not in str(raised.value)


def test_tls_is_checked_against_the_name(tmp_path, monkeypatch):
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes a certificate, is not installed")
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "certificate.pem")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=receiver.test"
    names = ["-addext", "subjectAltName=DNS:receiver.test", "-keyout", key, "-out", certificate]
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with receiving(context=context) as receiver:
        here = {"ask": lambda *_: ["127.0.0.1"]}
        with pytest.raises(Unreachable, match="certificate"):
            deliver(receiver.url(scheme="https", host="receiver.test"), **here)
        monkeypatch.setenv("SSL_CERT_FILE", certificate)
        assert deliver(receiver.url(scheme="https", host="receiver.test"), **here).status == 200
        with pytest.raises(Unreachable, match="certificate"):
            deliver(receiver.url(scheme="https", host="another.test"), **here)
        assert len(receiver.requests) == 1
