/* Declarations shared by the files of the MPI engine; mpi.c describes how it works. */
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
};

extern struct mpi_engine {
  struct comm_parts parts; /* its lock guards the other fields; never held across a call of MPI or rill */
  struct joined *all;
  bool started, stop, stopped, finalized, any_dead;
  uint32_t calling;    /* threads in MPI calls, except the progress thread */
  struct work *active; /* started works; only the progress thread uses it */
} rill__comm_mpi_engine;

/* Fails with the error code of an MPI call. */
rill_status rill__comm_mpi_fail(int code, const char *call);
void *rill__comm_mpi_progress(void *unused);

#endif
