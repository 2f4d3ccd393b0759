"""Resources at AWS, brought to their desired state. Each function returns what it did."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from typing import Any

from django.conf import settings

#: The default region of buckets. AWS refuses requests that name it.
HOME = "us-east-1"


def client(service: str) -> Any:
    """Return a client. boto3 is imported here, because it is optional and large. It finds the credentials itself."""
    boto3 = import_module("boto3")
    return boto3.client(
        service, endpoint_url=settings.CHORES["AWS_ENDPOINT"], region_name=settings.CHORES["AWS_REGION"]
    )


def sync_bucket(name: str, config: dict[str, Any]) -> str:
    """Create, update or delete a bucket: ``versioning`` is true or false, or ``state`` is absent."""
    s3 = client("s3")
    exists = any(bucket["Name"] == name for bucket in s3.list_buckets()["Buckets"])
    if config.get("state") == "absent":
        if exists:
            s3.delete_bucket(Bucket=name)
        return "deleted" if exists else "kept"
    if not exists:
        region = settings.CHORES["AWS_REGION"]
        where = {} if region == HOME else {"CreateBucketConfiguration": {"LocationConstraint": region}}
        s3.create_bucket(Bucket=name, **where)
    wanted = "Enabled" if config.get("versioning") else "Suspended"
    if s3.get_bucket_versioning(Bucket=name).get("Status", "Suspended") != wanted:
        s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": wanted})
        return "updated" if exists else "created"
    return "kept" if exists else "created"


def sync_queue(name: str, config: dict[str, Any]) -> str:
    """Create, update or delete a queue: ``attributes`` as SQS names them, or ``state`` is absent."""
    sqs = client("sqs")
    wanted = {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in config.get("attributes", {}).items()
    }
    urls = [url for url in sqs.list_queues(QueueNamePrefix=name).get("QueueUrls", []) if url.endswith(f"/{name}")]
    if config.get("state") == "absent":
        for url in urls:
            sqs.delete_queue(QueueUrl=url)
        return "deleted" if urls else "kept"
    if not urls:
        sqs.create_queue(QueueName=name, Attributes=wanted)
        return "created"
    found = sqs.get_queue_attributes(QueueUrl=urls[0], AttributeNames=["All"])["Attributes"]
    if wanted.items() <= found.items():
        return "kept"
    sqs.set_queue_attributes(QueueUrl=urls[0], Attributes=wanted)
    return "updated"


SYNCS: dict[str, Callable[[str, dict[str, Any]], str]] = {"s3_bucket": sync_bucket, "sqs_queue": sync_queue}
