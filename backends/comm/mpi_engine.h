/* What the files of the MPI engine share; mpi.c tells how it works. */
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
  struct comm_parts parts; /* the lock guards all of this; never held across a call of MPI's or rill's */
  struct joined *all;
  bool started, stop, stopped, finalized, any_dead;
  uint32_t calling;    /* threads inside MPI other than the one that makes progress */
  struct work *active; /* started; only the progress thread's */
} rill__comm_mpi_engine;

/* Fails with what a call of MPI's gave. */
rill_status rill__comm_mpi_fail(int code, const char *call);
void *rill__comm_mpi_progress(void *unused);

#endif
