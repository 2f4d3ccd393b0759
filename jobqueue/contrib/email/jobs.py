"""``send_email``: hand one message to the backend that really sends."""

from __future__ import annotations

from smtplib import SMTPAuthenticationError, SMTPRecipientsRefused, SMTPResponseException

from jobqueue.api import job
from jobqueue.contrib.email.backend import EmailBackend
from jobqueue.contrib.email.courier import courier
from jobqueue.contrib.email.message import SendEmail, unpacked
from jobqueue.errors import Discard, Retry
from jobqueue.policy.retry import Exponential


@job(queue="mail", max_retries=8, retry=Exponential(base=5, cap=3600), timeout=60)
def send_email(payload: SendEmail) -> dict[str, object]:
    """Send the message. A repetition has the same Message-ID; what the server refuses for good is a dead letter."""
    backend = courier()
    if isinstance(backend, EmailBackend):
        raise Discard("JOBQUEUE['EMAIL_VIA'] names the backend that enqueues, so nobody would ever send.")
    try:
        count = backend.send_messages([unpacked(payload)])
    except (SMTPResponseException, SMTPRecipientsRefused) as error:
        # In words of our own, for those of the error may name whom the message is for.
        if _stays(error):
            raise Discard(f"The mail server refuses this message for good, with the code {_code(error)}.") from error
        raise Retry(reason=f"The mail server does not take this message now, with the code {_code(error)}.") from error
    message_id = next((value for name, value in payload.headers.items() if name.lower() == "message-id"), None)
    return {"sent": bool(count), "message_id": message_id}


def _stays(error: SMTPResponseException | SMTPRecipientsRefused) -> bool:
    """Whether a refusal will stay so; a password may yet be mended."""
    return not isinstance(error, SMTPAuthenticationError) and _code(error) >= 500


def _code(error: SMTPResponseException | SMTPRecipientsRefused) -> int:
    """Return the code of a refusal; of several the mildest, for a repetition may reach that recipient."""
    if isinstance(error, SMTPRecipientsRefused):
        return min((code for code, _ in error.recipients.values()), default=0)
    return error.smtp_code
