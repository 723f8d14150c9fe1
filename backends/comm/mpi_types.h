/* MPI types and operators of rill_comm's types; created when MPI starts, freed in MPI_Finalize. */
#ifndef RILL_COMM_MPI_TYPES_H
#define RILL_COMM_MPI_TYPES_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

void rill__comm_mpi_types_make(void);
void rill__comm_mpi_types_free(void);
MPI_Datatype rill__comm_mpi_type(uint32_t type);
MPI_Op rill__comm_mpi_operator(uint32_t type, uint32_t op);

/* The type and the operator that compare records of all ranks.  An element is a pair of struct comm_record: the record
 * of the lowest rank, and that of the lowest rank whose operation does not match it, with `ranks` 0 if there is none.
 */
MPI_Datatype rill__comm_mpi_pair(void);
MPI_Op rill__comm_mpi_join_pairs(void);

#endif
