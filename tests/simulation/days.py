"""Ordinary days of a queue on a virtual clock: real verbs of a backend in memory, and the metrics that workers keep.

There are lulls at night and bursts by day, failures that a retry cures, some jobs that don't recover, hiccups of a
provider, short pauses, and deploys that restart the workers one by one or all at once.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from jobqueue.alerts import evaluate
from jobqueue.backends.memory import MemoryBackend
from jobqueue.observe.health import Cause, Level, findings, look
from jobqueue.policy.leases import settle_overdue
from jobqueue.policy.settling import completed, released
from jobqueue.records import Again, ClaimRequest, Dead, Filter, Progress, Scope, Tally, WorkerRecord, WorkerState
from jobqueue.states import JobStatus
from jobqueue.testing import VirtualClock
from jobqueue.testing.clock import NOON
from jobqueue.testing.contract.harness import draft, failing

STEP = timedelta(seconds=10)
LEASE = timedelta(seconds=60)
DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
MIDNIGHT = NOON + HOUR * 12
SLOTS = 20


@dataclass(frozen=True)
class Kind:
    """A type of jobs: how many come in a minute of the day, how long they run, and how often they fail and die."""

    queue: str
    per_minute: float
    runs: float
    fails: float
    dies: float = 0.0


KINDS = {
    "resize": Kind("images", 8, 2, fails=0.02),
    "mail": Kind("mail", 4, 1, fails=0.05),
    "sync": Kind("default", 3, 5, fails=0.0, dies=0.01),
    "load": Kind("default", 0.5, 150, fails=0.0),
    "report": Kind("default", 0.0, 4, fails=0.01),
    "rare": Kind("default", 0.02, 4, fails=0.1),
}
TYPES = frozenset(KINDS)
DEAD_LETTERS = Filter(statuses=frozenset({JobStatus.DEAD_LETTER}))


def activity(hour):
    """Return how much goes on in an hour of the day, as a part of the most."""
    return 0.1 if hour < 6 else 0.5 if hour < 9 or hour >= 20 else 1.0


@dataclass
class Worker:
    """A worker: its running jobs, and when each is done."""

    owner: str
    started_at: datetime
    claims: dict = field(default_factory=dict)
    state: WorkerState = WorkerState.RUNNING
    is_killed: bool = False


class Days:
    """The queue, its workers, and what the evaluation of its health has said."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.clock = VirtualClock(MIDNIGHT)
        self.backend = MemoryBackend(clock=self.clock)
        self.started = 0
        self.workers = [self.start(), self.start()]
        self.fails = {name: kind.fails for name, kind in KINDS.items()}
        self.due_events: deque = deque()
        self.said: Counter = Counter()
        self.alarms: list = []
        self.alerts: list = []
        self._remember()

    def _remember(self):
        """Note what workers would have counted on the day before."""
        for hour in range(24):
            for name, kind in KINDS.items():
                count = round(60 * kind.per_minute * activity(hour))
                failed, dead = round(kind.fails * count), round(kind.dies * count)
                tally = Tally(kind.queue, name, completed=count, retried=failed, dead_lettered=dead)
                self.backend.metrics.add(self.clock.now() - DAY + hour * HOUR, [tally])

    # What happens

    def start(self):
        self.started += 1
        worker = Worker(f"host:{self.started}:worker", self.clock.now())
        self._report(worker)
        return worker

    def at(self, length, act):
        """Do something that long after the beginning. Acts are given in order."""
        self.due_events.append((MIDNIGHT + length, act))

    def pause(self, name, reason="the provider asked us to"):
        self.backend.operator.pause(Scope.QUEUE, name, reason)

    def resume(self, name):
        self.backend.operator.resume(Scope.QUEUE, name)

    def stop(self, place):
        """Stop a worker: it finishes what it can, and the next step ends it."""
        self.workers[place].state = WorkerState.STOPPING

    def replace(self, place):
        """End a worker that stops, and start the new release's."""
        worker = self.workers[place]
        self._settle(worker, [released(claim) for claim, _end in worker.claims.values()])
        self.backend.workers.dismiss(worker.owner)
        self.workers[place] = None

    def begin(self, place):
        self.workers[place] = self.start()

    def kill(self, place):
        self.workers[place].is_killed = True

    def burst(self, name, count, tenant):
        kind = KINDS[name]
        self.backend.enqueue([draft(name, queue=kind.queue, tenant=tenant) for _ in range(count)])

    # Steps

    def live(self, length, look_every=3):
        steps = round(length / STEP)
        for step in range(steps):
            self.clock.advance(STEP)
            is_eventful = self._act()
            self._arrive()
            for worker in self.workers:
                if worker is not None and not worker.is_killed:
                    self._turn(worker)
            if step % 6 == 0:
                self._tidy()
            if is_eventful or step % look_every == 0:
                self._judge()

    def _act(self):
        acted = False
        while self.due_events and self.due_events[0][0] <= self.clock.now():
            self.due_events.popleft()[1]()
            acted = True
        return acted

    def _arrive(self):
        since_midnight = (self.clock.now() - MIDNIGHT) % DAY
        much = activity(since_midnight // HOUR) * STEP / MINUTE
        drafts = []
        for name, kind in KINDS.items():
            expected = kind.per_minute * much
            count = int(expected) + (self.rng.random() < expected % 1)
            drafts += [
                draft(name, queue=kind.queue, tenant=f"tenant-{self.rng.randrange(9)}", max_retries=5)
                for _ in range(count)
            ]
        self.backend.enqueue(drafts)

    def _turn(self, worker):
        now, done = self.clock.now(), []
        for claim, end in list(worker.claims.values()):
            if end <= now:
                done.append(self._ending(claim))
        self._settle(worker, done)
        self.backend.extend([claim for claim, _end in worker.claims.values()], LEASE)
        reports = [Progress(one.id, one.fence, one.owner, "{}") for one, _end in worker.claims.values()]
        self.backend.progress([one for one in reports if worker.claims[one.id][0].type == "load"])
        if worker.state is WorkerState.RUNNING:
            request = ClaimRequest(limit=SLOTS - len(worker.claims), types=TYPES, lease=LEASE)
            for claim in self.backend.cycle(worker.owner, (), request).claims if request.limit else ():
                length = timedelta(seconds=KINDS[claim.type].runs * self.rng.uniform(0.5, 1.5))
                worker.claims[claim.id] = claim, now + length
        self._report(worker)
        self.backend.sweep(settle_overdue)

    def _ending(self, claim):
        kind, dice = KINDS[claim.type], self.rng.random()
        if dice < kind.dies:
            return failing(claim, Dead("not retryable"))
        if dice < kind.dies + self.fails[claim.type]:
            is_last = claim.attempt >= claim.max_retries
            return failing(claim, Dead("attempts used up") if is_last else Again(timedelta(seconds=10 * claim.attempt)))
        return completed(claim)

    def _settle(self, worker, settlements):
        if not settlements:
            return
        assert self.backend.cycle(worker.owner, settlements).refused == ()
        counts: dict = {}
        for one in settlements:
            claim, _end = worker.claims.pop(one.id)
            what = {"complete": "completed", "retry": "retried", "bury": "dead_lettered"}.get(one.move.value)
            if what:
                counts.setdefault((claim.queue, claim.type), Counter())[what] += 1
        self.backend.metrics.add(self.clock.now(), [Tally(*name, **ends) for name, ends in counts.items()])
        self.backend.operator.purge([one.id for one in settlements if one.move.value == "complete"])

    def _report(self, worker):
        about = {"name": worker.owner, "host": "host", "pid": 1, "version": "1", "processes": 1, "slots": SLOTS}
        about |= {"started_at": worker.started_at, "seen_at": self.clock.now(), "types": tuple(sorted(TYPES))}
        self.backend.workers.enlist(
            WorkerRecord(owner=worker.owner, state=worker.state, busy=len(worker.claims), **about)
        )

    def _tidy(self):
        """Sample the depth, and purge the dead letters that somebody has looked at."""
        if any(worker is not None and not worker.is_killed for worker in self.workers):
            self.backend.metrics.sample(self.clock.now())
        if self.clock.now().minute % 30 == 0:
            self.alerts += evaluate(self.backend).told
        if self.clock.now().minute == 0 and self.clock.now().hour % 3 == 0:
            dead = self.backend.jobs.find_ids(DEAD_LETTERS, 100)
            self.backend.operator.purge(dead)

    def _judge(self):
        seen = look(self.backend)
        found = findings(seen)
        self.said.update(one.cause for one in found)
        self.alarms += [(self.clock.now() - MIDNIGHT, one) for one in found if one.level > Level.NOTICE]
        assert not any(one.cause is Cause.PAUSED for one in found) or seen.pauses
