/* Shared by the files of the MPI engine; mpi.c explains how the engine works. */
#ifndef RILL_COMM_MPI_ENGINE_H
#define RILL_COMM_MPI_ENGINE_H

#include "backends/comm/engine.h"

#include <mpi.h>

extern const struct comm_services *rill__comm_mpi_services;
#define rill__comm_fail rill__comm_mpi_services->fail
#define rill__comm_fail_native rill__comm_mpi_services->fail_native
#define rill__comm_fail_rill rill__comm_mpi_services->fail_rill
#define rill__comm_part_of rill__comm_mpi_services->part_of
#define rill__comm_parts_free rill__comm_mpi_services->parts_free
#define rill__comm_parts_submit rill__comm_mpi_services->parts_submit
#define rill__comm_part_fail rill__comm_mpi_services->part_fail
#define rill__comm_part_end_one rill__comm_mpi_services->part_end_one
#define rill__comm_divide rill__comm_mpi_services->divide

struct work {
  struct work *next;
  struct comm_op op;
  struct comm_part *part;
  MPI_Request request;
  bool awaits;   /* a receive whose message has not arrived */
  void *own_dst; /* the destination, if MPI does not support this in-place form; else NULL */
  uint64_t since;
  uint64_t collective; /* counts the communicator's collective operations, from 1; 0: a message, or not counted */
};

/* How far a rank is, as RILL_CHECK=comm tells it to another rank. */
struct mpi_state {
  uint64_t serial;         /* of the communicator */
  uint64_t collectives;    /* collective operations that it has submitted */
  uint64_t sent, received; /* messages to and from the other rank that it has submitted */
  uint64_t kind, number;   /* its latest collective operation */
  rill_status status;      /* RILL_OK unless its communicator has failed */
  char message[640];
};

/* Another rank, for RILL_CHECK=comm.  Guarded by the lock except `outgoing` and `request`. */
struct mpi_peer {
  uint64_t sent, received;          /* messages to and from it that this rank has submitted */
  uint64_t last_send, last_receive; /* numbers of the latest of them */
  struct mpi_state state;           /* the latest that it has sent */
  bool due, in_flight;              /* this rank's state must be sent; is being sent */
  struct mpi_state outgoing;        /* the progress thread's */
  MPI_Request request;              /* the progress thread's */
};

/* The type of comm->native. */
struct joined {
  struct joined *next;
  struct comm *comm;
  MPI_Comm mpi;
  MPI_Comm apart;             /* the same ranks; for agreement while operations run */
  struct work *first, **last; /* submitted, not started */
  uint32_t outstanding;       /* submitted, not ended */
  uint64_t *looked;           /* per rank: the round in which a receive from it found no message */
  _Atomic bool dead;
  struct mpi_peer *peers; /* by rank; NULL without RILL_CHECK=comm */
  uint64_t collectives;   /* for `peers`: collective operations that this rank has submitted ... */
  uint64_t kind, number;  /* ... and the latest of them */
  uint64_t serial;        /* the same on all ranks; differs from that of an earlier communicator that MPI has freed */
  bool exchanging;        /* the progress thread exchanges states */
  bool ending;            /* drained: states that arrive are ignored */
  bool was_notified;      /* the failure came from another rank */
};

extern struct mpi_engine {
  struct comm_parts parts; /* its lock guards the other fields; never held across a call of MPI or rill */
  struct joined *all;
  bool started, stop, stopped, finalized, any_dead;
  bool checks;         /* RILL_CHECK=comm; set at start */
  uint32_t calling;    /* threads inside MPI other than the one that makes progress */
  struct work *active; /* started; only the progress thread's */
} rill__comm_mpi_engine;

/* Fails with the error code of an MPI call. */
rill_status rill__comm_mpi_fail(int code, const char *call);
void *rill__comm_mpi_progress(void *unused);

/* mpi_exchange.c.  The lock is held: counts a work that is submitted; lets the state be sent to all ranks; returns
 * whether nothing remains to be exchanged, and whether a state must be sent. */
void rill__comm_mpi_count(struct joined *joined, struct work *work);
void rill__comm_mpi_set_due(struct joined *joined);
bool rill__comm_mpi_is_settled(const struct joined *joined);
bool rill__comm_mpi_is_due(const struct joined *joined);
/* Frees the peers of a communicator that is ended. */
void rill__comm_mpi_free_peers(struct joined *joined);
/* On the progress thread: sends and receives states; true if there were any. */
bool rill__comm_mpi_exchange(void);
/* On the progress thread: lists the ranks that have not called a collective operation, as far as it is known. */
void rill__comm_mpi_list_missing(const struct work *work, char *text, size_t size);

#endif
