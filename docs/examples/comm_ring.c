/* A ring of ranks: each sends to the next and receives from the previous, until every rank has seen every number.
 *
 *     cc comm_ring.c $(pkg-config --cflags --libs rill_comm rill) && mpirun -n 4 ./a.out
 *
 * A send and a receive that wait for each other must be in a group; otherwise each rank would block in its send. */
#include <rill/comm.h>
#include <rill/comm_mpi.h>
#include <rill/rill.h>
#include <stdio.h>
#include <stdlib.h>

static void check(rill_status status, const char *text) {
  if (status == RILL_OK) return;
  (void)fprintf(stderr, "%s\n", text);
  exit(EXIT_FAILURE); /* mpirun stops the others */
}
#define RILL(call) check((call), rill_last_error_text())
#define COMM(call) check((call), rill_comm_last_error_text())

int main(void) {
  rill_device device;
  rill_stream stream;
  rill_comm comm;
  rill_comm_id id;
  uint32_t ranks = 0, rank = 0;
  int64_t *outgoing, *incoming;
  COMM(rill_comm_mpi_world(&id, &ranks, &rank)); /* the ranks that mpirun started */
  RILL(rill_device_open(NULL, &device));
  RILL(rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "ring"), &stream));
  COMM(rill_comm_create(device, &id, ranks, rank, RILL_COMM_OPTIONS(.timeout_ns = UINT64_C(60000000000)), &comm));
  RILL(RILL_NEW(device, RILL_MEMORY_MANAGED, 1, &outgoing));
  RILL(RILL_NEW(device, RILL_MEMORY_MANAGED, 1, &incoming));

  *outgoing = rank;
  int64_t sum = rank;
  const uint32_t next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  for (uint32_t step = 1; step < ranks; step++) {
    COMM(rill_comm_group_begin());
    COMM(rill_comm_send(comm, stream, outgoing, 1, RILL_COMM_INT64, next));
    COMM(rill_comm_receive(comm, stream, incoming, 1, RILL_COMM_INT64, previous));
    COMM(rill_comm_group_end());
    RILL(rill_copy_async(stream, outgoing, incoming, sizeof *incoming)); /* sent on in the next step */
    RILL(rill_stream_synchronize(stream));
    sum += *outgoing;
  }
  const int64_t expected = (int64_t)ranks * (ranks - 1) / 2;
  (void)printf("rank %u of %u: the sum of all is %lld, expected %lld\n", rank, ranks, (long long)sum,
               (long long)expected);

  RILL(rill_free(outgoing));
  RILL(rill_free(incoming));
  COMM(rill_comm_release(comm));
  RILL(rill_stream_release(stream));
  return sum != expected;
}
