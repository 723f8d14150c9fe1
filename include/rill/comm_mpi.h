/* rill/comm_mpi.h: communicators of MPI processes.
 *
 * On the CPU each rank of such a communicator is a process, and MPI moves the bytes. rill_comm loads the library
 * librill_comm_mpi, which was built with one implementation of MPI. A program that uses MPI itself must use the same
 * implementation.
 *
 *     rill_comm_id id;
 *     uint32_t ranks, rank;
 *     rill_comm_mpi_world(&id, &ranks, &rank);       // all processes that mpirun started
 *     rill_comm_create(cpu, &id, ranks, rank, NULL, &comm);
 *
 * Initialization. A program that uses MPI must call MPI_Init_thread with MPI_THREAD_MULTIPLE before it uses
 * rill_comm. It must call MPI_Finalize only after it has released its communicators and their operations have
 * completed. If MPI has not been initialized, the first call of rill_comm that needs MPI initializes it, and MPI is
 * finalized when the process exits.
 *
 * Pitfall: MPI does not survive the death of a process. If a rank stalls, the other ranks fail with TIMEOUT at their
 * deadline. If a rank dies, mpirun ends the whole job.
 *
 * MPI itself does not detect different counts, types or roots in a collective operation. rill_comm therefore compares
 * these with a small reduction before each collective operation. A rank whose operation has waited for 10 ms tells the
 * ranks for which it may wait, so that a collective operation on one rank and a message on another are reported, and a
 * failure of one rank ends the waits of the others. If an operation misses its deadline, the error text lists the ranks
 * that are not known to have reached it. With RILL_CHECK=comm every rank notifies every other rank of its calls and of
 * its failure at once, even if no rank waits.
 *
 * A process whose communicator failed can release it and continue. If the process exits with status 0, it waits up to
 * 30 s for all processes to exit, and then finalizes MPI as usual. If the wait times out, or the status is not 0,
 * mpirun ends the job. Either all processes of a job must initialize MPI themselves, or none of them.
 *
 * A CPU communicator can distribute the id of a GPU communicator: rank 0 creates the id and broadcasts its bytes.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_COMM_MPI_H
#define RILL_COMM_MPI_H

#include <rill/comm.h>

RILL_EXTERN_C_BEGIN

/** Returns the id, number of ranks and rank with which a process joins all processes that mpirun started, by calling
 *  rill_comm_create on the CPU. Every process gets the same id. A process that mpirun did not start is rank 0 of 1.
 *
 *  Errors:  INVALID_ARGUMENT, UNSUPPORTED (no librill_comm_mpi; MPI was initialized without MPI_THREAD_MULTIPLE),
 *           BACKEND.
 *  Threads: any; the main thread if MPI must be initialized.
 *  Like:    MPI_COMM_WORLD, MPI_Comm_size, MPI_Comm_rank. */
RILL_API RILL_NODISCARD rill_status rill_comm_mpi_world(rill_comm_id *id, uint32_t *ranks, uint32_t *rank);

/** Returns the id of an MPI communicator, in each of its processes. `handle` is the result of MPI_Comm_c2f, and
 *  `library` the string from MPI_Get_library_version. rill_comm_mpi_id is simpler.
 *
 *  Errors:  INVALID_ARGUMENT (NULL; MPI_COMM_NULL; not the MPI of librill_comm_mpi), UNSUPPORTED, BACKEND.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_comm_mpi_handle_id(int32_t handle, const char *library, rill_comm_id *id,
                                                            uint32_t *ranks, uint32_t *rank);

#ifdef MPI_VERSION /* <mpi.h> was included before */
/** Returns the id of an MPI_Comm. All processes of `comm` must call rill_comm_create, which duplicates `comm`; do not
 *  free `comm` before rill_comm_create has returned. */
static inline rill_status rill_comm_mpi_id(MPI_Comm comm, rill_comm_id *id, uint32_t *ranks, uint32_t *rank) {
  char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  (void)MPI_Get_library_version(library, &length);
  return rill_comm_mpi_handle_id((int32_t)MPI_Comm_c2f(comm), library, id, ranks, rank);
}
#endif

RILL_EXTERN_C_END

#endif
