/* MPI's types and operators for rill_comm's numbers, made when MPI starts, freed when it ends. */
#ifndef RILL_COMM_MPI_TYPES_H
#define RILL_COMM_MPI_TYPES_H

#include <mpi.h>
#include <stdint.h>

void mpi_types_make(void);
void mpi_types_free(void);
MPI_Datatype mpi_type(uint32_t type);
MPI_Op mpi_operator(uint32_t type, uint32_t op);

#endif
