"""The ledger of the actors' results and the database's changes, and the promises that both must keep."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime

from jobqueue.policy.limits.limits import LimitBook
from jobqueue.policy.limits.uses import accounts_of
from jobqueue.records import Claim, Ending, JobRecord, Limit
from jobqueue.states import MOVES, JobStatus, Move
from tests.simulation.changes import Change

QUEUED, RUNNING = JobStatus.QUEUED.value, JobStatus.IN_PROGRESS.value
SETTLED = {JobStatus.COMPLETED.value, JobStatus.FAILED.value, JobStatus.DEAD_LETTER.value}
ACTIVE = {QUEUED, RUNNING}
Key = tuple[str, int]


@dataclass
class Ledger:
    """Keeps account; raises AssertionError at the first broken promise."""

    accepted: set[str] = field(default_factory=set)
    clock_went_to: datetime | None = None  # the latest moment, where the clock may go back
    withdrawn: set[str] = field(default_factory=set)
    live: dict[tuple[str, str, int], float] = field(default_factory=dict)
    offers: dict[tuple[str, str, int], set[Move]] = field(default_factory=lambda: defaultdict(set))
    answers: dict[tuple[str, str, int], bool] = field(default_factory=dict)
    uncertain: set[tuple[str, str, int]] = field(default_factory=set)
    rows: dict[str, dict] = field(default_factory=dict)
    born: set[str] = field(default_factory=set)
    purged: set[str] = field(default_factory=set)
    ends: dict[Key, Change] = field(default_factory=dict)
    claims: dict[Key, str] = field(default_factory=dict)
    runs: Counter = field(default_factory=Counter)
    limits: tuple[Limit, ...] = ()
    used_up: bool = False

    # What the actors are told

    def claimed(self, claim: Claim, until: float) -> None:
        """A worker was told that it holds a claim, by its own clock until then."""
        self.live[(claim.owner, claim.id, claim.fence)] = until

    def lost(self, claim: Claim) -> None:
        """A worker was told that it does not hold a claim any more."""
        self.live.pop((claim.owner, claim.id, claim.fence), None)

    def offered(self, owner: str, key: Key, move: Move) -> None:
        """A worker is about to offer a settlement: from here on it counts on nothing."""
        self.offers[(owner, *key)].add(move)
        self.live.pop((owner, *key), None)

    def answered(self, owner: str, key: Key, *, stored: bool) -> None:
        if (owner, *key) not in self.uncertain:
            self.answers[(owner, *key)] = stored

    def in_doubt(self, owner: str, key: Key) -> None:
        """No answer came; a later refusal may mean that the first offer was stored."""
        self.uncertain.add((owner, *key))

    def forgotten(self, owner: str) -> None:
        """A worker's process is gone, and so its claims run no more."""
        for key in [key for key in self.live if key[0] == owner]:
            del self.live[key]

    # What the database noted

    def note(self, change: Change) -> None:
        """Look at one committed change."""
        before, after = change.before, change.after
        if before is not None:
            assert self.rows.get(change.id) == before, f"{change}: not what was stored before"
        if after is None:
            self._note_purge(change)
        elif before is None:
            assert (after["status"], after["fence"], after["attempts"]) == (QUEUED, 0, 0), change
            assert change.id not in self.withdrawn, f"{change}: its transaction was rolled back"
            self.born.add(change.id)
        else:
            self._note_update(change)
        if after is None:
            del self.rows[change.id]
        else:
            assert (after["lease_owner"] is None) == (after["status"] != RUNNING), change
            self.rows[change.id] = after

    def _note_purge(self, change: Change) -> None:
        assert change.actor == "operator", f"{change}: deleted by no operator"
        assert change.before["status"] != RUNNING, f"{change}: a running job was purged"
        self.purged.add(change.id)

    def _note_update(self, change: Change) -> None:
        step = change.before["status"], change.after["status"]
        if step == (QUEUED, RUNNING):
            self._note_claim(change)
            return
        assert change.after["fence"] == change.before["fence"], f"{change}: a fence without a claim"
        if step == (RUNNING, RUNNING):
            self._note_held(change)
        elif step[0] == RUNNING:
            self._note_end(change)
        elif step[0] in SETTLED:
            assert change.actor == "operator", f"{change}: a settled job was changed by no operator"
            assert step[0] != JobStatus.COMPLETED, f"{change}: a completed job came back"
            assert step[1] == QUEUED, f"{change}: no move of the table"
            assert change.after["attempts"] == change.after["crash_count"] == 0, change
            self.runs[change.id] = 0
        else:
            self._note_never_run(change)

    def _note_claim(self, change: Change) -> None:
        before, after = change.before, change.after
        assert after["fence"] == before["fence"] + 1, f"{change}: the fence did not grow by one"
        assert after["attempts"] == before["attempts"] + 1 <= after["max_retries"], f"{change}: attempts count claims"
        assert before["scheduled_at"] <= after["updated_at"], f"{change}: claimed before it was due"
        assert before["expires_at"] is None or before["expires_at"] > after["updated_at"], f"{change}: came too late"
        assert after["lease_until"] > after["updated_at"], change
        assert after["cancel_requested_at"] is None, change
        assert after["lease_owner"].startswith(f"{change.actor}:"), change
        self.claims[(change.id, after["fence"])] = after["lease_owner"]
        self.runs[change.id] += 1
        assert self.runs[change.id] == after["attempts"], f"{change}: attempts do not count the claims"

    def _note_held(self, change: Change) -> None:
        before, after = change.before, change.after
        changed = {name for name in after if after[name] != before[name]}
        if change.actor == "operator":
            assert changed <= {"cancel_requested_at", "updated_at"}, change
        else:
            assert before["lease_owner"].startswith(f"{change.actor}:"), f"{change}: extended by a stranger"
            assert changed <= {"lease_until", "updated_at"}, change

    def _note_end(self, change: Change) -> None:
        before, after = change.before, change.after
        key = (change.id, before["fence"])
        assert key not in self.ends, f"{change}: a claim was settled twice"
        moves = self.offers.get((before["lease_owner"], *key), set())
        mine = before["lease_owner"].startswith(f"{change.actor}:") and moves
        ran_out = self._ran_out(change)
        assert mine or ran_out, f"{change}: neither offered by the holder nor run out"
        if after["status"] == QUEUED:
            assert before["cancel_requested_at"] is None, f"{change}: went back though it was to stop"
        free = before["attempts"] - after["attempts"]
        moves = moves | ({Move.RETRY, Move.QUARANTINE, Move.BURY} if ran_out else set())
        assert free in {int(MOVES[move].refunds) for move in moves}, f"{change}: no such move was offered"
        self.runs[change.id] -= free
        self.ends[key] = change

    def _ran_out(self, change: Change) -> bool:
        seen = max(change.after["updated_at"], self.clock_went_to or change.after["updated_at"])
        return change.before["lease_until"] < seen

    def _note_never_run(self, change: Change) -> None:
        assert change.after["status"] == JobStatus.FAILED, f"{change}: no move of the table"
        expires = change.before["expires_at"]
        late = expires is not None and expires <= change.after["updated_at"]
        assert late or change.actor == "operator", f"{change}: ended by nobody's wish"

    # What both come to

    def met(self) -> set[str]:
        """What of the dangers there are this ledger has seen."""
        ends = [end.after["status"] for end in self.ends.values()]
        return {f"an attempt that ended as {status}" for status in ends} | {
            danger
            for danger, seen in {
                "a settlement that was refused": not all(self.answers.values()),
                "an answer that was lost": bool(self.uncertain),
                "a lease that ran out": any(self._ran_out(end) for end in self.ends.values()),
                "a purge": bool(self.purged),
                "a limit that was used up": self.used_up,
                "a job that ran again": any(fence > 2 for _, fence in self.claims),
            }.items()
            if seen
        }

    def check_live(self, moment: float) -> None:
        """At most one claim is live, and the row is in progress under it, whatever the others do."""
        live = [key for key, until in self.live.items() if until > moment]
        assert len({job_id for _, job_id, _ in live}) == len(live), f"two live claims of a job: {sorted(live)}"
        for owner, job_id, fence in live:
            row = self.rows.get(job_id)
            held = row and (row["status"], row["fence"], row["lease_owner"]) == (RUNNING, fence, owner)
            assert held, f"{owner} lost its live claim {fence} of {job_id}: {row}"

    def check_limits(self) -> None:
        """No limit has more running jobs than its number."""
        if not self.limits:
            return
        book, running = LimitBook(self.limits), Counter[tuple[str, str]]()
        for row in self.rows.values():
            if row["status"] == RUNNING:
                running.update(list(accounts_of(book, [(row["queue"], row["type"], row["concurrency_key"])])))
        numbers = {limit.place: limit.number for limit in self.limits}
        for (place, value), count in running.items():
            assert count <= numbers[place], f"{count} jobs run under the limit {place} {value}"
            self.used_up |= count == numbers[place]

    def check_answers(self) -> None:
        """What a worker was told of its settlement is what was stored."""
        for (owner, job_id, fence), stored in self.answers.items():
            end = self.ends.get((job_id, fence))
            mine = end is not None and end.before["lease_owner"] == owner and end.actor == owner.split(":")[0]
            if stored:
                assert mine, f"{owner} was told that its settlement of {job_id}, {fence} was stored: {end}"
            elif mine:
                # It swept its own claim before it came to offer it.
                assert self._ran_out(end), f"{owner}: refused, but stored: {end}"

    def check_end(self, job_id: str, job: JobRecord | None) -> None:
        """An accepted job has come to one end, with the whole of its history."""
        assert job_id in self.born, f"{job_id} was accepted, and was never stored"
        if job is None:
            assert job_id in self.purged, f"{job_id} was lost"
            return
        assert job.status.value in SETTLED, f"{job_id} came to no end: {job}"
        ended = {fence: end for (one, fence), end in self.ends.items() if one == job_id}
        assert set(ended) == {fence for one, fence in self.claims if one == job_id}, f"{job_id}: a claim without an end"
        unlucky = [fence for fence, end in ended.items() if end.after["status"] != JobStatus.COMPLETED]
        assert [past.fence for past in job.history] == sorted(unlucky), f"{job_id}: history is not complete"
        for past in job.history:
            assert past.owner == self.claims[(job_id, past.fence)], f"{job_id}: history names another owner"
            assert past.attempt == ended[past.fence].before["attempts"], f"{job_id}: history counts otherwise"
            ran_out = self._ran_out(ended[past.fence])
            assert past.ending is not Ending.LEASE_LOST or ran_out, f"{job_id}: a lease ended early"
