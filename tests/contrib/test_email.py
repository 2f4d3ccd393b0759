"""Tests of e-mail through the queue: sent unchanged after the caller's commit."""

from __future__ import annotations

from email.message import EmailMessage as PlainMessage
from email.message import MIMEPart
from email.mime.image import MIMEImage
from smtplib import SMTPAuthenticationError, SMTPDataError, SMTPRecipientsRefused

import django
import pytest
from django.core import mail
from django.core.mail import EmailMessage, EmailMultiAlternatives
from django.db import transaction

from jobqueue import JobStatus, PayloadRefused
from jobqueue.contrib.email import EmailBackend
from jobqueue.contrib.email import checks as email_checks
from jobqueue.contrib.email import jobs as email_jobs
from jobqueue.contrib.email.message import SendEmail, packed, unpacked
from jobqueue.errors import Discard, Retry
from jobqueue.models import Job
from jobqueue.observe.failures import failure_of
from jobqueue.records import Ending
from tests.contrib.post_office import delivering

NEW_PARTS = django.VERSION >= (6, 0)
HAS_MAILERS = django.VERSION >= (6, 1)
DOT = b"\x89PNG\r\n\x1a\n\x00"


def picture():
    """An inline picture, in the form that the Django at hand wants."""
    if not NEW_PARTS:
        part = MIMEImage(DOT, "png")
        part.add_header("Content-ID", "<dot>")
        return part
    part = MIMEPart()
    part.set_content(DOT, "image", "png", cid="<dot>")
    return part


def letter(**options):
    message = EmailMultiAlternatives(
        **{
            "subject": "Grüße",
            "body": "plain ä\nFrom here\n.\n",
            "from_email": "Shop <shop@shop.example>",
            "to": ["Ann <ann@home.example>"],
            "cc": ["cc@home.example"],
            "bcc": ["hidden@home.example"],
            "reply_to": ["reply@shop.example"],
            "headers": {"X-Order": "7"},
        }
        | options
    )
    message.attach_alternative("<b>html ä</b>", "text/html")
    message.attach("notes.txt", "text ü", "text/plain")
    message.attach("dot.png", DOT, "image/png")
    message.attach("ünï.bin", b"\x00\xff")
    inner = EmailMessage("inner", "inner body", "a@shop.example", ["b@shop.example"])
    message.attach("letter.eml", inner.message().as_bytes(), "message/rfc822")
    message.attach(picture())
    return message


def parts(message):
    """What a reader sees: type, name and content of each part."""
    seen = []
    for part in message.walk():
        if not part.is_multipart():
            seen.append((part.get_content_type(), part.get_filename(), part.get_payload(decode=True)))
    return seen


def fixed(message):
    """Leave out what is made anew: boundaries, and what is fixed only on the way."""
    return {
        name: str(value) for name, value in message.items() if name not in ("Content-Type", "Message-ID", "Date")
    } | {"type": message.get_content_type()}


def test_a_message_survives_the_way_through_json():
    original = letter()
    again = unpacked(SendEmail.model_validate_json(packed(original).model_dump_json()))
    assert again.recipients() == original.recipients()
    assert fixed(again.message()) == fixed(original.message())
    assert parts(again.message()) == parts(original.message())
    assert "Message-ID" not in original.extra_headers
    assert "hidden@home.example" not in again.message().as_string()


def test_every_attempt_sends_the_same_id_and_date():
    payload = packed(letter())
    first, second = unpacked(payload).message(), unpacked(payload).message()
    assert first["Message-ID"] == second["Message-ID"]
    assert first["Date"] == second["Date"]
    own = packed(letter(headers={"message-id": "<mine@shop.example>"}))
    assert unpacked(own).message()["Message-ID"] == "<mine@shop.example>"
    assert packed(letter()).headers["Message-ID"] != payload.headers["Message-ID"]


def test_a_header_cannot_be_smuggled_in():
    for attack in (
        {"subject": "hi\nBcc: all@home.example"},
        {"to": ["a@home.example\nBcc: all@home.example"]},
        {"from_email": "a@home.example\r\nX-Evil: 1"},
        {"headers": {"X-Order": "7\r\nX-Evil: 1"}},
    ):
        with pytest.raises(ValueError, match=r"(?i)newline|header|carriage"):
            packed(EmailMessage(**{"subject": "s", "body": "b", "to": ["a@home.example"]} | attack))


def test_what_would_be_lost_is_refused():
    class Own(EmailMessage):
        def message(self, **_):
            return PlainMessage()

    with pytest.raises(PayloadRefused, match="Own"):
        packed(Own("s", "b", to=["a@home.example"]))
    tagged = EmailMessage("s", "b", to=["a@home.example"])
    tagged.tags = ["welcome"]
    with pytest.raises(PayloadRefused, match="tags"):
        packed(tagged)


def test_messages_are_jobs_of_the_callers_transaction(queue, alias):
    def stored():
        return Job.objects.using(alias).filter(type="send_email")

    with pytest.raises(ZeroDivisionError), transaction.atomic(using=alias):
        assert EmailBackend().send_messages([letter(), letter()]) == 2
        raise ZeroDivisionError
    assert stored().count() == 0
    assert EmailBackend().send_messages([letter(), EmailMessage("to nobody"), letter()]) == 2
    assert {job.payload["bcc"][0] for job in stored()} == {"hidden@home.example"}
    assert {job.queue for job in stored()} == {"mail"}


def test_a_message_that_is_too_large_is_refused(configure, alias):
    configure(MAX_PAYLOAD_BYTES=10_000)
    large = EmailMessage("s", "x" * 10_000, to=["a@home.example"])
    with pytest.raises(PayloadRefused, match="MAX_PAYLOAD_BYTES"):
        EmailBackend().send_messages([letter(), large])
    assert not Job.objects.using(alias).exists()
    assert EmailBackend(fail_silently=True).send_messages([letter(), large]) == 1


def test_the_mail_api_of_django_goes_through_the_queue(queue, alias, settings):
    own = "jobqueue.contrib.email.EmailBackend"
    if HAS_MAILERS:
        settings.MAILERS = {"default": {"BACKEND": own}}
    else:
        settings.EMAIL_BACKEND = own
    assert mail.send_mail("s", "b", "a@shop.example", ["b@home.example"]) == 1
    assert mail.EmailMessage("s", "b", "a@shop.example", ["b@home.example"]).send() == 1
    assert Job.objects.using(alias).count() == 2


class Refusing:
    """A backend whose server refuses."""

    def __init__(self, error):
        self.error = error

    def send_messages(self, messages):
        raise self.error


@pytest.mark.parametrize(
    ("error", "verdict", "code"),
    [
        (SMTPRecipientsRefused({"ann@home.example": (550, b"no"), "b": (554, b"no")}), Discard, 550),
        (SMTPRecipientsRefused({"ann@home.example": (550, b"no"), "b": (451, b"later")}), Retry, 451),
        (SMTPDataError(554, b"<ann@home.example>: spam"), Discard, 554),
        (SMTPDataError(451, b"<ann@home.example>: later"), Retry, 451),
        (SMTPAuthenticationError(535, b"password"), Retry, 535),
    ],
)
def test_only_what_stays_refused_is_given_up_and_no_error_says_for_whom(monkeypatch, error, verdict, code):
    monkeypatch.setattr(email_jobs, "courier", lambda: Refusing(error))
    with pytest.raises(verdict, match=f"the code {code}") as raised:
        email_jobs.send_email(packed(letter()))
    failure = failure_of(raised.value, Ending.FAILED, job_type="send_email")
    assert "ann@home.example" not in failure.message + failure.traceback


def test_nobody_sends_to_himself(settings):
    settings.JOBQUEUE = {"EMAIL_VIA": "jobqueue.contrib.email.EmailBackend"}
    assert [one.id for one in email_checks.check_courier()] == ["jobqueue_email.E001"]
    settings.JOBQUEUE = {"EMAIL_VIA": "no.such.Backend"}
    assert [one.id for one in email_checks.check_courier()] == ["jobqueue_email.E003"]
    settings.JOBQUEUE = {}
    assert email_checks.check_courier() == []
    if HAS_MAILERS:
        settings.MAILERS = {"default": {"BACKEND": "jobqueue.contrib.email.EmailBackend"}}
        assert [one.id for one in email_checks.check_courier()] == ["jobqueue_email.E002"]
        settings.JOBQUEUE = {"EMAIL_VIA": "default"}
        assert [one.id for one in email_checks.check_courier()] == ["jobqueue_email.E001"]


def test_a_worker_sends(queue, start_worker, jobs):
    with delivering() as office:
        for to in ("ann@home.example", "bob@home.example"):
            EmailBackend().send_messages([letter(to=[to], cc=[], bcc=["hidden@home.example"])])
        rows = Job.objects.using(jobs.alias).filter(type="send_email")
        job_ids = [row.pk for row in rows]
        start_worker(
            "--concurrency", "1", settings="tests.contrib.worker_settings", apps=("jobqueue.contrib.email",),
            environment={"JOBQUEUE_TEST_SMTP": str(office.port)},
        )  # fmt: skip
        done = jobs.until(JobStatus.COMPLETED, *job_ids)
        assert len(office.letters) == 2
        for sender, recipients, message in office.letters:
            assert sender == "shop@shop.example"
            assert recipients[-1] == "hidden@home.example"
            assert "hidden" not in message.as_string()
        sent = {message["Message-ID"] for _, _, message in office.letters}
        assert {row.result["message_id"] for row in done} == sent


def test_a_worker_gives_up_what_the_server_refuses_for_good(queue, start_worker, jobs):
    with delivering() as office:
        office.refusals = ["550 no such user"]
        EmailBackend().send_messages([EmailMessage("s", "b", "a@shop.example", ["gone@home.example"])])
        (row,) = Job.objects.using(jobs.alias).filter(type="send_email")
        start_worker(
            settings="tests.contrib.worker_settings", apps=("jobqueue.contrib.email",),
            environment={"JOBQUEUE_TEST_SMTP": str(office.port)},
        )  # fmt: skip
        (dead,) = jobs.until(JobStatus.DEAD_LETTER, row.pk)
        assert dead.attempts == 1
        assert "550" in dead.error
