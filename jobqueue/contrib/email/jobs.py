"""The job ``send_email``, which passes a message to the sending backend."""

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
    """Send a message. Each attempt uses the same Message-ID. A permanent refusal by the server makes a dead letter."""
    backend = courier()
    if isinstance(backend, EmailBackend):
        raise Discard("JOBQUEUE['EMAIL_VIA'] names the backend that enqueues, so the message would never be sent.")
    try:
        count = backend.send_messages([unpacked(payload)])
    except (SMTPResponseException, SMTPRecipientsRefused) as error:
        # Our own text, because the error's may name the recipients.
        if _stays(error):
            raise Discard(f"The mail server refuses this message permanently, with the code {_code(error)}.") from error
        raise Retry(
            reason=f"The mail server refuses this message temporarily, with the code {_code(error)}."
        ) from error
    message_id = next((value for name, value in payload.headers.items() if name.lower() == "message-id"), None)
    return {"sent": bool(count), "message_id": message_id}


def _stays(error: SMTPResponseException | SMTPRecipientsRefused) -> bool:
    """Return whether a refusal is permanent. A refused password isn't, because it may be corrected."""
    return not isinstance(error, SMTPAuthenticationError) and _code(error) >= 500


def _code(error: SMTPResponseException | SMTPRecipientsRefused) -> int:
    """Return the code of a refusal. Of several codes, return the least, because a retry may reach that recipient."""
    if isinstance(error, SMTPRecipientsRefused):
        return min((code for code, _ in error.recipients.values()), default=0)
    return error.smtp_code
