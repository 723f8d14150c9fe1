/* What the files of the local engine share; local.c tells how it works. */
#ifndef RILL_COMM_LOCAL_H
#define RILL_COMM_LOCAL_H

#include "backends/comm/engine.h"

enum local_state {
  LOCAL_WAITS, /* its stream has not come */
  LOCAL_CAME,  /* counted in its meeting's `came` */
  LOCAL_OUT    /* the thread has it */
};

struct local_work {
  struct local_work *next, *next_of_part;
  struct comm_op op;
  struct comm_part *part;
  struct local_meeting *meeting;
  uint32_t index; /* in the meeting */
  enum local_state state;
  uint64_t since; /* when its stream came */
};

/* Who meets: all ranks, or with `from` < `to`'s ... one that sends and one that receives. */
struct local_key {
  uint64_t number;   /* among the operations between those */
  uint32_t from, to; /* LOCAL_ALL: a collective operation */
};
#define LOCAL_ALL UINT32_MAX

/* Invariant: `submitted` of `works` are not NULL, and `came` of those have their streams here; in the table is what
 * has not all of both. */
struct local_meeting {
  struct local_meeting *next;
  struct local_clique *clique;
  struct local_key key;
  uint32_t size, submitted, came;
  struct local_work *works[]; /* by rank; of a message the send, and the receive */
};

enum { LOCAL_BUCKETS = 64 };

struct local_member {
  struct local_clique *clique;
  struct comm *comm;
  uint32_t outstanding; /* submitted, not ended */
  uint64_t collectives;
  uint64_t counts[]; /* messages so far: to each rank, then from each */
};

/* A rank that waits in rill_comm_split. */
struct local_split {
  struct comm *child; /* NULL: it does not wait */
  struct local_clique *clique;
  struct local_member *member;
  uint32_t color, key;
};

struct local_clique {
  struct local_clique *next;
  uint64_t id;
  uint32_t ranks, present; /* members that have joined and not ended */
  bool complete;           /* all have joined */
  bool dead;               /* ... with `why`: nothing more meets */
  struct comm_error why;
  struct local_meeting *table[LOCAL_BUCKETS];
  struct local_split *splits; /* by rank; NULL until the first one */
  uint32_t splitting;
  struct local_member *members[];
};

/* Moves the bytes of a meeting that all have come to (local_move.c). */
void rill__comm_local_move(struct local_work *const *works, uint32_t size);

#endif
