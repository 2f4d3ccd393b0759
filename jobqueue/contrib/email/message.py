"""The JSON form of e-mail messages, which includes the Message-ID and the date."""

from __future__ import annotations

import base64
from email import message_from_bytes, policy
from email.message import Message
from email.mime.base import MIMEBase
from email.utils import format_datetime
from typing import Any, Literal

import django
from django.conf import settings
from django.core.mail import (
    DEFAULT_ATTACHMENT_MIME_TYPE,
    DNS_NAME,
    EmailAttachment,
    EmailMessage,
    EmailMultiAlternatives,
    make_msgid,
)
from django.utils import timezone
from pydantic import BaseModel, ConfigDict

from jobqueue.clock import SYSTEM
from jobqueue.errors import PayloadRefused

#: The attributes of a message. Others, set by an application, would be lost.
_KNOWN = frozenset({
    "subject", "body", "from_email", "to", "cc", "bcc", "reply_to", "attachments", "extra_headers", "connection",
    "_connection", "alternatives", "content_subtype", "encoding",
})  # fmt: skip
_PARTS_ARE_NEW = django.VERSION >= (6, 0)


class Alternative(BaseModel):
    """An alternative of a message's text, such as HTML."""

    content: str
    mimetype: str


class Attachment(BaseModel):
    """A file. Text is stored as it is, ``bytes`` and a MIME ``part`` as base64."""

    kind: Literal["text", "bytes", "part"]
    content: str
    filename: str | None = None
    mimetype: str = DEFAULT_ATTACHMENT_MIME_TYPE


class SendEmail(BaseModel):
    """A message to send."""

    model_config = ConfigDict(extra="forbid")

    subject: str
    body: str
    from_email: str
    to: list[str] = []
    cc: list[str] = []
    bcc: list[str] = []
    reply_to: list[str] = []
    headers: dict[str, str] = {}
    subtype: str = "plain"
    encoding: str | None = None
    alternatives: list[Alternative] = []
    attachments: list[Attachment] = []


class _Part(MIMEBase):
    """A MIME part for Django 5.2, made by a parser, which passes no type."""

    def __init__(self, policy: Any = policy.compat32) -> None:
        Message.__init__(self, policy=policy)


def packed(message: EmailMessage) -> SendEmail:
    """Return a message as JSON. Raise PayloadRefused for values that JSON can't hold, and ValueError for a bad header.

    The message itself is unchanged.
    """
    _check(message)
    made = SendEmail(
        subject=str(message.subject),
        body=str(message.body),
        from_email=str(message.from_email),
        to=[*map(str, message.to)],
        cc=[*map(str, message.cc)],
        bcc=[*map(str, message.bcc)],
        reply_to=[*map(str, message.reply_to)],
        headers=_headers(message),
        subtype=message.content_subtype,
        encoding=message.encoding,
        alternatives=[
            Alternative(content=_text(one[0]), mimetype=one[1]) for one in getattr(message, "alternatives", ())
        ],
        attachments=[*map(_attachment, message.attachments)],
    )
    unpacked(made).message()  # raises for a header with a line break, while the sender can see it
    return made


def unpacked(payload: SendEmail) -> EmailMultiAlternatives:
    """Return the message again."""
    message = EmailMultiAlternatives(
        subject=payload.subject,
        body=payload.body,
        from_email=payload.from_email,
        to=payload.to,
        cc=payload.cc,
        bcc=payload.bcc,
        reply_to=payload.reply_to,
        headers=dict(payload.headers),
    )
    message.content_subtype = payload.subtype
    message.encoding = payload.encoding
    for one in payload.alternatives:
        message.attach_alternative(one.content, one.mimetype)
    message.attachments = [*map(_restored, payload.attachments)]
    return message


def _check(message: EmailMessage) -> None:
    kind = type(message)
    if kind.message is not EmailMessage.message:
        raise PayloadRefused(
            f"A message of {kind.__qualname__} cannot be queued, because it overrides message(). Send it directly."
        )
    strange = sorted(vars(message).keys() - _KNOWN)
    if strange:
        raise PayloadRefused(f"The message has the attribute {strange[0]!r}, which would be lost in the queue.")
    if not isinstance(message.encoding, str | None):
        raise PayloadRefused("The message's encoding is an object. Use a name such as 'utf-8'.")


def _headers(message: EmailMessage) -> dict[str, str]:
    """Return the headers with a fixed Message-ID and date, so that a repeated message is recognised as the same."""
    headers = {str(name): str(value) for name, value in message.extra_headers.items()}
    given = {name.lower() for name in headers}
    if "message-id" not in given:
        headers["Message-ID"] = make_msgid(domain=str(DNS_NAME))
    if "date" not in given:
        now = SYSTEM.now()
        headers["Date"] = format_datetime(timezone.localtime(now) if settings.EMAIL_USE_LOCALTIME else now)
    return headers


def _text(content: object) -> str:
    return content.decode() if isinstance(content, bytes) else str(content)


def _attachment(given: Any) -> Attachment:
    if isinstance(given, Message):
        return Attachment(kind="part", content=_base64(given.as_bytes()))
    filename, content, *rest = given
    name, mimetype = str(filename) if filename else None, str(rest[0] if rest else "") or DEFAULT_ATTACHMENT_MIME_TYPE
    if isinstance(content, EmailMessage):
        content = content.message()
    if isinstance(content, Message):
        content = content.as_bytes()
    if isinstance(content, str):
        return Attachment(kind="text", content=content, filename=name, mimetype=mimetype)
    return Attachment(kind="bytes", content=_base64(bytes(content)), filename=name, mimetype=mimetype)


def _restored(one: Attachment) -> Any:
    if one.kind == "text":
        return EmailAttachment(one.filename, one.content, one.mimetype)
    data = base64.b64decode(one.content)
    if one.kind == "bytes":
        return EmailAttachment(one.filename, data, one.mimetype)
    return message_from_bytes(data, policy=policy.default) if _PARTS_ARE_NEW else message_from_bytes(data, _Part)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
