/* A concurrency limit of 1, under which several workers claim, for Spin. test_limit.py beside it has every order of
   steps tried.

  step        stands for                                        what it sees
  begin       Settlements.store, in the claim's transaction     its own claim
  lock        LimitedClaims.lock                                who holds the lock
  count       LimitedClaims.running                             what is committed, and what it settled itself
  take        TAKE                                              queued jobs that no other transaction has taken
  commit      COMMIT                                            -
  sweep       StoredLeases.sweep                                claims whose worker was killed

A worker may be killed between any two steps: its transaction is rolled back, its lock is free, its claim stays until
the sweep. An operator retries what has ended, so that histories don't end.

Promised:

  At most one job has a lease, and at most one is at work.
  If none has a lease, and no transaction is open, the next claim isn't kept from taking a job.

Each -D makes a twin that breaks a promise: it counts before the lock, it has no lock, or it keeps a counter. */

#define JOBS 3
#define WORKERS 3
#define KILLS 3

#define QUEUED 0
#define RUNNING 1
#define DONE 2

byte status[JOBS];
byte holder[JOBS]; /* of the lease: a worker's number, from 1 on */
byte settled_by[JOBS]; /* in a transaction that is still open */
byte taken_by[JOBS];
bool is_orphan[JOBS]; /* its worker was killed: its lease ends */
byte lock; /* the worker that has it */
byte open_transactions, kills;
byte counter; /* of the twin that keeps one */

bool over_limit, at_work_over_limit, leaked;

#define LEASES ((status[0] == RUNNING) + (status[1] == RUNNING) + (status[2] == RUNNING))
#define AT_WORK(j) (status[j] == RUNNING && !is_orphan[j])
#define OTHERS(j) (status[j] == RUNNING && settled_by[j] != me)

inline count_running() {
#ifdef COUNTER
    counted = counter - (settled_by[0] == me) - (settled_by[1] == me) - (settled_by[2] == me);
    leaked = counted > 0 && LEASES == 0 && open_transactions == 1;
    assert(!leaked)
#else
    counted = OTHERS(0) + OTHERS(1) + OTHERS(2)
#endif
}

inline try_lock() {
#ifdef NO_LOCK
    stage = stage + 1
#else
    if
    :: lock == 0 -> lock = me; stage = stage + 1
    :: else -> stage = 4 /* it leaves these jobs alone for a moment */
    fi
#endif
}

inline end_transaction() {
    if
    :: lock == me -> lock = 0
    :: else
    fi;
    open_transactions--;
    stage = 0; counted = 0
}

active [WORKERS] proctype worker() {
    byte me, stage, counted, mine, j; /* mine: the number of the job at work here, from 1 on */
    me = _pid + 1;
end:
    do
    :: d_step { stage == 0 -> /* begin */
            open_transactions++;
            if
            :: mine > 0 && holder[mine - 1] == me -> settled_by[mine - 1] = me
            :: else
            fi;
            stage = 1 }

#ifdef COUNT_BEFORE_LOCK
    :: d_step { stage == 1 -> count_running(); stage = 2 }
    :: d_step { stage == 2 -> try_lock() }
#else
    :: d_step { stage == 1 -> try_lock() }
    :: d_step { stage == 2 -> count_running(); stage = 3 }
#endif

    :: atomic { stage == 3 -> /* take */
            if
            :: counted < 1 && status[0] == QUEUED && taken_by[0] == 0 -> taken_by[0] = me
            :: counted < 1 && status[1] == QUEUED && taken_by[1] == 0 -> taken_by[1] = me
            :: counted < 1 && status[2] == QUEUED && taken_by[2] == 0 -> taken_by[2] = me
            :: true
            fi;
            stage = 4 }

    :: d_step { stage == 4 -> /* commit */
            mine = 0; j = 0;
            do
            :: j < JOBS ->
                if
                :: settled_by[j] == me -> settled_by[j] = 0; status[j] = DONE; holder[j] = 0
#ifdef COUNTER
                    ; counter--
#endif
                :: taken_by[j] == me -> taken_by[j] = 0; status[j] = RUNNING; holder[j] = me; mine = j + 1
#ifdef COUNTER
                    ; counter++
#endif
                :: else
                fi;
                j++
            :: else -> break
            od;
            j = 0;
            end_transaction();
            over_limit = LEASES > 1;
            assert(!over_limit);
            at_work_over_limit = AT_WORK(0) + AT_WORK(1) + AT_WORK(2) > 1;
            assert(!at_work_over_limit) }

    :: d_step { kills < KILLS && (stage > 0 || mine > 0) -> /* it is killed, and another one starts */
            kills++; j = 0;
            do
            :: j < JOBS ->
                if
                :: settled_by[j] == me -> settled_by[j] = 0
                :: else
                fi;
                if
                :: taken_by[j] == me -> taken_by[j] = 0
                :: else
                fi;
                if
                :: holder[j] == me -> is_orphan[j] = true; holder[j] = 0
                :: else
                fi;
                j++
            :: else -> break
            od;
            j = 0; mine = 0;
            if
            :: stage > 0 -> end_transaction()
            :: else
            fi }
    od
}

active proctype sweeper() {
    byte j;
end:
    do
    :: d_step { is_orphan[0] || is_orphan[1] || is_orphan[2] ->
            j = 0;
            do
            :: j < JOBS ->
                if
                :: is_orphan[j] -> is_orphan[j] = false; status[j] = QUEUED
                :: else
                fi;
                j++
            :: else -> break
            od;
            j = 0 }
    od
}

active proctype operator() {
    byte j;
end:
    do
    :: d_step { status[0] == DONE && status[1] == DONE && status[2] == DONE ->
            status[0] = QUEUED; status[1] = QUEUED; status[2] = QUEUED }
    od
}
