"""``enqueue``: one job, by the name of its type."""

from __future__ import annotations

import argparse
import sys
from typing import Any, NoReturn

from pydantic import ValidationError

from jobqueue import foreign_json
from jobqueue.api import enqueue
from jobqueue.cli.arguments import Subcommand, length, number
from jobqueue.cli.console import Console
from jobqueue.cli.exits import OK, failure
from jobqueue.policy.redaction import redact_text
from jobqueue.records import DraftReceipt

_OPTIONS = (
    *("queue", "priority", "max_retries", "delay", "timeout", "tenant", "workspace"),
    *("idempotency_key", "unique_key"),
)
MISTAKES_SHOWN = 5


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("type", metavar="TYPE", help="The job type: the handler's name.")
    parser.add_argument("payload", nargs="?", metavar="JSON", help="The payload; - reads stdin. Default: {}.")
    parser.add_argument("--queue", metavar="NAME", help="The queue. Default: the type's.")
    parser.add_argument("--priority", type=number, metavar="N", help="1 runs first, 10 last. Default: the type's.")
    parser.add_argument(
        "--delay", type=length, metavar="TIME", help="How long until the job is due: 90s, 5m, 2h, 3d, 1w."
    )
    parser.add_argument("--timeout", type=length, metavar="TIME", help="The time limit of an attempt: 90s, 5m, 2h.")
    parser.add_argument("--max-retries", type=number, metavar="N", help="The total number of attempts.")
    parser.add_argument("--tenant", metavar="NAME", help="The tenant.")
    parser.add_argument("--workspace", metavar="NAME", help="The tenant's workspace.")
    key = parser.add_mutually_exclusive_group()
    key.add_argument(
        "--key", metavar="KEY", dest="idempotency_key", help="The idempotency key: at most one job has it."
    )
    key.add_argument("--unique-key", metavar="KEY", help="The unique key: at most one queued or running job has it.")


def _run(options: dict[str, Any], console: Console) -> int:
    given = {name: options[name] for name in _OPTIONS if options[name] is not None}
    payload = _payload(options["payload"])
    try:
        receipt = enqueue(options["type"], payload, **given)
    except ValidationError as error:
        _refuse(options["type"], error)
    _tell(receipt, options["type"], console)
    return OK


def _payload(text: str | None) -> object:
    if text is None:
        return {}
    payload = foreign_json.read(sys.stdin.read() if text == "-" else text)
    if isinstance(payload, foreign_json.Unreadable):
        raise failure(f"The payload cannot be read: {payload.why}. Nothing was enqueued.")
    return payload


def _refuse(job_type: str, error: ValidationError) -> NoReturn:
    """Fail with the mistakes in a payload, without its values: one may be a secret, and stderr may be a log."""
    mistakes = error.errors(include_url=False, include_input=False, include_context=False)
    told = [
        f"{'.'.join(map(str, one['loc'])) or 'payload'}: {redact_text(one['msg'])}" for one in mistakes[:MISTAKES_SHOWN]
    ]
    more = f"; and {len(mistakes) - MISTAKES_SHOWN} more" if len(mistakes) > MISTAKES_SHOWN else ""
    raise failure(f"The payload does not fit {job_type}: {'; '.join(told)}{more}. Nothing was enqueued.") from error


def _tell(receipt: DraftReceipt, job_type: str, console: Console) -> None:
    if console.as_json:
        outcome = {"id": receipt.id, "outcome": receipt.outcome.value, "payload_differs": receipt.payload_differs}
        console.document(outcome)
    elif not receipt.is_shed:
        console.line(receipt.id)
    if receipt.is_shed:
        console.say("Nothing was enqueued: the queue is full, and the job isn't urgent.", console.style.WARNING)
    elif receipt.created:
        console.say(f"Enqueued {job_type}.", console.style.SUCCESS)
    else:
        differs = ", with another payload" if receipt.payload_differs else ""
        console.say(f"Nothing was enqueued: job {receipt.id} already has this key{differs}.", console.style.WARNING)


ENQUEUE = Subcommand(
    "enqueue",
    "enqueue a job by the name of its type",
    """\
The job's id is written to stdout. If a job already has the key, it is the id of that job.

examples:
  manage.py jobqueue enqueue send_welcome '{"user_id": 7}'
  manage.py jobqueue enqueue send_welcome '{"user_id": 7}' --delay 5m --key welcome-7
  generate-report | manage.py jobqueue enqueue import_report -

exit codes:
  0  done, a job already has the key, or a full queue dropped the job
  2  invalid arguments
  3  nothing was enqueued: an unknown type, an invalid payload, a full queue, or no database
""",
    _add,
    _run,
)
