/* What the files of the MPI engine share; mpi.c tells how it works. */
#ifndef RILL_COMM_MPI_ENGINE_H
#define RILL_COMM_MPI_ENGINE_H

#include "backends/comm/engine.h"

#include <mpi.h>

extern const struct comm_services *rill__comm_mpi_services;
#define rill__comm_fail rill__comm_mpi_services->fail
#define rill__comm_fail_native rill__comm_mpi_services->fail_native
#define rill__comm_fail_rill rill__comm_mpi_services->fail_rill

struct part {
  struct part *next;  /* of one submission */
  rill_stream stream; /* retained */
  rill_event gate;
  uint32_t left;        /* operations that have not ended; after the submission the progress thread's */
  bool failed;          /* the same */
  uint32_t references;  /* the host call, and whoever has the operations: the last one frees the struct */
  bool reached, armed;  /* the host call has run; the stream has both, or never will */
  rill_status reported; /* by the host call, or why it is not there */
};

struct work {
  struct work *next;
  struct comm_op op;
  struct part *part;
  MPI_Request request;
  bool awaits;   /* a receive whose message has not been seen yet */
  void *own_dst; /* where MPI does not work in place as asked */
  uint64_t since;
};

/* What comm->native is. */
struct joined {
  struct joined *next;
  struct comm *comm;
  MPI_Comm mpi;
  MPI_Comm apart;             /* the same ranks, for what they agree about while operations run */
  struct work *first, **last; /* submitted, not started */
  uint32_t outstanding;       /* submitted, not ended */
  uint64_t *looked;           /* for each rank, the look in which a receive from it has found nothing */
  _Atomic bool dead;
};

extern struct mpi_engine {
  pthread_mutex_t lock; /* guards all of this, and all parts; never held across a call of MPI's or rill's */
  pthread_cond_t changed;
  struct joined *all;
  bool started, stop, stopped, finalized, any_dead;
  uint32_t calling;    /* threads inside MPI other than the one that makes progress */
  rill_stream stream;  /* what gates are recorded on */
  struct work *active; /* started; only the progress thread's */
} rill__comm_mpi_engine;

/* Fails with what a call of MPI's gave. */
rill_status rill__comm_mpi_fail(int code, const char *call);
/* Releases what the engine has of a part. */
void rill__comm_mpi_leave_part(struct part *part);
void *rill__comm_mpi_progress(void *unused);

#endif
