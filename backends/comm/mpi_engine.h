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

/* The progress of a collective operation.  The ranks compare its arguments before MPI gets its buffers. */
enum mpi_phase { MPI_STARTED, MPI_TO_COMPARE, MPI_COMPARING };

/* A submitted operation, until it has ended. */
struct work {
  struct work *next;
  struct comm_op op;
  struct comm_part *part;
  MPI_Request request;
  enum mpi_phase phase;
  bool awaits;   /* a receive whose message has not arrived */
  bool notified; /* other ranks were notified that it waits (rill__comm_mpi_tell) */
  void *own_dst; /* the destination, if MPI does not support this in-place form; else NULL */
  uint64_t since;
  uint64_t collective; /* counts the communicator's collective operations, from 1; 0: a message */
};

/* The tag of messages with a state.  The tags of other messages are types. */
enum { MPI_STATE_TAG = 100 };

/* The progress of a rank, which it sends to another rank. */
struct mpi_state {
  uint64_t serial;         /* identifies the communicator */
  uint64_t collectives;    /* collective operations that the sender has submitted */
  uint64_t sent, received; /* messages to and from the receiver that the sender has submitted */
  uint64_t kind, number;   /* the sender's latest collective operation */
  rill_status status;      /* RILL_OK unless the sender's communicator has failed */
};

/* A state with the text of the failure. */
struct mpi_failure {
  struct mpi_state state;
  char message[640];
};

/* Another rank.  Guarded by the lock except `outgoing` and `request`. */
struct mpi_peer {
  uint64_t sent, received;          /* messages to and from the peer that this rank has submitted */
  uint64_t last_send, last_receive; /* operation numbers of the latest send and receive */
  struct mpi_state state;           /* the latest state that the peer has sent */
  bool due, in_flight;              /* this rank's state must be sent to the peer; it is being sent */
  struct mpi_state outgoing;        /* used only by the progress thread */
  MPI_Request request;              /* used only by the progress thread */
};

/* The type of comm->native. */
struct joined {
  struct joined *next;
  struct comm *comm; /* not valid in the list `left` */
  uint32_t ranks;
  MPI_Comm mpi;
  MPI_Comm apart;             /* a duplicate of `mpi`, for communication of the engine while operations run */
  struct work *first, **last; /* submitted but not started */
  uint32_t outstanding;       /* number of work items that have been submitted but have not ended */
  uint64_t *looked;           /* per rank: the round in which a receive from it found no message */
  _Atomic bool dead;
  struct mpi_peer *peers; /* by rank */
  uint64_t collectives;   /* number of collective operations that this rank has submitted */
  uint64_t kind, number;  /* the latest of these operations */
  uint64_t serial;        /* equal on all ranks; differs from the serials of earlier communicators that MPI has freed */
  bool tells;             /* a state can be sent to some rank */
  bool waits;             /* states of other ranks may have arrived; used only by the progress thread */
  bool exchanging;        /* the progress thread exchanges states */
  bool ending;            /* drained: states that arrive are ignored */
  bool was_notified;      /* the failure came from another rank */
  struct mpi_failure outgoing; /* used only by the progress thread */

  /* The comparison in progress; used by the progress thread. */
  struct work *comparing;     /* NULL: none */
  struct comm_record pair[2]; /* rill__comm_mpi_join_pairs */
  MPI_Request comparison;
  uint64_t compared; /* `collective` of the latest work item of this communicator that was compared */
};

extern struct mpi_engine {
  struct comm_parts parts; /* its lock guards the other fields; never held across a call of MPI or rill */
  struct joined *all;
  struct joined *left; /* destroyed communicators whose `apart` cannot be freed yet */
  bool started, stop, stopped, finalized, any_dead;
  bool checks;         /* RILL_CHECK=comm; set at start */
  bool exchanges;      /* a communicator has states to send or to receive */
  uint32_t calling;    /* threads inside MPI other than the one that makes progress */
  struct work *active; /* work items that their streams have reached; used only by the progress thread */
  pthread_t thread;    /* the progress thread */
} rill__comm_mpi_engine;

/* Fails with the error code of an MPI call. */
rill_status rill__comm_mpi_fail(int code, const char *call);
void *rill__comm_mpi_progress(void *unused);

/* ---- mpi_exchange.c ---- */

/* Counts a work item that is being submitted.  Call this function and the next three under the lock. */
void rill__comm_mpi_count(struct joined *joined, struct work *work);
/* Requests that this rank's state be sent to all other ranks. */
void rill__comm_mpi_set_due(struct joined *joined);
/* Returns whether no state remains to be sent or received. */
bool rill__comm_mpi_is_settled(const struct joined *joined);
/* Returns whether a state must be sent. */
bool rill__comm_mpi_is_due(const struct joined *joined);
/* Frees the peers of a communicator that is being destroyed; returns false if MPI may still read a state. */
bool rill__comm_mpi_free_peers(struct joined *joined);
/* Sends and receives states; returns whether there were any.  Call on the progress thread. */
bool rill__comm_mpi_exchange(void);
/* Receives the states that are left for a communicator that is in no list; returns whether the other ranks have
 * received all states of this rank, so that `apart` can be freed. */
bool rill__comm_mpi_end_exchange(struct joined *joined);
/* Tells the ranks for which an operation may wait that it waits, and receives what they tell.  Call on the progress
 * thread. */
void rill__comm_mpi_tell(struct work *work);
/* Lists the ranks that are not known to have called a collective operation.  Call on the progress thread. */
void rill__comm_mpi_list_missing(const struct work *work, char *text, size_t size);

#endif
