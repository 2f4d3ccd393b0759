"""The names of OpenTelemetry's conventions for messaging, version 1.44, and the attributes of this package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Attributes = Mapping[str, str | int]
#: The operations, which are also their types.
Operation = Literal["create", "send", "process", "settle"]

SYSTEM = "messaging.system"
QUEUE = "messaging.destination.name"
OPERATION_NAME = "messaging.operation.name"
OPERATION_TYPE = "messaging.operation.type"
MESSAGE_ID = "messaging.message.id"
BODY_SIZE = "messaging.message.body.size"
BATCH_SIZE = "messaging.batch.message_count"
CLIENT = "messaging.client.id"
ERROR_TYPE = "error.type"

SENT = "messaging.client.sent.messages"
CONSUMED = "messaging.client.consumed.messages"
OPERATION_DURATION = "messaging.client.operation.duration"
PROCESS_DURATION = "messaging.process.duration"

JOB_TYPE = "jobqueue.job.type"
ATTEMPT = "jobqueue.attempt"
MOST_ATTEMPTS = "jobqueue.max_retries"
OUTCOME = "jobqueue.outcome"
#: Whether a job was stored, or another job had its key.
ADMISSION = "jobqueue.admission"


def of_operation(operation: Operation, queue: str | None) -> dict[str, str | int]:
    """Return the attributes of an operation, without those that tell jobs apart."""
    found: dict[str, str | int] = {SYSTEM: "jobqueue", OPERATION_NAME: operation, OPERATION_TYPE: operation}
    return found if queue is None else {**found, QUEUE: queue}
