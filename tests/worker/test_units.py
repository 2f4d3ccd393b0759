"""Unit tests of a worker's small parts: messages, slots, claims and options."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from datetime import UTC, timedelta
from functools import partial
from itertools import pairwise
from string import ascii_letters, digits
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobqueue.backends.wake import PAUSE
from jobqueue.clock import NEVER
from jobqueue.errors import Interrupted, InvalidOption, StopReason
from jobqueue.policy.settling import completed
from jobqueue.records import Assignment, Claim, Cycle, Draft, Ending, Failure, Settlement
from jobqueue.states import Move
from jobqueue.testing import VirtualClock
from jobqueue.testing.clock import NOON
from jobqueue.worker.executor import slots
from jobqueue.worker.executor.attempt import Running, settle_failure
from jobqueue.worker.executor.outgoing import Outgoing
from jobqueue.worker.executor.slots import Slots
from jobqueue.worker.options import WorkerOptions
from jobqueue.worker.protocol import testimony, wire
from jobqueue.worker.protocol.wire import BadMessage, Inbox, Word, pack
from jobqueue.worker.supervisor import loop
from jobqueue.worker.supervisor.claims import POSTPONED_FOR, Claims, HeldClaim
from tests.worker.harness import until

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
WORDS = st.sampled_from(Word)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
spelled = partial(json.dumps, ensure_ascii=False)
LENGTHS = st.integers(0, 10**9).map(lambda millis: timedelta(milliseconds=millis))
MOMENTS = st.datetimes(timezones=st.just(UTC)).filter(lambda moment: 2 < moment.year < 9998)
maybe = st.none().__or__

NAMES = st.text(ascii_letters + digits + "_.:/@-", min_size=1, max_size=40)
KEYS = st.text(min_size=1, max_size=40).filter(str.isprintable)
DRAFTS = st.builds(
    Draft,
    id=st.just("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
    type=NAMES,
    payload=JSON.map(spelled),
    payload_version=st.integers(1, 9),
    queue=NAMES,
    priority=st.integers(1, 10),
    max_retries=st.integers(1, 100),
    expires_at=maybe(MOMENTS),
    timeout=maybe(LENGTHS.filter(bool)),
    tenant=maybe(KEYS),
    workspace=maybe(KEYS),
    parent_id=st.just("job-1"),
    context=maybe(JSON.map(spelled)),
)
FAILURES = st.builds(
    Failure,
    ending=st.sampled_from(Ending),
    error_class=TEXT,
    message=TEXT,
    traceback=TEXT,
    fingerprint=maybe(TEXT),
    duration=maybe(LENGTHS),
)
ENDS = {
    "id": st.just("job-1"),
    "fence": st.just(4),
    "owner": st.just("me"),
    "result": maybe(JSON.map(spelled)),
    "delay": maybe(LENGTHS),
    "end_reason": maybe(TEXT),
    "progress": maybe(st.dictionaries(TEXT, JSON, max_size=3).map(spelled)),
}
DRAFTS_OR_KEYED = DRAFTS.flatmap(
    lambda draft: st.sampled_from(
        [draft, replace(draft, idempotency_key="k", delay=timedelta(5)), replace(draft, unique_key="k")]
    )
) | MOMENTS.flatmap(lambda moment: DRAFTS.map(lambda draft: replace(draft, scheduled_at=moment)))
SETTLEMENTS = st.builds(
    Settlement,
    **ENDS,
    move=st.just(Move.COMPLETE),
    failure=st.none(),
    children=st.lists(DRAFTS_OR_KEYED, max_size=2).map(tuple),
    context=st.none(),
) | st.builds(
    Settlement,
    **ENDS,
    move=st.sampled_from([Move.RETRY, Move.SNOOZE, Move.RELEASE, Move.BURY, Move.CANCEL]),
    failure=FAILURES,
    children=st.just(()),
    context=maybe(st.dictionaries(TEXT, JSON, max_size=2).map(spelled)),
)


def claim_of(number=1, **changes):
    values = dict.fromkeys(Claim._fields) | {
        "id": f"job-{number}",
        "type": "resize",
        "queue": "images",
        "priority": 5,
        "payload": "{}",
        "payload_version": 1,
        "attempt": 1,
        "max_retries": 3,
        "fence": 4,
        "crash_count": 0,
        "owner": "me",
    }
    return Claim(**(values | changes))


def received(messages, cuts=()):
    """Feed messages to an inbox in pieces, cut at these places."""
    whole = b"".join(messages)
    places = sorted({0, len(whole), *(cut % (len(whole) + 1) for cut in cuts)})
    inbox = Inbox()
    return [said for start, end in pairwise(places) for said in inbox.feed(whole[start:end])]


# Messages


def judged_outcome(row, **changes):
    """Have the supervisor judge a row about the claim of ``claim_of``."""
    claim = claim_of(**changes)._replace(id="job-1")
    held = {("job-1", 4): HeldClaim(claim, 60.0, 10.0, 100.0)}
    [(_, said)] = testimony.outcomes([row], held, "me")
    return said


@given(said=st.lists(st.tuples(WORDS, JSON), max_size=6), cuts=st.lists(st.integers(0, 10**6), max_size=20))
def test_messages_arrive_whole_and_in_order_however_they_are_cut(said, cuts):
    assert received([pack(*one) for one in said], cuts) == said


def test_a_message_may_come_byte_by_byte():
    whole = pack(Word.OUTCOMES, [["job-1", 4, '{"name": "Zoë"}']])
    inbox = Inbox()
    heard = [list(inbox.feed(whole[place : place + 1])) for place in range(len(whole))]
    assert heard[:-1] == [[]] * (len(whole) - 1)
    assert heard[-1] == [(Word.OUTCOMES, [["job-1", 4, '{"name": "Zoë"}']])]


def test_a_lone_surrogate_ends_no_conversation():
    assert received([pack(Word.PROGRESS, ["\ud800"])]) == [(Word.PROGRESS, ["\ud800"])]


@given(settlement=SETTLEMENTS)
def test_a_settlement_is_the_same_at_the_other_end(settlement):
    plain = settlement.move is Move.COMPLETE and not settlement.children and settlement.progress is None
    if plain:  # its holder says nothing but its result
        settlement = settlement._replace(delay=None, end_reason=None, failure=None)
    [(word, [row])] = received([pack(Word.OUTCOMES, [wire.settlement_row(settlement)])])
    assert word is Word.OUTCOMES
    assert judged_outcome(row) == settlement


@given(
    row=st.lists(st.sampled_from(list(wire.OutcomeKind)) | JSON, max_size=9).map(
        lambda rest: [rest[0] if rest else "lost", "job-1", 4, *rest[1:]]
    )
)
def test_whatever_an_executor_says_is_an_outcome_or_no_message(row):
    try:
        said = judged_outcome(row)
    except BadMessage as error:
        assert len(str(error)) < 100  # noqa: PT017 - it may be one or the other
    else:
        assert said is None or isinstance(said, (list, Settlement))


@given(data=st.binary(max_size=60), length=st.integers(0, 80))
def test_whatever_comes_in_is_a_message_or_none(data, length):
    inbox = Inbox(longest=70)
    try:
        list(inbox.feed(length.to_bytes(4) + data))
    except BadMessage as error:
        assert length > 70 or len(data) >= length, error  # noqa: PT017


def test_a_follow_up_job_has_what_its_parent_has_although_a_foreign_program_wrote_it():
    draft = Draft(id="01ARZ3NDEKTSV4RRFFQ69G5FAV", type="t", payload="1", parent_id="job-1", tenant="a\nb")
    row = wire.settlement_row(completed(claim_of())._replace(children=(draft,)))
    assert judged_outcome(row, tenant="a\nb").children == (draft,)
    with pytest.raises(BadMessage, match="tenant"):
        judged_outcome(row)


def test_no_outcome_comes_twice():
    held = {("job-1", 4): HeldClaim(claim_of(), 60.0, 10.0, 100.0)}
    said = testimony.outcomes([["completed", "job-1", 4, None]] * 2, held, "me")
    del held[next(said)[0].key]
    with pytest.raises(BadMessage, match="does not run"):
        next(said)


@pytest.mark.parametrize(
    ("context", "kept"),
    [
        ('{"last_attempt": "00-a"}', True),
        (None, False),
        (7, False),
        ("[1]", False),
        ("{", False),
        ('{"a": "\\u0000"}', False),
        ('{"a": "\\ud800"}', False),
        ('{"a": "' + "x" * 40_000 + '"}', False),
    ],
)
def test_a_context_that_cannot_be_stored_is_left_out_alone(context, kept):
    settlement = Settlement("job-1", 4, "me", Move.RETRY, failure=Failure.of(Ending.FAILED), context=context)
    said = judged_outcome(wire.settlement_row(settlement))
    assert said == settlement._replace(context=context if kept else None)


def test_a_plain_completion_is_short():
    assert wire.settlement_row(completed(claim_of(), "7")) == ["completed", "job-1", 4, "7"]


def test_an_executor_gets_of_a_claim_what_it_needs_and_no_more():
    claim = claim_of(tenant="acme", parent_id="job-0", context='{"language": "de"}', crash_count=2)
    [(_, rows)] = received([pack(Word.ASSIGN, [wire.assignment_row(claim)])], [3, 5])
    assert wire.assignments(rows) == [Assignment(*(getattr(claim, name) for name in Assignment._fields[:-1]))]
    claim = claim._replace(scheduled_at=NOON)
    [(_, rows)] = received([pack(Word.ASSIGN, [wire.traced_assignment_row(claim)])])
    assert wire.assignments(rows)[0].due_at == claim.scheduled_at.timestamp()


# The outgoing


def arrived(theirs):
    theirs.setblocking(False)
    try:
        return list(Inbox().feed(theirs.recv(1 << 18)))
    except BlockingIOError:
        return []


def test_outcomes_wait_until_there_are_enough_of_them(channel):
    ours, theirs = channel
    outgoing = Outgoing(ours, full=3)
    outgoing.put(["a", 1])
    outgoing.put(["b", 1])
    assert outgoing.pending
    assert arrived(theirs) == []
    outgoing.put(["c", 1])
    assert not outgoing.pending
    assert arrived(theirs) == [(Word.OUTCOMES, [["a", 1], ["b", 1], ["c", 1]])]


def test_a_flush_sends_what_waits_and_nothing_twice(channel):
    ours, theirs = channel
    outgoing = Outgoing(ours, full=10)
    outgoing.put(["a", 1])
    outgoing.flush()
    outgoing.flush()
    assert arrived(theirs) == [(Word.OUTCOMES, [["a", 1]])]


def test_other_words_do_not_wait(channel):
    ours, theirs = channel
    outgoing = Outgoing(ours, full=10)
    outgoing.put(["a", 1])
    outgoing.say(Word.PROGRESS, [["a", 1, "50"]])
    assert arrived(theirs) == [(Word.PROGRESS, [["a", 1, "50"]])]


def test_nobody_at_the_other_end_is_no_error(channel):
    ours, theirs = channel
    outgoing = Outgoing(ours, full=1)
    theirs.close()
    outgoing.put(["a", 1])
    outgoing.say(Word.READY, {})
    assert not outgoing.pending


# Slots


class Bench:
    """Slots whose work is to wait until an event lets it go, or to fall through."""

    def __init__(self, size, channel):
        self.running, self.most, self.done = 0, 0, []
        self.began, self.finished, self.left = threading.Semaphore(0), threading.Semaphore(0), threading.Semaphore(0)
        self._lock = threading.Lock()
        self.slots = Slots(size, self._work, self.left.release, Outgoing(channel, full=1_000))

    def _work(self, item):
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        self.began.release()
        if isinstance(item, threading.Event):
            assert item.wait(10)
        with self._lock:
            self.running -= 1
            self.done.append(item)
        self.finished.release()


def happens(semaphore, count=1):
    return all(semaphore.acquire(timeout=10) for _ in range(count))


def test_slots_work_on_everything_and_never_on_more_than_their_number(channel):
    bench = Bench(4, channel[0])
    gates = [threading.Event() for _ in range(12)]
    bench.slots.submit(gates)
    assert happens(bench.began, 4)
    assert bench.running == 4
    for gate in gates:
        gate.set()
    assert happens(bench.finished, 12)
    assert bench.most == 4
    assert set(map(id, bench.done)) == set(map(id, gates))


def test_a_job_that_waits_keeps_no_other_from_running(channel):
    bench = Bench(2, channel[0])
    gate = threading.Event()
    bench.slots.submit([gate, *range(50)])
    assert happens(bench.finished, 50)
    assert bench.done == list(range(50))
    gate.set()
    assert happens(bench.finished)


def test_what_is_submitted_while_all_sleep_is_worked_on(channel):
    bench = Bench(3, channel[0])
    for turn in range(200):
        bench.slots.submit([turn])
        assert happens(bench.finished)
    assert bench.done == list(range(200))


def test_many_batches_in_a_row_lose_nothing(channel):
    bench = Bench(5, channel[0])
    for start in range(0, 800, 8):
        bench.slots.submit(range(start, start + 8))
    assert happens(bench.finished, 800)
    assert sorted(bench.done) == list(range(800))
    assert bench.most <= 5


class Beaten(Slots):
    """Slots whose first thread to rest sees an item that another one takes before it can."""

    beaten = False

    def _is_needed(self):
        is_first, self.beaten = not self.beaten, True
        return is_first or super()._is_needed()


def test_a_thread_whose_item_another_one_took_still_works(channel):
    done = threading.Semaphore(0)
    slots = Beaten(1, lambda item: done.release(), lambda: None, Outgoing(channel[0], full=1_000))
    slots.submit(["first"])
    assert happens(done)
    until(lambda: slots._idle or not slots._started[0].is_alive(), what="the thread rests, or has ended")
    slots.submit(["next"])
    assert happens(done)


def test_a_slot_that_has_nothing_to_do_sends_what_is_finished(channel):
    ours, theirs = channel
    outgoing = Outgoing(ours, full=1_000)
    slots = Slots(2, lambda item: outgoing.put([item, 1]), lambda: None, outgoing)
    slots.submit(["a", "b", "c"])
    inbox, said = Inbox(), []
    while sum(len(rows) for _, rows in said) < 3:
        said += inbox.feed(theirs.recv(4096))
    assert sorted(row for _, rows in said for row in rows) == [["a", 1], ["b", 1], ["c", 1]]


def test_what_is_finished_is_sent_while_the_last_one_still_runs(channel):
    ours, theirs = channel
    outgoing, gate = Outgoing(ours, full=1_000), threading.Event()

    def work(item):
        return outgoing.put([item, 1]) if isinstance(item, str) else gate.wait(10)

    Slots(2, work, lambda: None, outgoing).submit(["a", gate])
    assert list(Inbox().feed(theirs.recv(4096))) == [(Word.OUTCOMES, [["a", 1]])]
    gate.set()


def test_a_slot_that_was_idle_for_long_ends_and_another_starts_when_it_is_needed(channel, monkeypatch):
    monkeypatch.setattr(slots, "IDLE_FOR", 0.01)
    bench = Bench(2, channel[0])
    for turn in range(3):
        bench.slots.submit([turn])
        assert happens(bench.finished)
        assert happens(bench.left)
    assert bench.done == [0, 1, 2]


# What is held


def held(number=1, limit=10.0, since=100.0):
    return HeldClaim(claim_of(number), 60.0, limit, since)


def test_a_claim_is_held_from_its_beginning_until_its_settlement_is_stored():
    claims, one = Claims(), held()
    claims.begin([one])
    assert (len(claims), claims.nearest) == (1, 110.0)
    claims.finish(one, completed(one.claim))
    assert (len(claims), list(claims.running), list(claims.finished)) == (1, [], [one.key])
    assert claims.everything() == [one]
    claims.stored(claims.offer())
    assert (len(claims), claims.offer()) == (0, [])


def test_what_others_have_locked_is_held_and_offered_again_after_a_while():
    claims, several = Claims(), [held(number) for number in range(3)]
    claims.begin(several)
    for one in several:
        claims.finish(one, completed(one.claim))
    first, second, third = offered = claims.offer(200.0)
    claims.postpone([first], 200.0)
    claims.postpone([second], 200.9)
    claims.stored(offered[2:])
    assert (len(claims), claims.everything(), claims.again) == (2, several[:2], 200.0 + POSTPONED_FOR)
    assert claims.offer(200.99) == []
    assert claims.offer(claims.again) == [first, second]
    assert claims.again == NEVER
    claims.stored([first])
    claims.postpone([second], 201.0)
    claims.drop(second.held.key)
    assert (len(claims), claims.offer(300.0), third.held in claims.everything()) == (0, [], False)


def test_a_claim_that_is_lost_is_forgotten_wherever_it_stands():
    claims, running, finished = Claims(), held(1), held(2)
    claims.begin([running, finished])
    claims.finish(finished, completed(finished.claim))
    for one in (running, finished, held(3)):
        claims.drop(one.key)
    assert len(claims) == 0


def test_results_that_are_too_much_for_one_statement_are_offered_in_turns():
    """Postgres takes no object of 256 MB; it would say so as of a database that is out of reach."""
    claims, several = Claims(), [held(number) for number in range(4)]
    claims.begin(several)
    for one, size in zip(several, (20, 20, 40, 1), strict=True):
        claims.finish(one, completed(one.claim, "x" * size * 1024 * 1024))
    turns = []
    while offered := claims.offer():
        claims.stored(offered)
        turns.append([finished.held.claim.id for finished in offered])
    ids = [one.claim.id for one in several]
    assert turns == [ids[:1], ids[1:2], ids[2:3], ids[3:]]


def test_the_nearest_deadline_is_the_earliest_of_all():
    claims = Claims()
    claims.begin([held(1, limit=30), held(2, limit=5), held(3, limit=NEVER)])
    assert claims.nearest == 105.0


def test_the_time_limit_of_a_claim_that_waited_in_line_counts_from_its_beginning():
    claims, one = Claims(), held(limit=10)
    one.deadline = NEVER
    claims.begin([one])
    claims.begin_anew(one, 500.0)
    assert (one.since, one.deadline, claims.nearest) == (500.0, 510.0, 510.0)


# Options


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("processes", -1),
        ("processes", 257),
        ("concurrency", 0),
        ("max_jobs", 0),
        ("max_jobs_per_process", 0),
        ("max_rss", 1),
        ("poll_interval", 0.0),
        ("lease", 1.0),
        ("lease", 7200.0),
        ("shutdown_grace", -1.0),
        ("stop_grace", -0.5),
        ("poll_interval", float("nan")),
        ("lease", float("nan")),
        ("shutdown_grace", float("inf")),
    ],
)
def test_an_option_out_of_its_bounds_is_refused_by_its_name_on_the_command_line(name, value):
    with pytest.raises(InvalidOption, match=f"--{name.replace('_', '-')} must be .*got {value}"):
        WorkerOptions(**{name: value})


def test_the_defaults_suit_a_small_host():
    options = WorkerOptions()
    assert (options.processes, options.concurrency, options.lease, options.shutdown_grace) == (1, 10, 60.0, 30.0)


def test_every_reason_to_stop_reads_as_the_end_of_a_sentence():
    assert all(str(reason).startswith(("its ", "it ")) for reason in StopReason)


# Attempts


def test_an_attempt_whose_time_is_up_before_its_turn_came_is_given_back_unrun():
    assignment = Assignment("J" * 26, "unheard_of", "q", "{}", 1, 1, 1, 1, "me", None, None, None, None)
    running = Running(assignment, lambda *_: None)
    running.reason = StopReason.TIME_LIMIT
    assert settle_failure(running, Interrupted(StopReason.TIME_LIMIT)).settlement.move is Move.RELEASE
    running.is_at_work = True
    assert settle_failure(running, Interrupted(StopReason.TIME_LIMIT)).settlement.move is Move.BURY


def test_a_woken_worker_looks_at_once_and_twice_more(monkeypatch):
    """Jobs whose wake-up a producer held back are found 5 and 10 milliseconds later."""
    clock = VirtualClock()
    monkeypatch.setattr(loop, "SYSTEM", clock)
    looks = []

    def look(_cycle):
        looks.append(clock.monotonic())
        return Cycle()

    context = SimpleNamespace(
        stopping=False,
        request=None,
        options=WorkerOptions(poll_interval=1.0),
        executors=SimpleNamespace(free=1, tell_settled=lambda _stored: None),
        claims=SimpleNamespace(finished=[], again=NEVER, offer=lambda _now: [], stored=lambda _offered: None),
        database=SimpleNamespace(is_out=lambda _now: False, ask=look),
        events=SimpleNamespace(is_heard=False),
        metrics=SimpleNamespace(settled=lambda _stored: None),
        awaited=set(),
    )
    worker = loop.Loop(context, frozenset(), lambda: None)
    worker.act()
    clock.advance(0.3)
    worker.woken()
    for _ in range(500):
        worker.act()
        clock.advance(0.001)
    assert looks == pytest.approx([0.0, 0.3, 0.3 + PAUSE, 0.3 + 2 * PAUSE], abs=0.0025)
