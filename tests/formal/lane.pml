/* A lane of an ordered queue, filled by transactions that commit late and emptied by several workers, for Spin.
test_lane.py beside it has every order of steps tried. The jobs are parallel, except one, the barrier.

  step             stands for                                what it needs
  lock             the producer's lock of the lane           no other producer holds it
  insert           the job's row, with the next position     the lock; nobody sees the row yet
  commit           the producer's commit, which ends both    nothing
  roll back        the same without the job                  nothing
  hold             the worker's lock of the lane             no other worker holds it
  read             LaneClaims.choose                         the lock; the first visible job that may start
  claim            the claim, and its commit                 the job is queued
  end              the settlement of a job                   it runs
  wait             a retry, which keeps its position         it runs
  be due           the retry's time has come                 it waits

A producer stalls before its commit, and a worker before its claim, by having no turn.

Promised:

  A barrier runs alone.
  When it is chosen, no job that was committed before it is due.
  When a job behind it is chosen, it is not due.

Each guard that a -D takes away breaks a promise. */

#define JOBS 3
#define BARRIER 1
#define WORKERS 2

#define NONE 255

#if defined(NO_LOCK_OF_PRODUCERS)
#define MAY_LOCK true
#else
#define MAY_LOCK (producer == NONE)
#endif

#if defined(NO_LOCK_OF_WORKERS)
#define MAY_HOLD true
#else
#define MAY_HOLD (holder == NONE)
#endif

mtype = { absent, inserted, queued, waiting, running, ended };
mtype state[JOBS] = absent;
byte position[JOBS];
byte committed_at[JOBS]; /* the order of commits: what is promised, and what no statement reads */
byte next_position = 1, commits;
byte producer = NONE, holder = NONE;
bool barrier_not_alone, barrier_too_early, behind_barrier;

proctype produce(byte job) {
    d_step { MAY_LOCK -> producer = job } /* lock */
    d_step { position[job] = next_position; next_position++; state[job] = inserted } /* insert */
    if
    :: d_step { true -> commits++; committed_at[job] = commits; state[job] = queued; producer = NONE } /* commit */
    :: d_step { true -> state[job] = absent; position[job] = 0; producer = NONE } /* roll back */
    fi
}

inline judge_order(job) {
    other = 0;
    do
    :: other < JOBS ->
        if
        :: other != job && state[other] == queued && committed_at[other] < committed_at[job] ->
            if
            :: job == BARRIER -> barrier_too_early = true
            :: other == BARRIER -> behind_barrier = true
            :: else
            fi
        :: else
        fi;
        other++
    :: else -> break
    od;
    other = 0;
    assert(!barrier_too_early);
    assert(!behind_barrier)
}

inline judge_company(job) {
    other = 0;
    do
    :: other < JOBS ->
        if
        :: other != job && state[other] == running && (job == BARRIER || other == BARRIER) -> barrier_not_alone = true
        :: else
        fi;
        other++
    :: else -> break
    od;
    other = 0;
    assert(!barrier_not_alone)
}

inline look(job) {
    may = state[job] == queued;
    other = 0;
    do
    :: other < JOBS ->
        if
        :: other == job
        :: other != job && state[other] == running && (job == BARRIER || other == BARRIER) -> may = false
#ifndef NO_LOOK_BEFORE_A_BARRIER
        :: other != job && state[other] == queued && position[other] < position[job] && job == BARRIER -> may = false
#endif
#ifndef NO_LOOK_AT_THE_BARRIER
        :: other != job && state[other] == queued && position[other] < position[job] && other == BARRIER -> may = false
#endif
        :: else
        fi;
        other++
    :: else -> break
    od;
    other = 0
}

active [WORKERS] proctype work() {
    byte job, chosen = NONE, other;
    bool may;
end:
    do
    :: d_step { chosen == NONE && MAY_HOLD -> holder = _pid } /* hold */
        if
        :: d_step { true -> job = 0; /* read */
                do
                :: job < JOBS && chosen == NONE ->
                    look(job);
                    if
                    :: may -> chosen = job
                    :: else -> job++
                    fi
                :: else -> break
                od;
                may = false; job = 0;
                if
                :: chosen != NONE -> judge_order(chosen)
                :: else
                fi }
            d_step { /* claim */
                if
                :: chosen != NONE && state[chosen] == queued -> judge_company(chosen); state[chosen] = running
                :: else
                fi;
                chosen = NONE; holder = NONE }
        :: d_step { true -> holder = NONE } /* it dies */
        fi
    od
}

active proctype settle() {
    byte ends;
end:
    do
    :: d_step { state[0] == running -> state[0] = ended }
    :: d_step { state[1] == running -> state[1] = ended }
    :: d_step { state[2] == running -> state[2] = ended }
    :: d_step { state[0] == running && ends < 2 -> ends++; state[0] = waiting } /* wait */
    :: d_step { state[1] == running && ends < 2 -> ends++; state[1] = waiting }
    :: d_step { state[0] == waiting -> state[0] = queued } /* be due */
    :: d_step { state[1] == waiting -> state[1] = queued }
    od
}

init {
    atomic { run produce(0); run produce(1); run produce(2) }
}
