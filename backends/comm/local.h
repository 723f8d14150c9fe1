/* Declarations shared by the files of the local engine; local.c describes how it works. */
#ifndef RILL_COMM_LOCAL_H
#define RILL_COMM_LOCAL_H

#include "backends/comm/engine.h"

enum local_state {
  LOCAL_WAITS, /* the stream has not reached it */
  LOCAL_CAME,  /* the stream has reached it; counted in `came` of the meeting */
  LOCAL_OUT    /* taken by the engine's thread */
};

struct local_work {
  struct local_work *next, *next_of_part;
  struct comm_op op;
  struct comm_part *part;
  struct local_meeting *meeting;
  uint32_t index; /* rank's position in `works` of the meeting */
  enum local_state state;
  uint64_t since; /* when its stream reached it */
};

/* Identifies a meeting: all ranks for a collective operation, or the sending rank `from` and the receiving rank `to`.
 */
struct local_key {
  uint64_t number;   /* counted among operations of the same ranks */
  uint32_t from, to; /* LOCAL_ALL: a collective operation */
};
#define LOCAL_ALL UINT32_MAX

/* One operation and the ranks that take part.  Invariant: `submitted` entries of `works` are not NULL, and the streams
 * of `came` of them have reached the operation.  A meeting is in the table until both counts equal `size`. */
struct local_meeting {
  struct local_meeting *next;
  struct local_clique *clique;
  struct local_key key;
  uint32_t size, submitted, came;
  struct local_work *works[]; /* by rank; for a message the send, then the receive */
};

enum { LOCAL_BUCKETS = 64 };

struct local_member {
  struct local_clique *clique;
  struct comm *comm;
  uint32_t outstanding; /* submitted, not ended */
  uint64_t collectives;
  uint64_t counts[]; /* messages so far: to each rank, then from each rank */
};

/* A rank that waits in rill_comm_split. */
struct local_split {
  struct comm *child; /* NULL if the rank does not wait */
  struct local_clique *clique;
  struct local_member *member;
  uint32_t color, key;
};

struct local_clique {
  struct local_clique *next;
  uint64_t id;
  uint32_t ranks, present; /* present: members that have joined and were not destroyed */
  bool complete;           /* all ranks have joined */
  bool dead;               /* broken, for the reason `why`; no operation starts any more */
  struct comm_error why;
  struct local_meeting *table[LOCAL_BUCKETS];
  struct local_split *splits; /* by rank; NULL before the first split */
  uint32_t splitting;
  struct local_member *members[];
};

/* Moves the data of a meeting that all ranks have reached (local_move.c). */
void rill__comm_local_move(struct local_work *const *works, uint32_t size);

#endif
