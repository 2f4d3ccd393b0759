"""Tests of webhooks with real servers: signatures, retries, and the state of endpoints."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from functools import partial
from threading import Event

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.contrib.sessions.models import Session
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.test import Client
from django.urls import reverse

from jobqueue import Cancel, Discard, JobStatus, Retry
from jobqueue.clock import SYSTEM, to_text
from jobqueue.contrib.webhooks import reach
from jobqueue.contrib.webhooks.jobs import WebhookDispatch, compare_delivered, webhook_dispatch
from jobqueue.contrib.webhooks.models import Delivery, Endpoint
from jobqueue.contrib.webhooks.signing import InvalidSecret, InvalidSignature, key_of, new_secret, signature, verify
from jobqueue.ids import new_id
from tests.contrib.conftest import attempt
from tests.contrib.receiver import receiving

HERE = {"WEBHOOK_NETWORKS": ["127.0.0.0/8"]}
BODY = {"type": "order.paid", "data": {"order": 7, "name": "Grüße"}}


class ToOne:
    """A router to one database."""

    def __init__(self, alias):
        self.alias = alias

    def db_for_read(self, model, **_):
        return self.alias

    db_for_write = db_for_read


@pytest.fixture
def receiver():
    with receiving() as found:
        yield found


@pytest.fixture
def endpoint(configure, alias, settings, receiver):
    settings.DATABASE_ROUTERS = [ToOne(alias)]
    configure(**HERE)
    yield Endpoint.objects.create(name="shop", url=receiver.url())
    Endpoint.objects.all().delete()


def send(endpoint, number=1):
    payload = WebhookDispatch(endpoint_id=endpoint.pk, event=BODY["type"], data=BODY["data"])
    return webhook_dispatch(payload, attempt("webhook_dispatch", number))


def test_a_delivery_is_signed_and_logged(endpoint, receiver):
    result = send(endpoint)
    (request,) = receiver.requests
    assert json.loads(request.body) == BODY
    assert request.headers["Content-Type"] == "application/json"
    assert verify(endpoint.secret, request.headers, request.body) == attempt().job_id == result["delivery_id"]
    entry = Delivery.objects.get()
    assert (entry.outcome, entry.status_code, entry.answer, entry.reason) == ("delivered", 200, "thanks", "")
    endpoint.refresh_from_db()
    assert endpoint.delivered_at == entry.sent_at


def test_another_attempt_is_the_same_delivery(endpoint, receiver):
    receiver.say((503, {}, b"later"), (200, {}, b""))
    with pytest.raises(Retry, match="503") as raised:
        send(endpoint)
    assert raised.value.delay is None
    send(endpoint, 2)
    first, second = receiver.requests
    assert first.body == second.body
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert [entry.attempt for entry in Delivery.objects.order_by("pk")] == [1, 2]
    endpoint.refresh_from_db()
    assert (endpoint.failures, endpoint.failing_since) == (0, None)


def test_the_status_decides(endpoint, receiver):
    for status in (408, 425, 429, 500, 599):
        receiver.say((status, {}, b""))
        with pytest.raises(Retry, match=str(status)):
            send(endpoint)
    for status in (301, 307, 400, 401, 404, 418):
        receiver.say((status, {"Location": receiver.url("/elsewhere")}, b""))
        with pytest.raises(Discard, match=str(status)):
            send(endpoint)
    assert {request.path for request in receiver.requests} == {"/hook"}
    receiver.say((410, {}, b""))
    with pytest.raises(Discard, match="410"):
        send(endpoint)
    endpoint.refresh_from_db()
    assert not endpoint.enabled
    assert "410" in endpoint.disabled_reason


def test_a_receiver_may_ask_for_patience_within_bounds(endpoint, receiver):
    later = (SYSTEM.now() + timedelta(minutes=10)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    for asked, least, most in (("7", 7, 7), ("999999999999", 3600, 3600), (later, 500, 600), ("soon", None, None)):
        receiver.say((503, {"Retry-After": asked}, b""))
        with pytest.raises(Retry) as raised:
            send(endpoint)
        delay = raised.value.delay
        assert (delay is None) if least is None else least <= delay.total_seconds() <= most


def test_an_endpoint_that_keeps_failing_is_disabled(endpoint, receiver, configure):
    configure(**HERE, WEBHOOK_MAX_FAILURES=3, WEBHOOK_FAILING_FOR=60)
    receiver.say((500, {}, b""))
    for _ in range(4):  # often enough, but not for long enough
        with pytest.raises(Retry):
            send(endpoint)
    endpoint.refresh_from_db()
    assert (endpoint.enabled, endpoint.failures) == (True, 4)
    Endpoint.objects.update(failing_since=SYSTEM.now() - timedelta(seconds=61))
    with pytest.raises(Retry):
        send(endpoint)
    endpoint.refresh_from_db()
    assert not endpoint.enabled
    assert endpoint.disabled_reason == "5 failures in a row. The receiver answered 500."
    asked = len(receiver.requests)
    with pytest.raises(Cancel, match="disabled"):
        send(endpoint)
    assert len(receiver.requests) == asked
    endpoint.enable()
    endpoint.save()
    receiver.say((200, {}, b""))
    send(endpoint)


def test_an_endpoint_that_is_gone_cancels(endpoint):
    endpoint_id = endpoint.pk
    Endpoint.objects.all().delete()
    endpoint.pk = endpoint_id
    with pytest.raises(Cancel, match="no longer exists"):
        send(endpoint)


def test_while_a_secret_is_changed_both_sign(endpoint, receiver):
    old = endpoint.secret
    endpoint.rotate(new_secret())
    endpoint.save()
    send(endpoint)
    endpoint.previous_until = SYSTEM.now()
    endpoint.save()
    send(endpoint)
    both, one = receiver.requests
    for secret in (old, endpoint.secret, [new_secret(), old]):
        verify(secret, both.headers, both.body)
    verify(endpoint.secret, one.headers, one.body)
    with pytest.raises(InvalidSignature):
        verify(old, one.headers, one.body)


def test_a_secret_may_be_elsewhere(endpoint, receiver, monkeypatch):
    endpoint.secret = "env:SHOP_WEBHOOK_SECRET"
    endpoint.save()
    with pytest.raises(Retry, match="SHOP_WEBHOOK_SECRET"):
        send(endpoint)
    secret = new_secret()
    monkeypatch.setenv("SHOP_WEBHOOK_SECRET", secret)
    send(endpoint)
    verify(secret, receiver.requests[0].headers, receiver.requests[0].body)


def test_the_log_forgets(endpoint, configure):
    configure(**HERE, WEBHOOK_LOG_FOR=3600)
    send(endpoint)
    Delivery.objects.update(sent_at=SYSTEM.now() - timedelta(seconds=3601))
    send(endpoint)
    assert Delivery.objects.count() == 1


def test_a_delivery_that_the_log_does_not_know_is_a_discrepancy(endpoint):
    payload = WebhookDispatch(endpoint_id=endpoint.pk, event="order.paid")
    result = send(endpoint)
    assert compare_delivered(payload, result) is None
    long_ago = result | {"delivered_at": to_text(SYSTEM.now() - timedelta(days=31))}
    Delivery.objects.all().delete()
    assert "has no successful delivery" in compare_delivered(payload, result)
    assert compare_delivered(payload, long_ago) is None


def test_a_worker_delivers(endpoint, receiver, start_worker, jobs):
    receiver.say((503, {"Retry-After": "0"}, b"later"), (200, {}, b""))
    receipt = webhook_dispatch.enqueue(endpoint_id=endpoint.pk, event="order.paid", data=BODY["data"])
    start_worker(apps=("jobqueue.contrib.webhooks",), jobqueue=HERE)
    (row,) = jobs.until(JobStatus.COMPLETED, receipt)
    assert row.attempts == 2
    first, second = receiver.requests
    assert verify(endpoint.secret, second.headers, second.body) == receipt.id == first.headers["webhook-id"]
    assert not webhook_dispatch.job_type.editable


# What a receiver checks


def test_only_what_is_signed_passes():
    secret, body = new_secret(), b'{"type":"a"}'
    good = {"Webhook-Id": "1", "Webhook-Timestamp": "1000", "Webhook-Signature": signature(secret, "1", 1000, body)}
    assert verify(secret, good, body, now=1200) == "1"
    wrong = [
        (new_secret(), good, body),
        (secret, good, body + b" "),
        (secret, good | {"Webhook-Id": "2"}, body),
        (secret, good | {"Webhook-Timestamp": "1001"}, body),
        (secret, good | {"Webhook-Timestamp": "soon"}, body),
        (secret, good | {"Webhook-Timestamp": "9" * 400}, body),
        (secret, good | {"Webhook-Id": "\udcff"}, body),
        (secret, good | {"Webhook-Signature": "v1,\udcff"}, body),
        (secret, good | {"Webhook-Signature": "v1,Ü v2,x"}, body),
        (secret, {}, body),
        ([], good, body),
    ]
    for attack in wrong:
        with pytest.raises(InvalidSignature):
            verify(*attack, now=1200)
    for now in (1301, 699):
        with pytest.raises(InvalidSignature, match="old"):
            verify(secret, good, body, now=now)


def test_the_signature_is_that_of_the_specification():
    """The example that the Standard Webhooks specification gives to those who implement it."""
    secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b'{"test": 2432232314}'
    signed = signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_what_is_no_secret_is_not_quoted():
    for text in ("hunter2hunter2", "whsec_short", "whsec_no base64!", "env:NOT_SET_ANYWHERE"):
        with pytest.raises(InvalidSecret) as raised:
            key_of(text)
        assert text.removeprefix("env:") not in str(raised.value) or text.startswith("env:")


def test_endpoints_need_no_name_and_share_none(endpoint):
    one, other = (Endpoint.objects.create(url=endpoint.url) for _ in range(2))
    assert one.name is None
    assert str(one) != str(other)
    other.name = endpoint.name
    with pytest.raises(ValidationError, match="already exists"):
        other.full_clean()
    with pytest.raises(IntegrityError):
        other.save()


# The admin


@pytest.fixture
def visitor(databases):
    user = User.objects.create_superuser("operator")
    client = Client()
    client.force_login(user)
    yield client
    for model in (LogEntry, Session, User, Endpoint):
        model.objects.all().delete()


def test_a_secret_goes_into_the_admin_and_never_comes_out(visitor):
    add = reverse("admin:jobqueue_webhooks_endpoint_add")
    offered = visitor.get(add).context["adminform"].form.fields["new_secret"].initial
    data = {"name": "shop", "url": "https://shop.example/hook", "new_secret": offered, "enabled": "on"}
    assert visitor.post(add, data).status_code == 302
    endpoint = Endpoint.objects.get()
    assert endpoint.secret == offered
    change = reverse("admin:jobqueue_webhooks_endpoint_change", args=[endpoint.pk])
    assert offered not in visitor.get(change).content.decode()
    visitor.post(change, data | {"new_secret": ""})
    endpoint.refresh_from_db()
    assert (endpoint.secret, endpoint.previous_secret) == (offered, "")
    fresh = new_secret()
    visitor.post(change, data | {"new_secret": fresh})
    endpoint.refresh_from_db()
    assert (endpoint.secret, endpoint.previous_secret) == (fresh, offered)
    for wrong in ({"new_secret": "easy"}, {"url": "ftp://shop.example/"}, {"url": "https://me:pw@shop.example/"}):
        page = visitor.post(change, data | wrong)
        assert page.context["errors"], wrong
    text = visitor.get(change).content.decode() + visitor.get(f"{change[:-7]}history/").content.decode()
    assert fresh not in text
    assert offered not in text


def test_the_admin_takes_and_lists_endpoints_without_a_name(visitor):
    add = reverse("admin:jobqueue_webhooks_endpoint_add")
    for _ in range(2):
        data = {"name": "", "url": "https://shop.example/hook", "new_secret": new_secret(), "enabled": "on"}
        assert visitor.post(add, data).status_code == 302
    listed = visitor.get(reverse("admin:jobqueue_webhooks_endpoint_changelist")).content.decode()
    for one in Endpoint.objects.all():
        assert one.name is None
        assert f">endpoint {one.pk}</a>" in listed


def test_who_may_only_look_sees_no_secret(visitor):
    endpoint = Endpoint.objects.create(name="shop", url="https://shop.example/")
    onlooker = User.objects.create_user("onlooker", is_staff=True)
    onlooker.user_permissions.set(Permission.objects.filter(codename="view_endpoint"))
    visitor.force_login(onlooker)
    page = visitor.get(reverse("admin:jobqueue_webhooks_endpoint_change", args=[endpoint.pk]))
    assert page.status_code == 200
    assert endpoint.secret not in page.content.decode()
    assert "whsec_" not in page.content.decode()


def test_an_endpoint_is_enabled_in_the_admin_with_a_clean_sheet(visitor):
    endpoint = Endpoint.objects.create(
        name="shop", url="https://shop.example/", enabled=False, failures=30, disabled_reason="30 failures"
    )
    listed = reverse("admin:jobqueue_webhooks_endpoint_changelist")
    visitor.post(listed, {"action": "enable", "_selected_action": [endpoint.pk]})
    endpoint.refresh_from_db()
    assert (endpoint.enabled, endpoint.failures, endpoint.disabled_reason) == (True, 0, "")
    visitor.post(listed, {"action": "disable", "_selected_action": [endpoint.pk]})
    endpoint.refresh_from_db()
    assert not endpoint.enabled
    assert LogEntry.objects.count() == 2


def test_who_renames_an_endpoint_does_not_enable_what_was_disabled_meanwhile(visitor):
    endpoint = Endpoint.objects.create(name="shop", url="https://shop.example/")
    change = reverse("admin:jobqueue_webhooks_endpoint_change", args=[endpoint.pk])
    assert 'name="initial-enabled" value="True"' in visitor.get(change).content.decode()
    endpoint.failed(SYSTEM.now(), "The receiver answered 410.", gone=True)
    shown = {"name": "store", "url": endpoint.url, "new_secret": "", "enabled": "on", "initial-enabled": "True"}
    assert visitor.post(change, shown).status_code == 302
    endpoint.refresh_from_db()
    assert (endpoint.name, endpoint.enabled, endpoint.failures) == ("store", False, 1)
    visitor.post(change, shown | {"initial-enabled": "False"})
    endpoint.refresh_from_db()
    assert (endpoint.enabled, endpoint.failures) == (True, 0)


def test_a_form_for_a_new_endpoint_has_no_empty_rows(visitor):
    add = visitor.get(reverse("admin:jobqueue_webhooks_endpoint_add"))
    assert list(add.context["adminform"].form.fields) == ["name", "url", "new_secret", "enabled"]
    assert "Failing since" not in add.content.decode()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://10.20.0.1/hook", "WEBHOOK_NETWORKS"),
        ("https://[::1]/", "WEBHOOK_NETWORKS"),
        ("https://localhost:8443/", "WEBHOOK_NETWORKS"),
        ("http://93.184.216.34/", "WEBHOOK_NETWORKS"),
    ],
)
def test_a_url_that_nothing_is_sent_to_is_not_saved(visitor, configure, url, said):
    add, data = reverse("admin:jobqueue_webhooks_endpoint_add"), {"name": "shop", "new_secret": new_secret()}
    page = visitor.post(add, data | {"url": url})
    assert said in str(page.context["errors"])
    assert not Endpoint.objects.exists()
    configure(WEBHOOK_NETWORKS=["0.0.0.0/0", "::/0"])
    assert visitor.post(add, data | {"url": url}).status_code == 302
    configure()
    endpoint = Endpoint.objects.get()
    change = reverse("admin:jobqueue_webhooks_endpoint_change", args=[endpoint.pk])
    assert visitor.post(change, {"name": "renamed", "url": url}).status_code == 302


def test_a_name_with_a_private_address_is_saved_with_a_warning(visitor, monkeypatch):
    monkeypatch.setattr(reach, "warning", partial(reach.warning, ask=lambda _host, _port: ["10.1.2.3"]))
    data = {"name": "shop", "url": "https://shop.example/hook", "new_secret": new_secret(), "enabled": "on"}
    page = visitor.post(reverse("admin:jobqueue_webhooks_endpoint_add"), data, follow=True)
    assert any("nothing can be delivered to it at present" in str(one) for one in page.context["messages"])
    assert Endpoint.objects.count() == 1


def test_a_name_server_that_does_not_answer_keeps_nobody_waiting(monkeypatch):
    monkeypatch.setattr(reach, "PATIENCE", 0.05)
    answered = Event()
    assert reach.warning("https://shop.example/", lambda _host, _port: answered.wait(30) and []) == ""
    answered.set()

    def unknown(_host, _port):
        raise OSError("unknown")

    assert reach.warning("https://shop.example/", unknown) == ""


def test_a_delivery_and_its_job_and_endpoint_are_linked(visitor):
    endpoint = Endpoint.objects.create(name="shop", url="https://shop.example/")
    job_id = new_id()
    about = {"endpoint": endpoint, "event": "a", "attempt": 1, "outcome": "delivered", "sent_at": SYSTEM.now()}
    entry = Delivery.objects.create(**about, delivery_id=job_id, duration=0.0007102589997884934)
    other = Delivery.objects.create(**about, delivery_id="f" * 64, duration=float("inf"))
    page = visitor.get(reverse("admin:jobqueue_webhooks_delivery_change", args=[entry.pk])).content.decode()
    assert f'href="{reverse("admin:jobqueue_job_change", args=[job_id])}"' in page
    assert "1 ms" in page
    assert "0.00071" not in page
    assert visitor.get(reverse("admin:jobqueue_webhooks_delivery_change", args=[other.pk])).status_code == 200
    listed = visitor.get(reverse("admin:jobqueue_webhooks_delivery_changelist")).content.decode()
    assert "0.00071" not in listed
    shown = visitor.get(reverse("admin:jobqueue_webhooks_endpoint_change", args=[endpoint.pk])).content.decode()
    (address,) = re.findall(r'href="([^"]+endpoint__id__exact=[^"]+)"', shown)
    assert visitor.get(address).context["cl"].result_count == 2


def test_the_log_is_only_looked_at(visitor):
    endpoint = Endpoint.objects.create(name="shop", url="https://shop.example/")
    entry = Delivery.objects.create(
        endpoint=endpoint, delivery_id="1", event="a", attempt=1, outcome="failed", reason="<b>", answer="<script>",
        duration=0.1, sent_at=SYSTEM.now(),
    )  # fmt: skip
    listed = visitor.get(reverse("admin:jobqueue_webhooks_delivery_changelist"), {"q": "1"})
    assert listed.context["cl"].result_count == 1
    page = visitor.get(reverse("admin:jobqueue_webhooks_delivery_change", args=[entry.pk]))
    assert "&lt;script&gt;" in page.content.decode()
    assert visitor.get(reverse("admin:jobqueue_webhooks_delivery_add")).status_code == 403
    visitor.post(reverse("admin:jobqueue_webhooks_endpoint_delete", args=[endpoint.pk]), {"post": "yes"})
    assert not Endpoint.objects.exists()
