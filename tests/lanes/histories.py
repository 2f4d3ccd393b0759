"""Random histories of lanes, judged by a plain model that knows commits, and nothing of positions or locks."""

from __future__ import annotations

import random
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from django.db import OperationalError, connections, transaction

from jobqueue.policy.settling import completed, released
from jobqueue.records import Again, Dead, QueueOptions
from jobqueue.states import JobStatus
from jobqueue.testing.contract.harness import draft, failing, finish, request, settle, sweep

LANES = ("a", "b")
STEPS = 25
#: How many transactions of producers and workers are open at once.
SESSIONS = 3


@dataclass
class Known:
    """What the model knows of a job. ``place`` is its commit, and its turn in it."""

    id: str
    lane: str
    parallel: bool
    place: tuple[int, int] = ()
    status: str = "queued"
    due_at: object = None
    claim: object = None


class Open:
    """A transaction that is open in a session of its own, with what it did."""

    def __init__(self, alias, wrapper):
        self.alias, self.wrapper = alias, wrapper
        self.enqueued, self.claimed = [], []
        with self:
            self.atomic = transaction.atomic(using=alias)
            self.atomic.__enter__()
            with connections[alias].cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '10ms'")

    def __enter__(self):
        self.home = connections[self.alias]
        connections[self.alias] = self.wrapper

    def __exit__(self, *_error):
        connections[self.alias] = self.home

    def end(self, commits):
        with self:
            transaction.set_rollback(not commits, using=self.alias)
            self.atomic.__exit__(None, None, None)


class History:
    """One history: steps of producers, workers, operators and the clock, each checked."""

    def __init__(self, backend, clock, seed, wrappers=()):
        self.backend, self.clock, self.random = backend, clock, random.Random(seed)
        self.free, self.open = list(wrappers), []
        self.strict = self.random.random() < 0.3
        self.options = {"imports": QueueOptions(ordered="account", strict=self.strict)}
        self.jobs, self.commits, self.told = {}, 0, []

    def run(self):
        steps = (
            [self.enqueue] * 4
            + [self.claim] * 5
            + [self.finish] * 4
            + [self.fail, self.release, self.operate, self.finish_and_claim]
        )
        steps += [self.tick, self.expire]
        if self.free:
            steps += [self.begin] * 3 + [self.end] * 3 + [self.claim_open]
        try:
            for _ in range(STEPS):
                step = self.random.choice(steps)
                self.told.append(step.__name__)
                step()
        finally:
            while self.open:
                self.end()

    # Producers

    def _drafts(self):
        count = self.random.choice((1, 1, 2, 3))
        return [self._draft() for _ in range(count)]

    def _draft(self):
        delay = timedelta(seconds=self.random.choice((0, 0, 0, 5)))
        lane, parallel = self.random.choice(LANES), self.random.random() < 0.6
        key = self.random.choice((None, str(self.random.random())))
        priority = self.random.randint(1, 10)
        return draft(queue="imports", lane=lane, parallel=parallel, delay=delay, idempotency_key=key, priority=priority)

    def _store(self, drafts):
        with transaction.atomic(using=self.backend.alias) if self.backend.alias else self.backend.atomic():
            self.backend.enqueue(drafts)
            if self.random.random() < 0.1:
                raise _Changed
        return [Known(one.id, one.lane, one.parallel) for one in drafts]

    def _committed(self, jobs):
        self.commits += 1
        for turn, one in enumerate(jobs):
            one.place = (self.commits, turn)
            self.jobs[one.id] = one
            self._read(one)

    def enqueue(self):
        with self._impatient():
            self._committed(self._store(self._drafts()))

    def begin(self):
        if self.free:
            self.open.append(Open(self.backend.alias, self.free.pop()))
        one = self.random.choice(self.open)
        with one, self._impatient():
            one.enqueued += self._store(self._drafts())

    def end(self):
        if self.open:
            one = self.open.pop(self.random.randrange(len(self.open)))
            self.free.append(one.wrapper)
            commits = self.random.random() < 0.8
            one.end(commits)
            if commits:
                self._committed(one.enqueued)
            for job in one.claimed:
                job.status = "running" if commits else "queued"
                self._read(job)

    @contextmanager
    def _impatient(self):
        """Give up at a lock that an open transaction holds, or because the producer changed its mind."""
        try:
            if self.backend.alias == "postgres":
                with connections["postgres"].cursor() as cursor:
                    cursor.execute("SET lock_timeout = '10ms'")
            yield
        except (OperationalError, _Changed):
            pass

    # Workers

    def claim(self):
        self._checked(self.random.choice((1, 2, 50)), "running")

    def claim_open(self):
        if self.free:
            self.open.append(Open(self.backend.alias, self.free.pop()))
            with self.open[-1]:
                self.open[-1].claimed = self._checked(50, "open")

    def finish_and_claim(self):
        if job := self._running():
            self._checked(50, "running", ends=job)

    def _checked(self, limit, status, ends=None):
        before = {job.id: job.status for job in self.jobs.values()}
        settlements = []
        if ends is not None:  # in one cycle
            settlements = [completed(ends.claim, "null")]
            before[ends.id] = ends.status = "done"
        asked = request(limit, entries=("imports",), queue_options=self.options)
        claims = self.backend.cycle("me", settlements, asked).claims
        self.told.append([one.id for one in claims])
        started = [self.jobs[one.id] for one in claims]
        for lane in LANES:
            self._judge(lane, [one for one in started if one.lane == lane], before)
        if limit == 50 and not self.open:
            assert {one.id for one in started} == {job.id for lane in LANES for job in self._expected(lane)}, self.told
        for job, claim in zip(started, claims, strict=True):
            job.status, job.claim = status, claim
        return started

    def _of(self, lane):
        return sorted((one for one in self.jobs.values() if one.lane == lane), key=lambda one: one.place)

    def _is_due(self, one):
        return one.due_at <= self.clock.now()

    def _judge(self, lane, started, before):
        running = [one for one in self._of(lane) if before[one.id] in ("running", "open")]
        for job in started:
            earlier = [one for one in self._of(lane) if one.place < job.place]
            due = [one for one in earlier if before[one.id] == "queued" and self._is_due(one)]
            assert all(one.parallel for one in running), self.told
            if job.parallel:
                assert all(one.parallel and one in started for one in due), self.told
            else:
                assert (running, due, started) == ([], [], [job]), self.told
            if self.strict:
                held = [one for one in earlier if one.status == "queued" and not self._is_due(one)]
                assert not held, self.told
                assert not [one for one in earlier if one.status == "dead"], self.told

    def _expected(self, lane):
        """Return what a claim of a lane should start."""
        jobs, found = self._of(lane), []
        running = [one for one in jobs if one.status == "running"]
        if not all(one.parallel for one in running):
            return []
        for one in jobs:
            waits = one.status == "queued" and not self._is_due(one)
            if self.strict and (waits or one.status == "dead"):
                break
            if one.status != "queued" or waits:
                continue
            if not one.parallel:
                return found if found or running else [one]
            found.append(one)
        return found

    def _running(self):
        running = [one for one in self.jobs.values() if one.status == "running"]
        return self.random.choice(running) if running else None

    def finish(self):
        if job := self._running():
            finish(self.backend, job.claim)
            self._read(job)

    def fail(self):
        if job := self._running():
            decision = self.random.choice((Again(timedelta(seconds=5)), Again(timedelta(0)), Dead("attempts used up")))
            settle(self.backend, failing(job.claim, decision))
            self._read(job)

    def release(self):
        if job := self._running():
            settle(self.backend, released(job.claim))
            self._read(job)

    # Others

    def operate(self):
        idle = [one for one in self.jobs.values() if one.status in ("queued", "dead", "failed")]
        if idle:
            job = self.random.choice(idle)
            verb = self.random.choice((self.backend.operator.retry, self.backend.operator.cancel))
            verb([job.id])
            self._read(job)

    def tick(self):
        self.clock.advance(self.random.choice((1, 6)))

    def expire(self):
        self.clock.advance(61)
        sweep(self.backend, self.clock)
        for job in self.jobs.values():
            if job.status != "open":
                self._read(job)

    def _read(self, job):
        """Read what became of a job: when it runs again is not the lane's decision."""
        row = self.backend.jobs.get(job.id)
        names = {
            JobStatus.QUEUED: "queued",
            JobStatus.IN_PROGRESS: "running",
            JobStatus.COMPLETED: "done",
            JobStatus.FAILED: "failed",
            JobStatus.DEAD_LETTER: "dead",
        }
        job.status, job.due_at = names[row.status], row.scheduled_at


class _Changed(Exception):
    """A producer that changes its mind, and rolls back."""
