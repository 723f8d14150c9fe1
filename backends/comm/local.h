/* Shared by the files of the local engine; local.c explains how the engine works. */
#ifndef RILL_COMM_LOCAL_H
#define RILL_COMM_LOCAL_H

#include "backends/comm/engine.h"

enum local_state {
  LOCAL_QUEUED,  /* its stream has not reached it */
  LOCAL_ARRIVED, /* its stream has reached it, and its match counts it in `arrived` */
  LOCAL_TAKEN    /* it belongs to the progress thread */
};

struct local_work {
  struct local_work *next, *next_of_part;
  struct comm_op op;
  struct comm_part *part;
  struct local_match *match; /* NULL while no match contains the work item */
  uint32_t index;            /* in match->works */
  enum local_state state;
  uint64_t since; /* time at which the stream reached it; valid from LOCAL_ARRIVED on */
};

/* Identifies a match within its clique. */
struct local_key {
  uint64_t number;   /* counts the collective operations, or the messages from `from` to `to`, from 0 */
  uint32_t from, to; /* ranks of a message; both are LOCAL_ALL for a collective operation */
};
#define LOCAL_ALL UINT32_MAX

/* Operations of different ranks that are executed together.
 *
 * Invariant: `submitted` elements of `works` are not NULL, and the streams of `arrived` of them have reached their
 * operation.  The match is in its clique's table as long as arrived < size. */
struct local_match {
  struct local_match *next;
  struct local_clique *clique;
  struct local_key key;
  uint32_t size, submitted, arrived;
  struct local_work *works[]; /* a collective operation: by rank; a message: the send, then the receive */
};

enum { LOCAL_BUCKETS = 64 };

struct local_member {
  struct local_clique *clique;
  struct comm *comm;
  uint32_t outstanding; /* operations that were submitted and have not finished */
  uint64_t collectives; /* collective operations that were submitted */
  uint64_t messages[];  /* messages that were submitted: sends to each rank, then receives from each rank */
};

/* A rank that waits in rill_comm_split. */
struct local_split {
  struct comm *child; /* NULL: the rank does not wait */
  struct local_clique *clique;
  struct local_member *member;
  uint32_t color, key;
};

struct local_clique {
  struct local_clique *next;
  uint64_t id;
  uint32_t ranks, present; /* present: members that have joined and have not been removed */
  bool complete;           /* all ranks have joined */
  bool dead;               /* failed with `why`; no further operations are matched */
  struct comm_error why;
  struct local_match *table[LOCAL_BUCKETS];
  struct local_split *splits; /* by rank; NULL until the first split */
  uint32_t splitting;         /* ranks that wait in rill_comm_split */
  struct local_member *members[];
};

/* The state of the engine.  parts.lock guards all of it, and all cliques. */
extern struct local_engine {
  struct comm_parts parts;
  struct local_clique *cliques;
  struct local_match *ready, **last_ready;    /* complete matches, for the progress thread */
  struct local_work *dropped, **last_dropped; /* work items of failed cliques, for the progress thread */
  uint64_t ids;                               /* number of ids created */
  uint64_t deadline; /* no operation that has arrived misses its deadline before this time; UINT64_MAX: none can */
  bool started, stop, stopped;
} rill__comm_local_engine;

static inline void local_lock(void) { pthread_mutex_lock(&rill__comm_local_engine.parts.lock); }
static inline void local_unlock(void) { pthread_mutex_unlock(&rill__comm_local_engine.parts.lock); }
static inline void local_wake(void) { pthread_cond_broadcast(&rill__comm_local_engine.parts.changed); }

static inline struct local_member *local_member_of(const struct comm *comm) { return comm->native; }
static inline struct local_clique *local_clique_of(const struct comm *comm) { return local_member_of(comm)->clique; }

/* Returns the time at which an operation that has arrived misses its deadline; UINT64_MAX if it never does. */
static inline uint64_t local_deadline_of(const struct local_work *work) {
  const uint64_t timeout = work->op.comm->timeout;
  return timeout == 0 || work->since > UINT64_MAX - timeout ? UINT64_MAX : work->since + timeout;
}
static inline void local_note_deadline(const struct local_work *work) {
  const uint64_t deadline = local_deadline_of(work);
  if (deadline < rill__comm_local_engine.deadline) rill__comm_local_engine.deadline = deadline;
}

/* local_match.c.  Except for `submit`, the lock must be held. */
rill_status rill__comm_local_submit(const struct comm_op *ops, size_t count);
/* Handles a part that was armed or reached; returns whether the progress thread has work or an earlier deadline. Called
 * under the lock of the parts. */
bool rill__comm_local_part_changed(struct comm_part *part);
/* Fails a clique, unless it has failed already. */
void rill__comm_local_fail(struct local_clique *clique, const struct comm_error *why);
/* Passes a work item of a failed clique, which no match contains any more, to the progress thread. */
void rill__comm_local_queue_drop(struct local_work *work);

/* local_join.c. */
rill_status rill__comm_local_make_id(uint8_t bytes[COMM_ID_BYTES]);
rill_status rill__comm_local_join(struct comm *const *comms, uint32_t count, const uint8_t bytes[COMM_ID_BYTES]);
rill_status rill__comm_local_split(struct comm *parent, uint32_t color, uint32_t key, struct comm *child);
/* The lock must be held. */
void rill__comm_local_remove_member(struct local_clique *clique, uint32_t rank);

/* Executes the operations of a complete match (local_move.c). */
void rill__comm_local_move(struct local_work *const *works, uint32_t size);

#endif
