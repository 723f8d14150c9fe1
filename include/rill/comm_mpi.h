/* rill/comm_mpi.h: communicators of processes that MPI knows.
 *
 * On the CPU the ranks of such a communicator are processes, one rank each, and MPI moves the bytes.  rill_comm loads
 * the library librill_comm_mpi for that, which was built with one implementation of MPI: the program, if it uses MPI
 * itself, must use the same.
 *
 *     rill_comm_id id;
 *     uint32_t ranks, rank;
 *     rill_comm_mpi_world(&id, &ranks, &rank);       // all processes that mpirun started
 *     rill_comm_create(cpu, &id, ranks, rank, NULL, &comm);
 *
 * Who initialises.  A program that uses MPI calls MPI_Init_thread itself, with MPI_THREAD_MULTIPLE, before, and
 * MPI_Finalize after it has released its communicators and their operations have ended.  Where MPI has not been
 * initialised, the first call of rill_comm that needs it does so, and it is finalised when the process exits.
 *
 * The thing people get wrong: MPI does not survive the death of a process.  A rank that stalls gives the others a
 * TIMEOUT at their deadline; one that dies ends the whole job, as mpirun does.
 *
 * What MPI does not detect: two ranks with different counts, types or roots in a collective operation, a collective
 * operation on one rank against a message on another, and which rank has not called an operation that a deadline ends.
 * RILL_CHECK=comm reports all of these; otherwise a report names only the rank that waited.
 *
 * A process whose communicator failed can release it and go on.  If it exits with status 0, it waits for up to 30 s
 * until all processes exit, and then finalises MPI as usual; otherwise mpirun ends the job.  Either all processes of a
 * job initialise MPI themselves, or none.
 *
 * With communicators of GPUs, a communicator of the CPU is a means to pass the id around: rank 0 makes it and
 * broadcasts its bytes.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_COMM_MPI_H
#define RILL_COMM_MPI_H

#include <rill/comm.h>

RILL_EXTERN_C_BEGIN

/** Returns what rill_comm_create takes on the CPU to join all processes that mpirun started: a process that was started
 *  by itself is rank 0 of 1.  The id need not be passed around.
 *
 *  Errors:  INVALID_ARGUMENT, UNSUPPORTED (no librill_comm_mpi; MPI was initialised without MPI_THREAD_MULTIPLE),
 *           BACKEND.
 *  Threads: any; where MPI has to be initialised, the main one.
 *  Like:    MPI_COMM_WORLD, MPI_Comm_size, MPI_Comm_rank. */
RILL_API RILL_NODISCARD rill_status rill_comm_mpi_world(rill_comm_id *id, uint32_t *ranks, uint32_t *rank);

/** Returns the id of an MPI communicator, in each of its processes: `handle` is what MPI_Comm_c2f says of it, and
 *  `library` what MPI_Get_library_version gives.  rill_comm_mpi_id is simpler.
 *
 *  Errors:  INVALID_ARGUMENT (NULL; another MPI than that of librill_comm_mpi), UNSUPPORTED, BACKEND.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_comm_mpi_handle_id(int32_t handle, const char *library, rill_comm_id *id,
                                                            uint32_t *ranks, uint32_t *rank);

#ifdef MPI_VERSION /* <mpi.h> was included before */
/** The same of the MPI_Comm itself.  It must live until rill_comm_create has returned, which duplicates it, and is
 *  called by all of its processes. */
static inline rill_status rill_comm_mpi_id(MPI_Comm comm, rill_comm_id *id, uint32_t *ranks, uint32_t *rank) {
  char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  (void)MPI_Get_library_version(library, &length);
  return rill_comm_mpi_handle_id((int32_t)MPI_Comm_c2f(comm), library, id, ranks, rank);
}
#endif

RILL_EXTERN_C_END

#endif
