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

#endif
