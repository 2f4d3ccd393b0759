"""Everything that reads or changes jobs, called with one job after another: API, actions, commands, admin.

An answer, or a refusal in words, is well; an exception, an answer of 500 or a call that hangs is not.
"""

from __future__ import annotations

import io
import re
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from html import unescape
from typing import Any, Literal

from django.contrib.admin.utils import quote
from django.core.management import CommandError, call_command
from django.core.signals import got_request_exception
from django.test import Client
from django.urls import NoReverseMatch, reverse

import jobqueue
from jobqueue import backends, conf, control
from jobqueue.alerts import evaluate
from jobqueue.clock import SYSTEM
from jobqueue.errors import JobQueueError
from jobqueue.ids import new_id
from jobqueue.models import Alert, Order, Schedule
from jobqueue.observe.health import report
from jobqueue.records import Amendment, Caps, Draft, Filter, Scope
from jobqueue.relay.outbox import waiting_in
from jobqueue.schedules.sync import sync
from jobqueue.states import JobStatus
from tests.attacks.drains import LIES
from tests.attacks.hostile import Vandal
from tests.attacks.isolated import isolated, last_line

#: What one call gets; a page of a job of 5 MB takes its time on a busy machine.
CALL = 20
#: Every word that the search box knows.
SEARCHES = (
    "abc", "type:swallow", "status:dead_letter", "queue:default", "error:disk", "payload.x:1", 'payload.x.y:"2"',
    "payload.0:abc", "tenant:acme", "after:2h", "before:2027-01-31", "id:01*", "key:k", "parent:01", "worker:nobody",
    "fingerprint:none", "fingerprint:3f2a",
)  # fmt: skip
LISTS = (
    *("job_changelist", "deadletter_all", "deadletter_changelist"),
    *("queue_changelist", "worker_changelist", "order_changelist", "schedule_changelist"),
    "alert_changelist",
)
DASHBOARDS = ("dashboard_changelist", "dashboard_live")
#: What a list is read as, besides its page.
READ_AS = ("job_export_csv", "job_export_json", "job_rows", "deadletter_export_json", "deadletter_rows")
VERBS = ("retry", "run_now", "reschedule", "prioritise", "move", "cancel", "purge")
_HREF = re.compile(r'href="(/admin/jobqueue/[^"#]*)"')
_LINKS_FOLLOWED, _SCHEDULES_ASKED = 12, 20

Call = tuple[str, Callable[[], Any]]


class Hangs(BaseException):
    """A call did not come back."""


class Wrong(Exception):
    """An answer that nobody should get."""


def troubles(client: Client, jobs: Sequence[dict[str, Any]], how: How = "reading", seconds: float = 120) -> list[str]:
    """Call everything in a fork; say what went wrong, a line for each kind of failure of a call.

    The jobs are dictionaries of what is known of them: id, key and unique key.
    """

    def work(tell: Callable[[Any], None]) -> None:
        for name, call in CALLS[how](client, jobs):
            tell(["called", name])
            if said := _tried(call):
                tell(["failed", name, said])

    result = isolated(work, seconds)
    failed = [f"{name}: {said}" for what, name, *rest in result.told if what == "failed" for said in rest]
    if result.trouble:
        failed.append(f"{result.told[-1][1] if result.told else 'the first call'}: {result.trouble}")
    return list(dict.fromkeys(failed))


def found_in(vandal: Vandal, most: int = 1_000) -> list[dict[str, Any]]:
    """List the jobs that there are, by what is known of them; those that were forged come first."""
    rows = vandal.run("SELECT id, idempotency_key, unique_key FROM job_queue ORDER BY created_at")[:most]
    return [dict(zip(("id", "idempotency_key", "unique_key"), map(_text, row), strict=True)) for row in rows]


def _text(value: Any) -> Any:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _tried(call: Callable[[], Any]) -> str:
    def ring(*_: object) -> None:
        raise Hangs(f"no answer after {CALL} s")

    signal.signal(signal.SIGALRM, ring)
    signal.alarm(CALL)
    try:
        call()
    except (Exception, Hangs):
        signal.alarm(0)
        return last_line(traceback.format_exc())
    finally:
        signal.alarm(0)
    return ""


def _reading(client: Client, jobs: Sequence[dict[str, Any]]) -> Iterator[Call]:
    yield from _api(jobs)
    yield from _commands(jobs)
    yield from _pages(client, jobs)


def _brief(client: Client, jobs: Sequence[dict[str, Any]]) -> Iterator[Call]:
    """Of each job ask only what shows all that it has."""
    yield from _showing(client, jobs)
    for words in SEARCHES:
        yield _page(client, "jobqueue_job_changelist", data={"q": words})


def _showing(client: Client, jobs: Sequence[dict[str, Any]]) -> Iterator[Call]:
    """Ask for no search, besides."""
    yield from (*_api(()), *_commands(()))
    for job in jobs:
        yield "api get", _quietly(lambda job=job: jobqueue.get(job["id"]))
        if _is_a_word(job["id"]):
            yield _named(_command("show", job["id"], "--json"), job["id"])
        for page in ("change", "live", "edit"):
            yield _page(client, f"jobqueue_job_{page}", quote(job["id"]))
    for name in (*LISTS, *READ_AS, *DASHBOARDS):
        yield _page(client, f"jobqueue_{name}")


def _asking(client: Client, _jobs: Sequence[dict[str, Any]]) -> Iterator[Call]:
    """Ask for what belongs to a user: questions, orders and saved searches."""
    for name in LISTS:
        yield _page(client, f"jobqueue_{name}")
    yield from _orders(client)


def _schedules(client: Client) -> Iterator[Call]:
    with backends.current().any_text():
        found = list(Schedule.objects.using(conf.get("DATABASE")).values_list("pk", flat=True))
    for schedule_id in found[:: max(1, len(found) // _SCHEDULES_ASKED)]:
        for page in ("change", "change_live", "edit", "reset"):
            yield _page(client, f"jobqueue_schedule_{page}", quote(schedule_id))
        for verb in ("reset", "pause", "resume", "run"):
            yield _page(client, f"jobqueue_schedule_{verb}", quote(schedule_id), post=True)


def _alerts(client: Client) -> Iterator[Call]:
    with backends.current().any_text():
        found = list(Alert.objects.using(conf.get("DATABASE")).values_list("pk", flat=True))
    for alert_id in found[:: max(1, len(found) // _SCHEDULES_ASKED)]:
        for page in ("change", "silence", "unsilence"):
            yield _page(client, f"jobqueue_alert_{page}", quote(alert_id))


def _orders(client: Client) -> Iterator[Call]:
    with backends.current().any_text():
        orders = list(Order.objects.using(conf.get("DATABASE")).values_list("pk", flat=True))
    for order_id in orders:
        yield _page(client, "jobqueue_order_change", quote(order_id))
        yield _page(client, "jobqueue_job_question", quote(order_id))
        yield _page(client, "jobqueue_job_question", quote(order_id), post=True)
        yield _page(client, "jobqueue_order_stop", quote(order_id), post=True)


def _writing(client: Client, jobs: Sequence[dict[str, Any]]) -> Iterator[Call]:
    yield from _forms(client, jobs)
    yield from _writing_api(jobs)
    yield from _commands(())
    yield from _writing_commands(jobs)


How = Literal["reading", "briefly", "showing", "asking", "writing"]
CALLS: dict[How, Callable[[Client, Sequence[dict[str, Any]]], Iterator[Call]]] = {
    "reading": _reading,
    "briefly": _brief,
    "showing": _showing,
    "asking": _asking,
    "writing": _writing,
}


# The API


def _quietly(call: Callable[[], Any]) -> Callable[[], Any]:
    """Take what the product says in words of its own for an answer."""

    def quiet() -> None:
        try:
            call()
        except JobQueueError as error:
            if not str(error):
                raise Wrong("an error without words") from error

    return quiet


def _api(jobs: Sequence[dict[str, Any]]) -> Iterator[Call]:
    backend, now = backends.current(), SYSTEM.now()
    for name, call in {
        "find": lambda: backend.jobs.find(Filter(), 1_000),
        "find newest": lambda: backend.jobs.find(Filter(), 1_000, newest_first=True),
        "find_ids": lambda: backend.jobs.find_ids(Filter(), 1_000),
        "count": lambda: backend.jobs.count(Filter()),
        "stats": backend.jobs.stats,
        "dead_letters": backend.jobs.dead_letters,
        "error_groups": lambda: backend.errors.groups(50, Caps(1_000, 10_000, 100, 1_000)),
        "error_group": lambda: backend.errors.group("", Caps(1_000, 10_000, 100, 1_000)),
        "depths": backend.metrics.depths,
        "pauses": backend.operator.pauses,
        "workers": backend.workers.all,
        "duties": backend.duties.all,
        "gauges": backend.gauges.all,
        "limits": backend.limits.stored,
        "alerts": lambda: (backend.alerts.open(), backend.alerts.past(), backend.alerts.silences()),
        "evaluate": lambda: evaluate(backend),
        "health": lambda: report(backend, waiting_in).document(),
        "sync": lambda: sync(backend),
        "held_by": lambda: backend.held_by("elsewhere"),
        "tallied": lambda: backend.metrics.stretches(60, now.replace(hour=0)),
        "parts": lambda: backend.metrics.totals(Scope.TYPE, 60, now.replace(hour=0)),
    }.items():
        yield f"api {name}", _quietly(call)
    for job in jobs:
        yield "api get", _quietly(lambda job=job: jobqueue.get(job["id"]))
        yield "api ahead_of", _quietly(lambda job=job: backend.jobs.ahead_of(jobqueue.get(job["id"]), 100))
        for key in ("idempotency_key", "unique_key"):
            if isinstance(job.get(key), str):
                yield f"api enqueue with its {key}", _quietly(lambda job=job, key=key: _meet(job, key))
        one = Filter(ids=frozenset({job["id"]}), statuses=frozenset(JobStatus), error="x", payload=(("x.0", 1),))
        yield "api find by everything", _quietly(lambda one=one: backend.jobs.find(one, 10))


def _meet(job: dict[str, Any], key: str) -> None:
    """Enqueue with a key that the job has, alone and in a bulk; the job there stays."""
    drafts = [
        Draft(id=new_id(), type="swallow", payload=payload, **{key: job[key]}) for payload in ('{"x": 2}', '{"x": 3}')
    ]
    backends.current().enqueue(drafts[:1])
    backends.current().enqueue(drafts)


def _writing_api(jobs: Sequence[dict[str, Any]]) -> Iterator[Call]:
    for job in jobs:
        ids = [job["id"]]
        for name, call in {
            "amend": lambda ids=ids: control.amend(ids, Amendment(priority=2, queue="moved", now=True)),
            "cancel": lambda ids=ids: control.cancel(ids),
            "retry": lambda ids=ids: control.retry(ids),
            "cancel again": lambda ids=ids: control.cancel(ids),
            "retry_edited": lambda ids=ids: backends.current().operator.retry_edited(ids[0], '{"x": 5}', 1),
            "cancel then": lambda ids=ids: control.cancel(ids),
        }.items():
            yield f"api {name}", _quietly(call)
    every = Filter()
    for name, call in {
        "amend_matching": lambda: control.amend_matching(every, Amendment(priority=3)),
        "cancel_matching": lambda: control.cancel_matching(every),
        "retry_matching": lambda: control.retry_matching(every),
        "purge": lambda: control.purge([job["id"] for job in jobs[:1]]),
    }.items():
        yield f"api {name}", _quietly(call)


# The commands


def _command(*words: str) -> Call:
    def call() -> None:
        out, err = io.StringIO(), io.StringIO()
        try:
            call_command("jobqueue", *words, stdout=out, stderr=err)
        except CommandError as error:
            err.write(str(error))
            if str(error).startswith("No job has the id") or "There is no job" in str(error):
                return
            if any(lie in str(error) for lie in LIES) or "nested too deeply" in str(error):
                raise Wrong(f"exit {error.returncode}: {error}") from error
        except SystemExit as end:
            if end.code not in (0, 1, 2):
                raise Wrong(f"exit {end.code}: {err.getvalue()}") from end

    return f"jobqueue {' '.join(word if len(word) < 40 else '…' for word in words)}", call


def _both(*words: str) -> Iterator[Call]:
    yield _command(*words)
    yield _command(*words, "--json")


def _commands(jobs: Sequence[dict[str, Any]]) -> Iterator[Call]:
    yield from _both("status")
    yield from _both("list", "--limit", "1000")
    yield from _both("list", "--status", "dead_letter", "--error", "disk", "--older-than", "1h")
    for words in ("workers", "schedules", "limits", "health", "alerts"):
        yield from _both(words)
    yield from _both("reconcile")
    for job in jobs:
        if _is_a_word(job["id"]):
            for words in (("show",), ("show", "--reveal"), ("why",)):
                yield from (_named(call, job["id"]) for call in _both(*words, job["id"]))


def _writing_commands(jobs: Sequence[dict[str, Any]]) -> Iterator[Call]:
    ids = [job["id"] for job in jobs if _is_a_word(job["id"])]
    for verb in ("cancel", "retry") if ids else ():
        yield _named(_command(verb, *ids), *ids)
        yield _named(_command(verb, *ids, "--json"), *ids)
    yield from _both("retry-all", "--yes")
    yield from _both("cancel", "--all", "--yes")
    yield from _both("pause", "--queue", "default")
    yield from _both("resume", "--queue", "default")
    yield from _both("purge", "--status", "completed", "--yes")
    yield from _both("purge", "--all", "--yes")


def _named(call: Call, *ids: str) -> Call:
    name = call[0]
    for one in ids:
        name = name.replace(one, "ID")
    return name, call[1]


def _is_a_word(job_id: str) -> bool:
    return bool(job_id) and not job_id.startswith("-") and "\0" not in job_id


# The admin


def _page(client: Client, name: str, *args: str, data: Any = None, post: bool = False) -> Call:
    def call() -> Any:
        try:
            address = reverse(f"admin:{name}", args=args)
        except NoReverseMatch:
            return None  # an empty id has no page
        return _ask(client, address, data, post=post)

    said = f" {data}" if data and len(str(data)) < 80 else ""
    return f"page {'POST ' if post else ''}{name}{said}", call


def _ask(client: Client, address: str, data: Any = None, *, post: bool = False) -> Any:
    caught: list[str] = []

    def catch(**_: Any) -> None:
        caught.append(last_line(traceback.format_exc()))

    got_request_exception.connect(catch)
    client.raise_request_exception = False
    try:
        answer = client.post(address, data or {}) if post else client.get(address, data or {})
        if answer.streaming:
            answer.getvalue()
    finally:
        got_request_exception.disconnect(catch)
    if answer.status_code >= 500 or caught:
        raise Wrong(f"{answer.status_code}: {caught}")
    return answer


def _pages(client: Client, jobs: Sequence[dict[str, Any]]) -> Iterator[Call]:
    for name in (*LISTS, *READ_AS, *DASHBOARDS, "deadletter_by_error"):
        yield _page(client, f"jobqueue_{name}")
    yield from _schedules(client)
    yield from _alerts(client)
    for status in JobStatus:
        yield _page(client, "jobqueue_job_changelist", data={"status": status.value})
    for words in SEARCHES:
        yield _page(client, "jobqueue_job_changelist", data={"q": words})
    seen: set[str] = set()
    for name in LISTS:
        yield f"links of {name}", lambda name=name: _follow(client, reverse(f"admin:jobqueue_{name}"), seen)
    for job in jobs:
        yield from _pages_of(client, quote(job["id"]))
    yield from _orders(client)


def _pages_of(client: Client, job_id: str) -> Iterator[Call]:
    for page in ("change", "live", "edit", "again", "history", *VERBS):
        yield _page(client, f"jobqueue_job_{page}", job_id)
    yield _page(client, "jobqueue_deadletter_change", job_id)


def _follow(client: Client, address: str, seen: set[str]) -> None:
    """Open what a list leads to, and no other has led to."""
    answer = _ask(client, address)
    found = dict.fromkeys(unescape(one) for one in _HREF.findall(answer.content.decode(errors="replace")))
    links = [link for link in found if link not in seen][:_LINKS_FOLLOWED]
    seen.update(links)
    for link in links:
        try:
            _ask(client, link)
        except Wrong as error:
            raise Wrong(f"{link[:100]}: {error}") from error


def _forms(client: Client, jobs: Sequence[dict[str, Any]]) -> Iterator[Call]:
    ids = [job["id"] for job in jobs]
    for verb in VERBS:
        data = {"action": verb, "_selected_action": ids, "index": 0}
        yield _page(client, "jobqueue_job_changelist", data=data, post=True)
        every = {**data, "select_across": "1"}
        yield _page(client, "jobqueue_job_changelist", data=every, post=True)
    for job in jobs:
        for verb in ("cancel", "retry", "cancel"):
            yield _page(client, f"jobqueue_job_{verb}", quote(job["id"]), post=True)
        edited = {"payload": '{"x": 7}', "why": "because", "seen": ""}
        yield _page(client, "jobqueue_job_edit", quote(job["id"]), data=edited, post=True)
        yield _page(client, "jobqueue_job_edit", quote(job["id"]), data={**edited, "confirmed": "yes"}, post=True)
