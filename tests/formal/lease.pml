/* Claim, lease, sweep and fence of one job, for Spin. test_lease.py beside it has every order of steps tried.

A step is a statement of jobqueue/backends/*_statements.py, or a transaction that locks the job's row first:

  step                  stands for                         what it asks of the row
  claim                 READY and TAKE; FIRST and TAKE     queued; a locked one is skipped
  extend                EXTEND                             HELD; a locked one is skipped
  settle                COMPLETE or SETTLE                 HELD; waits for the lock
  find, end             RAN_OUT, SETTLE and the commit     its lease has ended, and locks it; HELD by what was found
  cancel, retry, purge  those of backends/operating.py     its status; waits for the lock

HELD is sql.py's: fence, owner and status. No holder's statement looks at the lease: one whose lease has ended may still
settle or extend it, until a sweep has come. Only the fence judges.

A worker has a name and two slots, and both may believe to hold the same job: its worker claims again what a sweep took
from it. A slot stalls by having no turn, and every length of that is tried; it crashes by forgetting its claim. An
answer may be lost on its way: the slot does not know what it stored, and offers it again.

Time is what is left of a lease, in ticks; zero is `lease_until < now`. It is the database's clock. A worker's own clock
only makes it give up sooner, and SQLite's second look only makes a sweep come later, so neither is here. Bounded is the
number of claims; time, stalls and an operator's patience are not.

Promised after every step:

  An attempt is live from its claim until its settlement is stored, its slot crashes, or the last lease that it was
  granted has ended. At most one is live, and the row is in progress under its claim.
  A settlement is stored only of the newest claim, and only once.
  A job that is completed, failed or given up is changed by an operator alone.
  The fence of each claim is higher than any before.

Each guard that a -D takes away breaks a promise. */

#define LEASE 3
#define CLAIMS 6
#define MAX_RETRIES 2
#define SLOTS 4
#define OWNER(slot) (1 + slot / 2) /* of two workers, with two slots each; 0 is NULL */

mtype = { queued, in_progress, completed, failed, dead_letter, purged };

typedef Row {
    mtype status = queued;
    byte owner, fence, attempts;
    byte left; /* of its lease */
    bool stop_wanted; /* cancel_requested_at */
    bool locked; /* by a sweep's transaction */
}

typedef Attempt {
    bool known; /* the slot has a claim, as far as it knows */
    byte fence;
    byte left; /* of the lease that it was granted last */
    byte number; /* which claim of the job it is, whatever the fence says */
}

Row row;
Attempt slots[SLOTS];
byte claims; /* so far; also the newest claim's number */
byte highest; /* fence so far */
bool settled; /* a settlement of the newest claim was stored */

/* How a promise is broken: Spin tells it by these names. */
bool two_are_live, live_without_the_row, stale_settlement_stored, settled_job_changed, fence_did_not_grow;

#define HELD(f, o) (row.fence == f && row.owner == o && row.status == in_progress)
#define WITHOUT_FENCE(f, o) (row.owner == o && row.status == in_progress)

#if defined(NO_FENCE_IN_SETTLE)
#define SETTLES(f, o) WITHOUT_FENCE(f, o)
#elif defined(NO_HOLDER_IN_SETTLE)
#define SETTLES(f, o) (row.fence == f && row.status != purged)
#else
#define SETTLES(f, o) HELD(f, o)
#endif

#ifdef NO_FENCE_IN_EXTEND
#define EXTENDS(f, o) WITHOUT_FENCE(f, o)
#else
#define EXTENDS(f, o) HELD(f, o)
#endif

#ifdef NO_EXPIRY_IN_SWEEP
#define RAN_OUT (row.status == in_progress)
#else
#define RAN_OUT (row.status == in_progress && row.left == 0)
#endif

#define LIVE(slot) (slots[slot].known && slots[slot].left > 0)
#define WITHOUT_ROW(slot) (LIVE(slot) && (row.status != in_progress || slots[slot].number != claims))

inline look() {
    two_are_live = LIVE(0) + LIVE(1) + LIVE(2) + LIVE(3) > 1;
    live_without_the_row = WITHOUT_ROW(0) || WITHOUT_ROW(1) || WITHOUT_ROW(2) || WITHOUT_ROW(3);
    assert(!two_are_live);
    assert(!live_without_the_row)
}

inline take(me) {
    row.attempts++;
#ifdef FENCE_IS_ATTEMPTS
    row.fence = row.attempts;
#else
    row.fence++;
#endif
    row.status = in_progress;
    row.owner = OWNER(me);
    row.left = LEASE;
    row.stop_wanted = false;
    claims++;
    settled = false;
    slots[me].known = true;
    slots[me].fence = row.fence;
    slots[me].left = LEASE;
    slots[me].number = claims;
    fence_did_not_grow = row.fence <= highest;
    highest = (row.fence > highest -> row.fence : highest);
    assert(!fence_did_not_grow)
}

/* An offer passed the guard: see whether it should have. */
inline accept(offered_number) {
    stale_settlement_stored = offered_number != claims || settled;
    settled_job_changed = row.status != in_progress;
    assert(!settled_job_changed);
    assert(!stale_settlement_stored);
    settled = true;
    row.owner = 0;
    row.left = 0
}

/* SETTLE's CASE: where an operator asked the job to stop, it does not go back. */
inline go_back() {
    row.status = (row.stop_wanted -> failed : queued)
}

/* MOVES of states.py that a sweep makes, and that a holder may make too. */
inline give_up_or_go_back() {
    if
    :: row.status = dead_letter /* bury */
    :: row.attempts < MAX_RETRIES -> go_back() /* retry */
    :: row.attempts > 0 -> row.attempts--; go_back() /* quarantine, release, snooze: the attempt was free */
    fi
}

inline forget(me) {
    slots[me].known = false;
    slots[me].fence = 0;
    slots[me].left = 0;
    slots[me].number = 0
}

/* An answer comes, or is lost on its way. */
inline hear_that_it_is_over(me) {
    if
    :: forget(me)
    :: true
    fi
}

active [SLOTS] proctype slot() {
end:
    do
    :: d_step { row.status == queued && !row.locked && !slots[_pid].known && claims < CLAIMS -> /* claim */
            take(_pid); look() }

    :: atomic { slots[_pid].known && !row.locked -> /* extend */
            if
            :: EXTENDS(slots[_pid].fence, OWNER(_pid)) -> row.left = LEASE; slots[_pid].left = LEASE
            :: else -> hear_that_it_is_over(_pid)
            fi;
            look() }

    :: atomic { slots[_pid].known && !row.locked -> /* settle */
            if
            :: SETTLES(slots[_pid].fence, OWNER(_pid)) ->
                accept(slots[_pid].number);
                slots[_pid].left = 0;
                if
                :: row.status = completed
                :: row.status = failed /* the handler's Cancel */
                :: give_up_or_go_back()
                fi
            :: else
            fi;
            hear_that_it_is_over(_pid);
            look() }

    :: d_step { slots[_pid].known -> forget(_pid) } /* crash */
    od
}

active proctype sweeper() {
    byte found_fence, found_owner, found_number;
end:
    do
    :: d_step { RAN_OUT && !row.locked -> /* find */
            found_fence = row.fence; found_owner = row.owner; found_number = claims;
#ifndef NO_LOCK_IN_SWEEP
            row.locked = true
#endif
        };
        if
        :: atomic { SETTLES(found_fence, found_owner) -> /* end */
                accept(found_number); give_up_or_go_back(); row.locked = false; look() }
        :: d_step { !SETTLES(found_fence, found_owner) -> row.locked = false }
        :: row.locked = false /* it crashes: the transaction is rolled back */
        fi;
        d_step { found_fence = 0; found_owner = 0; found_number = 0 }
    od
}

active proctype operator() {
end:
    do
    :: d_step { row.status == queued && !row.locked -> row.status = failed } /* cancel */
    :: d_step { row.status == in_progress && !row.locked -> row.stop_wanted = true } /* cancel */
    :: d_step { (row.status == failed || row.status == dead_letter) && !row.locked -> /* retry */
            row.status = queued; row.attempts = 0; row.stop_wanted = false }
    :: atomic { row.status != in_progress && row.status != purged && !row.locked -> /* purge */
            row.status = purged; row.owner = 0; look() }
    od
}

#define LESS(left) left = (left > 0 -> left - 1 : 0)

active proctype clock() {
end:
    do
    :: d_step { row.left > 0 || slots[0].left > 0 || slots[1].left > 0 || slots[2].left > 0 || slots[3].left > 0 ->
            LESS(row.left); LESS(slots[0].left); LESS(slots[1].left); LESS(slots[2].left); LESS(slots[3].left) }
    od
}
