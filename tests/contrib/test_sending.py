"""What leaves the house: to which addresses, for how long, and how much of an answer is listened to."""

from __future__ import annotations

import shutil
import ssl
import subprocess

import pytest

from jobqueue.clock import SYSTEM
from jobqueue.contrib.webhooks.addresses import Refused, permitted, target_of
from jobqueue.contrib.webhooks.sending import Unreachable, post
from tests.contrib.receiver import drip_body, drip_headers, flood, hang_up, receiving

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
    with pytest.raises(Refused):
        target_of(url)


def test_only_public_addresses_are_connected_to():
    secure, plain = target_of("https://a.example/"), target_of("http://a.example/")
    for address in PRIVATE:
        with pytest.raises(Refused):
            permitted(secure, [], lambda *_, address=address: [address])
    for address in PUBLIC:
        assert permitted(secure, [], lambda *_, address=address: [address]) == [address]
        with pytest.raises(Refused):
            permitted(plain, [], lambda *_, address=address: [address])
    assert permitted(secure, [], lambda *_: [*PRIVATE, *PUBLIC]) == list(PUBLIC)
    allowed = permitted(plain, ["10.0.0.0/8", "fc00::/7"], lambda *_: [*PRIVATE, *PUBLIC])
    assert allowed == ["10.1.2.3", "fc00::1", "::ffff:10.0.0.1"]


@pytest.mark.parametrize("host", ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "localhost"])
def test_however_the_loopback_is_written_it_is_refused(host, receiver):
    with pytest.raises((Refused, Unreachable)):
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
        with pytest.raises(Refused):
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
