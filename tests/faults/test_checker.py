"""Tests of the accounting: it finds each broken promise in an otherwise correct history."""

from __future__ import annotations

import pytest

from benchmarks.faults.checker import Row, check
from benchmarks.faults.ledger import Ledger, What
from tests.faults.histories import History

SEEDS = range(60)
BROKEN = ("lost", "given_up", "ghosts", "stale", "claimed_twice", "illegal", "overlaps")


def accounted(history):
    return check(history.records, history.rows.values())


def broken(account):
    """Name the promises that an account calls broken, with the jobs."""
    found = {name: getattr(account, name) for name in BROKEN}
    return {name: [getattr(one, "job", one) for one in jobs] for name, jobs in found.items() if jobs}


# Each spoils one job, and returns which, and what has to be found.


def row_is_gone(history):
    del history.rows[job := history.pick()]
    return job, {"lost"}


def row_never_ends(history):
    history.change(job := history.pick(), status=history.rng.choice(["queued", "in_progress"]))
    return job, {"lost"}


def completed_by_nobody(history):
    history.without(job := history.pick(), What.START, What.SEEN, What.END, What.BROKEN)
    return job, {"lost", "stale"}


def completed_without_an_effect(history):
    history.without(job := history.pick(), What.END)
    return job, {"lost", "stale"}


def given_up(history):
    history.change(job := history.pick(), status="dead_letter", told_by=None)
    return job, {"given_up"}


def stored_by_a_former_claim(history):
    job = history.pick(runs=2)
    first = history.runs(job)[0]
    history.note(What.END, first.at + 0.9, job, 1, first.boot)
    history.change(job, told_by=1)
    return job, {"stale"}


def stored_after_it_had_failed(history):
    job = history.pick()
    history.change(job, failed=frozenset({history.rows[job].fence}))
    return job, {"stale"}


def refused_and_there(history):
    job = history.pick()
    history.without(job, What.ACCEPTED)
    history.note(What.REFUSED, 0.0, job)
    return job, {"ghosts"}


def there_and_never_enqueued(history):
    history.rows["stranger"] = Row("stranger", "failed", 0)
    return "stranger", {"ghosts"}


def run_and_never_enqueued(history):
    history.note(What.START, 1.0, "stranger", 1, "boot")
    return "stranger", {"ghosts"}


def one_claim_for_two(history):
    start = history.runs(job := history.pick())[-1]
    history.note(What.START, start.at + 5, job, start.fence, "another boot")
    return job, {"claimed_twice"}


def one_claim_begun_twice_by_one_process(history):
    start = history.runs(job := history.pick())[-1]
    history.note(What.START, start.at + 5, job, start.fence, start.boot)
    history.note(What.END, start.at + 6, job, start.fence, start.boot)
    return job, {"claimed_twice"}


def fence_that_went_back(history):
    job = history.pick()
    last = history.runs(job)[-1]
    history.note(What.START, last.at + 5, job, last.fence + 1, "a later boot")
    return job, {"illegal"}


def held_after_its_end(history):
    history.change(job := history.pick(), owner="somebody")
    return job, {"illegal"}


def seen_after_the_next_began(history):
    job = history.pick(runs=2)
    first, second = history.runs(job)[:2]
    history.note(What.SEEN, second.at + 0.25, job, first.fence, first.boot)
    return job, {"overlaps"}


SPOILED = (
    row_is_gone,
    row_never_ends,
    completed_by_nobody,
    completed_without_an_effect,
    given_up,
    stored_by_a_former_claim,
    stored_after_it_had_failed,
    refused_and_there,
    there_and_never_enqueued,
    run_and_never_enqueued,
    one_claim_for_two,
    one_claim_begun_twice_by_one_process,
    fence_that_went_back,
    held_after_its_end,
    seen_after_the_next_began,
)


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_found_where_every_promise_was_kept(seed):
    history = History.sound(seed)
    account = accounted(history)
    assert broken(account) == {}
    assert list(account.violations()) == []
    assert account.accepted + account.refused + account.unknown == 40
    assert account.runs == sum(row.fence for row in history.rows.values())
    assert account.recovered == len(history.rows) - account.accepted


@pytest.mark.parametrize("spoil", SPOILED, ids=lambda spoil: spoil.__name__)
def test_a_broken_promise_is_found_and_nothing_else(spoil):
    for seed in SEEDS:
        history = History.sound(seed)
        job, promises = spoil(history)
        account = accounted(history)
        assert broken(account) == {name: [job] for name in promises}, f"seed {seed}"
        assert len(list(account.violations())) == len(promises)
        assert all(job in words for words in account.violations())


def test_an_overlap_is_measured_and_one_in_a_process_that_stood_still_is_told_apart():
    history = History.sound(7)
    job = history.pick(runs=2)
    first, second = history.runs(job)[:2]
    history.note(What.SEEN, second.at + 0.25, job, first.fence, first.boot)
    (overlap,) = accounted(history).overlaps
    assert (overlap.job, overlap.fences, overlap.seconds) == (job, (1, 2), pytest.approx(0.25))
    history.note(What.FROZEN, first.at + 0.1, boots=[first.boot])
    account = accounted(history)
    assert (broken(account), [one.seconds for one in account.stalled]) == ({}, [pytest.approx(0.25)])


def test_a_process_that_stood_still_at_another_time_is_no_excuse():
    history = History.sound(7)
    job = history.pick(runs=2)
    first, second = history.runs(job)[:2]
    history.note(What.SEEN, second.at + 0.25, job, first.fence, first.boot)
    history.note(What.FROZEN, first.at - 2, boots=[first.boot])
    history.note(What.THAWED, first.at - 1, boots=[first.boot])
    history.note(What.FROZEN, first.at + 0.1, boots=["another boot"])
    assert broken(accounted(history)) == {"overlaps": [job]}


def test_an_unknown_enqueue_may_be_there_or_not_but_once_there_it_has_to_be_run():
    history = History.sound(3)
    job = history.pick()
    history.without(job, What.ACCEPTED)
    before = accounted(history)
    assert broken(before) == {}
    history.change(job, status="queued")
    assert broken(accounted(history)) == {"lost": [job]}
    del history.rows[job]
    history.without(job, What.START, What.SEEN, What.END)
    after = accounted(history)
    assert (broken(after), after.recovered) == ({}, before.recovered - 1)


def test_times_of_recovery_are_counted_from_the_injury_and_from_the_end_of_the_fault():
    history = History(History.sound(1).rng, [], {})
    history.note(What.START, 1.0, "a", 1, "boot 1")
    history.note(What.INJECTED, 1.5, boots=["boot 1"])
    history.note(What.START, 4.0, "a", 2, "boot 2")
    history.note(What.SEEN, 4.5, "a", 2, "boot 2")
    history.note(What.HEALED, 5.0)
    history.note(What.START, 7.0, "a", 3, "boot 3")
    account = accounted(history)
    assert account.recoveries == (2.5, 2.5)
    assert account.resumptions == (2.0,)


def test_effects_that_happened_twice_are_counted_and_no_broken_promise():
    history = History.sound(5)
    job = history.pick()
    twice = set(accounted(history).duplicated)
    last = history.runs(job)[-1]
    history.note(What.START, last.at + 5, job, last.fence + 1, "a later boot")
    history.note(What.END, last.at + 6, job, last.fence + 1, "a later boot")
    history.change(job, fence=last.fence + 1, told_by=last.fence + 1)
    account = accounted(history)
    assert (set(account.duplicated), broken(account)) == (twice | {job}, {})


def test_what_is_noted_can_be_read_again(tmp_path):
    ledger = Ledger(tmp_path / "ledger")
    assert ledger.records() == []
    ledger.note(What.TRYING, "a", expects="completed")
    ledger.note(What.START, "a", 3)
    first, second = ledger.records()
    assert (first.what, first.job, first.facts) == (What.TRYING, "a", {"expects": "completed"})
    assert (second.what, second.fence, second.boot) == (What.START, 3, first.boot)
    assert first.at <= second.at
