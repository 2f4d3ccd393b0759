/* The slots of one schedule, fired by several workers, for Spin. test_slots.py beside it has every order of steps tried.

  step            stands for                                     what it asks of the row
  read            Schedules.due                                  nothing: it is not paused and has a due slot
  fire            Schedules.fire, one transaction                as it was read: last_slot_at and revision; not paused
  pause, resume   Schedules.change                               nothing; each raises the revision
  purge           retention                                      a job of the schedule

A worker stalls between read and fire by having no turn. It dies there by forgetting what it read. The missed slots are
all run; those of a pause are dropped.

Promised:

  A slot is run at most once, and not lost: last_slot_at passes only slots that were run or dropped.
  Nothing is run while the schedule is paused, and no slot that a pause has dropped.
  last_slot_at never goes back.

Each guard that a -D takes away breaks a promise. */

#define SLOTS 4
#define WORKERS 3
#define PAUSES 2

byte now; /* the newest slot that is due; slots are numbered from 1 */
byte last; /* last_slot_at */
byte revision;
bool paused;
bool has_job[SLOTS + 1]; /* the job of a slot is in the table: the unique index knows it */
byte runs[SLOTS + 1]; /* how often a slot was run */
bool dropped[SLOTS + 1];

bool run_twice, run_while_paused, dropped_slot_run, slot_lost, went_back;

#if defined(NO_LAST_SLOT_COMPARED)
#define IS_AS_READ (revision == seen_revision && !paused)
#define IS_FREE(slot) true
#elif defined(INDEX_INSTEAD_OF_LAST_SLOT)
#define IS_AS_READ (revision == seen_revision && !paused)
#define IS_FREE(slot) (!has_job[slot])
#elif defined(NO_PAUSE_COMPARED)
#define IS_AS_READ (last == seen_last)
#define IS_FREE(slot) (!has_job[slot])
#else
#define IS_AS_READ (last == seen_last && revision == seen_revision && !paused)
#define IS_FREE(slot) (!has_job[slot])
#endif

active [WORKERS] proctype worker() {
    byte seen_last, seen_now, seen_revision, slot;
    bool has_read;
end:
    do
    :: d_step { !has_read && !paused && last < now -> /* read */
            has_read = true; seen_last = last; seen_now = now; seen_revision = revision }

    :: d_step { has_read -> /* fire */
            if
            :: IS_AS_READ ->
                slot = seen_last + 1;
                do
                :: slot <= seen_now ->
                    if
                    :: IS_FREE(slot) ->
                        runs[slot]++;
                        has_job[slot] = true;
                        run_while_paused = paused;
                        dropped_slot_run = dropped[slot]
                    :: else
                    fi;
                    run_twice = runs[slot] > 1;
                    slot_lost = runs[slot] == 0;
                    assert(!run_twice);
                    assert(!run_while_paused);
                    assert(!dropped_slot_run);
                    assert(!slot_lost);
                    slot++
                :: else -> break
                od;
                went_back = seen_now < last;
                assert(!went_back);
                last = seen_now
            :: else
            fi;
            has_read = false; seen_last = 0; seen_now = 0; seen_revision = 0; slot = 0 }

    :: d_step { has_read -> has_read = false; seen_last = 0; seen_now = 0; seen_revision = 0 } /* it dies */
    od
}

active proctype operator() {
    byte slot;
end:
    do
    :: d_step { !paused && revision < 2 * PAUSES -> paused = true; revision++ } /* pause */
    :: d_step { paused -> /* resume */
            slot = last + 1;
            do
            :: slot <= now -> dropped[slot] = true; slot++
            :: else -> break
            od;
            slot = 0; last = now; paused = false; revision++ }
    od
}

active proctype retention() {
    byte slot;
end:
    do
    :: d_step { slot = 1;
            do
            :: slot <= SLOTS -> has_job[slot] = false; slot++
            :: else -> break
            od;
            slot = 0 }
    od
}

active proctype clock() {
end:
    do
    :: d_step { now < SLOTS -> now++ }
    od
}
