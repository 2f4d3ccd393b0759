"""A queue on a busy day, written by the backend's own methods at given times."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from datetime import timedelta
from random import Random
from types import SimpleNamespace

from jobqueue.clock import SYSTEM
from jobqueue.ids import UlidFactory
from jobqueue.policy.histogram import buckets
from jobqueue.policy.settling import completed, settled
from jobqueue.records import (
    Again,
    Caps,
    Dead,
    Draft,
    Ending,
    Failure,
    Lengths,
    Progress,
    Scope,
    Stopped,
    Tally,
    WorkerRecord,
)
from jobqueue.testing import VirtualClock
from jobqueue.testing.contract.harness import take
from jobqueue.version import __version__
from tests.browser.shop import QUEUES

PROVIDER_SILENT = "the payment provider did not answer within 10 s"
TRACEBACK = """Traceback (most recent call last):
  File "/srv/shop/payments/jobs.py", line 41, in charge_card
    answer = provider.charge(order.reference, amount, timeout=10)
  File "/srv/shop/payments/provider.py", line 118, in charge
    return self._post("/v2/charges", reference=reference, amount=amount)
  File "/srv/shop/payments/provider.py", line 87, in _post
    raise TimeoutError("the payment provider did not answer within 10 s")
TimeoutError: the payment provider did not answer within 10 s
"""
LETTERS = {
    # By kind of failure: type, class, message, and how many minutes ago each was given up.
    "charge_card:silent": ("charge_card", "TimeoutError", PROVIDER_SILENT, range(58, 19, -2)),
    "resize_image:format": (
        "resize_image",
        "UnidentifiedImageError",
        "no image file: cover.heic",
        range(1300, 60, -97),
    ),
    "send_welcome:refused": ("send_welcome", "SMTPRecipientsRefused", "550 5.1.1 mailbox unavailable", (810, 260, 75)),
}
OWNERS = ("app1:4211:6f1c09d2a7b3e845", "app2:3977:1b82f4c6d05a9e37", "app2:3978:c44d71e09f2ab658")
MINUTE = timedelta(minutes=1)


class Past:
    """Has things happen at moments that are gone, in their order."""

    def __init__(self, queue, now, by):
        self.queue, self.now, self.clock = queue, now, VirtualClock(now - by)
        self.new_id, self.dice = UlidFactory(self.clock), Random(7)
        self.found = SimpleNamespace(owner=OWNERS[0], silent_owner=OWNERS[2], fingerprint="charge_card:silent")

    def reach(self, minutes_ago):
        """Let time pass until so many minutes ago, unless it has."""
        self.clock.advance(max(timedelta(0), self.now - minutes_ago * MINUTE - self.clock.now()))

    def put(self, kind, payload=None, **values):
        """Enqueue a job; return its id."""
        known = {"queue": QUEUES.get(kind, "default"), "payload": json.dumps(payload or self.payload(kind))}
        return self.queue.enqueue([Draft(id=self.new_id(), type=kind, **{**known, **values})])[0].id

    def payload(self, kind):
        number = self.dice.randrange(10_000, 99_999)
        return {
            "resize_image": {"image_id": number, "width": 800, "format": "webp"},
            "charge_card": {"order_id": number, "amount": "39.90 EUR", "card_token": f"tok_{number}"},
            "send_welcome": {"user_id": number, "language": "en"},
            "import_catalogue": {"supplier": "northwind", "pages": 12},
        }.get(kind, {"order_id": number})

    def take(self, kind, owner=OWNERS[0], limit=1, lease=timedelta(minutes=20)):
        """Claim jobs of a type that are due."""
        claims = take(self.queue, limit, owner, types=frozenset({kind}), lease=lease)
        assert len(claims) == limit
        return claims

    def settle(self, *settlements):
        assert self.queue.cycle(OWNERS[0], settlements).refused == ()

    def fail(self, claim, decision, error_class, message, traceback="", fingerprint=None, ending=Ending.FAILED):
        told = {"error_class": error_class, "message": message, "traceback": traceback}
        failure = Failure.of(ending, fingerprint=fingerprint, duration=timedelta(seconds=10.02), **told)
        self.settle(settled(claim, decision, failure))


@contextmanager
def rewinding(queue, by):
    """Set a backend's clock back, and at the end to the right time again."""
    past = Past(queue, SYSTEM.now(), by)
    queue.clock = past.clock
    try:
        yield past
    finally:
        queue.clock = None


def fill(queue, minutes=10):
    """Fill the tables; return the ids of what is there to be seen. The last hour is told so many minutes at once."""
    with rewinding(queue, timedelta(days=7)) as past:
        happened = [(ago, _tell) for ago in _moments(minutes)]
        happened += [(ago, _letter(kind)) for kind, (*_, agos) in LETTERS.items() for ago in agos]
        happened += [(ago, _finish) for ago in (*range(600, 1, -20), 1.7, 1.3, 0.9, 0.5, 0.2)]
        happened += [(ago, _order) for ago in (*range(17, 2, -1), 1.6, 1.2, 0.8, 0.4)]
        happened += [(210, _enlist), (200, _crash), (90, _stop), (14, _import), (4, _enlist), (18, _pause)]
        happened += [(34, _crowd), *((ago, _serve_crowd) for ago in (33, 32, 31, 30))]
        happened += [(1.4, _give_way), (0.7, _run), (0.3, _wait)]
        for ago, happen in sorted(happened, key=lambda pair: -pair[0]):
            past.reach(ago)
            happen(past)
        for owner in OWNERS[:2]:
            _enlist_one(past, owner)
        return past.found


# What goes on


def _moments(minutes):
    day = 24 * 60
    week, hours = range(7 * day - 60, day, -4 * 60), range(day - 10, 60, -30 if minutes > 1 else -10)
    return [*week, *hours, *range(59, -1, -minutes)]


def _tell(past):
    """Tell what has ended of late."""
    tallies = []
    for kind, many, waits, runs in (
        ("resize_image", 90, 0.2, 1.4),
        ("send_welcome", 40, 0.1, 0.3),
        ("send_receipt", 30, 0.1, 0.4),
        ("charge_card", 25, 0.3, 0.9),
        ("count_stock", 6, 2.0, 8.0),
    ):
        done = past.dice.randrange(many // 2, many)
        ran = [past.dice.lognormvariate(0, 0.5) * runs for _ in range(done)]
        waited = [past.dice.lognormvariate(0, 0.8) * waits for _ in range(done)]
        given_up = kind == "charge_card" and past.dice.random() < 0.35
        failed = {"retried": done // 12, "dead_lettered": int(given_up)}
        tallies.append(Tally(QUEUES[kind], kind, completed=done, **failed, ran=_lengths(ran), waited=_lengths(waited)))
    moment = past.clock.now()
    assert past.queue.metrics.add(moment, tallies)
    assert past.queue.metrics.sample(moment)


def _lengths(several):
    return Lengths(Counter(buckets(several)), sum(several))


def _letter(fingerprint):
    kind, error_class, message, _agos = LETTERS[fingerprint]

    def happen(past):
        past.put(kind, max_retries=2, tenant=past.dice.choice(["acme", "globex", None]))
        for decision in (Again(timedelta(0)), Dead("attempts used up")):
            (claim,) = past.take(kind)
            past.clock.advance(10.02)
            traceback = TRACEBACK.replace(PROVIDER_SILENT, message).replace("TimeoutError", error_class)
            past.fail(claim, decision, error_class, message, traceback, fingerprint)

    return happen


def _finish(past):
    for kind in ("resize_image", "send_receipt"):
        past.put(kind)
        (claim,) = past.take(kind)
        past.clock.advance(0.7)
        past.settle(completed(claim, json.dumps({"seconds": 0.7})))


def _crowd(past):
    for _ in range(12):
        past.put("resize_image")


def _serve_crowd(past):
    past.settle(*(completed(claim, "null") for claim in past.take("resize_image", OWNERS[0], 3)))


def _enlist(past):
    """Have all workers be heard of; the last of them is heard of no more."""
    for owner in OWNERS:
        _enlist_one(past, owner)


def _enlist_one(past, owner):
    known = {one.owner: one.started_at for one in past.queue.workers.all()}
    host, pid, _nonce = owner.split(":")
    name, queues = {"4211": ("images-1", ("default", "images")), "3977": ("mail-1", ("mail", "payments"))}.get(
        pid, ("mail-2", ("mail", "payments"))
    )
    now, busy = past.clock.now(), len(past.queue.held_by(owner))
    about = {"owner": owner, "name": name, "host": host, "pid": int(pid), "version": __version__, "queues": queues}
    room = {"processes": 2, "slots": 20, "busy": busy, "started_at": known.get(owner, now), "seen_at": now}
    past.queue.workers.enlist(WorkerRecord(**about, **room, types=tuple(QUEUES)))


def _pause(past):
    past.queue.operator.pause(Scope.QUEUE, "payments", "the payment provider is down, see its status page")


def _crash(past):
    past.put("import_catalogue", {"supplier": "fabrikam", "pages": 400}, max_retries=1)
    (claim,) = past.take("import_catalogue", OWNERS[1])
    message = "its process was ended by signal 9 (SIGKILL)"
    past.fail(claim, Dead("crashed too often"), "", message, "", "import_catalogue:crashed", Ending.CRASHED)


def _stop(past):
    past.put("count_stock", {"warehouse": "harbour"})
    (claim,) = past.take("count_stock", OWNERS[1])
    past.fail(claim, Stopped("no longer wanted"), "", "the warehouse is closed", ending=Ending.CANCELLED)


def _import(past):
    past.found.completed = parent = past.put("import_catalogue", context='{"trace": "4bf92f3577b34da6"}')
    (claim,) = past.take("import_catalogue", OWNERS[0])
    for _ in range(3):
        past.put("send_receipt", parent_id=parent)
    past.clock.advance(12)
    past.settle(completed(claim, json.dumps({"images": 214, "skipped": [17, 18], "api_key": "k-1234567890"})))
    for claim in past.take("send_receipt", OWNERS[1], 3):
        past.settle(completed(claim, "null"))


def _give_way(past):
    """Have an attempt fail that is not the last."""
    past.found.retrying = past.put("send_welcome", tenant="acme")
    (claim,) = past.take("send_welcome", OWNERS[1])
    past.fail(claim, Again(timedelta(minutes=6)), "SMTPServerDisconnected", "connection unexpectedly closed", TRACEBACK)


def _order(past):
    past.found.paused = past.put("charge_card", tenant="globex", idempotency_key=f"order-{past.new_id()[-6:]}")


def _run(past):
    """Have jobs run, each further than the one before."""
    for kind, owner, many in (("resize_image", OWNERS[0], 3), ("send_receipt", OWNERS[1], 2)):
        for _ in range(many):
            past.put(kind)
        claims = past.take(kind, owner, many)
        for place, claim in enumerate(claims):
            report = json.dumps({"percent": 20 + 30 * place, "step": "scaling"})
            past.queue.progress([Progress(claim.id, claim.fence, owner, report)])
        past.found.in_progress = claims[0].id


def _wait(past):
    """Have jobs wait, or be stopped while they do."""
    past.found.failed = past.put("count_stock", {"warehouse": "station"})
    past.queue.operator.cancel([past.found.failed])
    past.put("count_stock", {"warehouse": "airport"}, delay=timedelta(hours=5))
    past.found.queued = past.put("resize_image", priority=2, delay=timedelta(minutes=10))
    past.found.dead_letter = past.queue.errors.group(past.found.fingerprint, Caps(1, 1, 1, 1)).newest_id


def stretch(queue):
    """Add what has the longest names there can be, and no blank in them; return the ids of what is there to be seen."""
    long = "import." + "x" * 93
    found = SimpleNamespace(name=long, fingerprint="f" * 64, owner=f"host:1:{'e' * 200}")
    with rewinding(queue, timedelta(minutes=9)) as past:
        names = {"queue": long, "tenant": "t" * 100, "unique_key": "k" * 255}
        found.dead_letter = past.put(long, {"k" * 200: ["v" * 900, {"deep": {"deeper": ["v" * 300]}}]}, **names)
        (claim,) = past.take(long, found.owner)
        past.fail(claim, Dead("r" * 100), "E" * 255, "m" * 2000, "t" * 4000, found.fingerprint)
        found.in_progress = past.put(long, **names)
        (claim,) = past.take(long, found.owner)
        report = json.dumps({"percent": 12.345, "step": "s" * 500})
        past.queue.progress([Progress(claim.id, claim.fence, found.owner, report)])
        past.queue.metrics.add(past.clock.now(), [Tally(long, long, completed=3)])
        about = {
            "owner": found.owner,
            "name": "n" * 100,
            "host": "h" * 200,
            "pid": 4_000_000,
            "version": "0.1.0.dev9",
        }
        room = {"processes": 2, "slots": 20, "started_at": past.clock.now(), "seen_at": past.clock.now()}
        queue.workers.enlist(WorkerRecord(**about, **room, queues=(long,), types=(long,)))
        queue.operator.pause(Scope.QUEUE, long, "r" * 500)
    return found
