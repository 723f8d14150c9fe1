/* The calls of a round, as stored by the files that determine the required order (mix_history.c). */
#ifndef RILL_TESTS_STRESS_MIX_HISTORY_H
#define RILL_TESTS_STRESS_MIX_HISTORY_H

#include "mix.h"

/* Work of a stream that completes at a tick: a host call ends, or an event is recorded. */
struct due {
  uint64_t submitted, done;
  const struct call *call;
};

/* The calls of a stream. */
struct line {
  struct call **waits; /* sorted by their end */
  uint64_t *joined;    /* clocks: the combined clock of the first 1, 2, 3, ... waits */
  struct due *dues;    /* sorted by the tick of submission; `done` is the maximum so far */
  size_t wait_count, due_count;
  uint64_t unsure_from; /* work submitted from this tick on may have failed */
};

struct calls {
  struct call **all;
  size_t count;
};

struct past {
  struct line *lines; /* indexed by stream */
  size_t line_count;
  struct calls *recordings; /* indexed by event; sorted by their start */
  struct calls everything, reads, cell_writes[MIX_CELLS];
};
extern struct past mix_past;

static inline uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t greatest(uint64_t a, uint64_t b) { return a > b ? a : b; }

static inline bool is_wait(const struct call *call) {
  return call->kind == CALL_WAIT || call->kind == CALL_WAIT_STREAM || call->kind == CALL_WAIT_CACHED;
}

/* Returns whether it is certain that nothing before the call has failed. */
static inline bool mix_is_sure(const struct call *call) {
  return call->object == NULL || call->end < mix_past.lines[call->object->number].unsure_from;
}

void mix_add_call(struct calls *calls, struct call *call);

/* ---- mix_failures.c ---- */

void mix_find_records(struct call *call);
void mix_find_failures(void);

/* Checks the result of an event query or a refused record. */
void mix_check_question(const struct call *call);
void mix_check_refusal(const struct call *call);

/* ---- mix_clocks.c ---- */

uint64_t *mix_new_clock(void);

/* Computes the clock of every call, and checks that earlier work was complete before later work. */
void mix_check_order(void);

#endif
