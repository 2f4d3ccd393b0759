"""The visited pages, by URL name and query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.contrib.admin.utils import quote
from django.urls import NoReverseMatch, reverse

from benchmarks.millions import OWNER
from jobqueue.models import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A page: its URL name, its query, and the corresponding query of the default admin, if there is one."""

    name: str
    view: str = "job_changelist"
    args: tuple[str, ...] = ()
    query: Mapping[str, str] = field(default_factory=dict)
    plain: Mapping[str, str] | None = None

    def address(self, site: str = "admin") -> str | None:
        """Return its URL, or ``None`` if there is no such page."""
        try:
            return reverse(f"{site}:jobqueue_{self.view}", args=self.args, current_app=site)
        except NoReverseMatch:
            return None


def _list(name: str, plain: Mapping[str, str] | None = None, **query: str) -> Visit:
    return Visit(name=f"list: {name}", query=query, plain=plain)


def visits() -> Iterator[Visit]:
    """Return the pages, for existing jobs."""
    done = _one("completed")
    yield _list("everything", plain={})
    yield _list("everything, the last page", p="100", plain={"p": "100"})
    for status in ("queued", "in_progress", "completed", "failed", "dead_letter"):
        yield _list(f"status {status}", status=status, plain={"status__exact": status})
    yield _list("type", type="resize_image", plain={"type": "resize_image"})
    yield _list("queue", queue="images", plain={"queue": "images"})
    for window in ("15m", "1h", "1d", "7d"):
        yield _list(f"created in the last {window}", created=window)
    yield _list(
        "status and queue", status="queued", queue="images", plain={"status__exact": "queued", "queue": "images"}
    )
    yield _list("status, queue and type", status="dead_letter", queue="images", type="nap")
    yield from _searches(done)
    yield Visit(name="a completed job", view="job_change", args=(quote(done.pk),), plain={})
    for status in ("queued", "in_progress", "dead_letter"):
        yield Visit(name=f"a job: {status}", view="job_change", args=(quote(_one(status).pk),))
    yield from _others()


def _searches(done: Job) -> Iterator[Visit]:
    searches = {
        "a whole id": done.pk,
        "the beginning of an id": done.pk[:10],
        "a key": "order-1000",
        "a word that is a type": "kind_7",
        "a word that is a tenant": "tenant_77",
        "a word that is nothing": "nonsense",
        "a tenant": "tenant:tenant_77",
        "an error": "error:timed",
        "an error that is none": "error:nonsense",
        "an error among dead letters": 'status:dead_letter error:"host-77."',
        "an error among all dead letters": "status:dead_letter error:timed",
        "a class among all dead letters": "status:dead_letter class:ConnectionError",
        "an error that no dead letter has": "status:dead_letter error:nonsense",
        "a tenant among dead letters": "status:dead_letter tenant:tenant_7",
        "a tenant that no dead letter has": "status:dead_letter tenant:nobody",
        "several types among dead letters": "status:dead_letter type:kind_7,nap",
        "all but one type among dead letters": "status:dead_letter -type:nap",
        "what died lately": "died:1h",
        "what died long ago of a tenant": "died:..5d tenant:tenant_57",
        "a priority among dead letters": "status:dead_letter priority:>7 attempts:3",
        "cancelled jobs of a queue": "status:cancelled queue:images",
        "a payload": f"payload.image_id:{done.payload['image_id']}",
        "a payload that many have": 'payload.user.name:"Ada Lovelace"',
        "a payload by place": "payload.tags.1:large",
        "a payload among dead letters": "status:dead_letter payload.user.id:7",
        "several": "type:resize_image status:dead_letter error:timed payload.width:800 tenant:tenant_7 after:5d",
        "failed and dead": "status:failed,dead_letter",
        "a kind of failure": "status:dead_letter fingerprint:kind-7",
        "an error of a kind of failure": "status:dead_letter fingerprint:kind-7 error:host",
        "a queue and a type that wait": "status:queued queue:mail type:nap",
        "before a moment": "before:3d status:completed type:kind_7",
        "since a moment": "after:2h tenant:tenant_7",
        "children": f"parent:{done.pk}",
        "a worker": f"worker:{OWNER}",
        "what cannot be read": "statsu:failed",
    }
    as_default = {"a whole id", "a word that is a type", "a word that is nothing"}
    for name, text in searches.items():
        yield _list(f"search for {name}", q=text, plain={"q": text} if name in as_default else None)


def _others() -> Iterator[Visit]:
    yield Visit(name="dead letters by error", view="deadletter_changelist")
    yield Visit(name="dead letters of one error", view="deadletter_by_error", query={"fingerprint": "kind-7"})
    yield Visit(name="dead letters, all", view="deadletter_all")
    yield Visit(name="queues", view="queue_changelist")
    yield Visit(name="workers", view="worker_changelist")
    yield Visit(name="a worker", view="worker_change", args=(quote(OWNER),))
    yield from _dashboards()


def _dashboards() -> Iterator[Visit]:
    for window in ("hour", "day", "week"):
        name, asked = f"dashboard, {window}", {"window": window}
        yield Visit(name=name, view="dashboard_changelist", query=asked)
        yield Visit(name=f"{name}, live", view="dashboard_live", query=asked)
        for column, value in (("queue", "images"), ("type", "resize_image")):
            yield Visit(name=f"{name}, one {column}", view="dashboard_changelist", query={**asked, column: value})
        both = {"queue": "images", "type": "resize_image"}
        yield Visit(name=f"{name}, one type in one queue", view="dashboard_changelist", query={**asked, **both})


def _one(status: str) -> Any:
    """Return a job of a status, neither the newest nor the oldest."""
    rows = Job.objects.filter(status=status).order_by("pk")
    middle = Job.objects.order_by("-pk").values_list("pk", flat=True)[3_000]
    return rows.filter(pk__lt=middle).last() or rows.first()
