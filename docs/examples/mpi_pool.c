/* MPI with memory from a pool. A pool returns ordinary device allocations, like cudaMalloc, so an MPI that can send
 * from GPU memory ("CUDA-aware", "ROCm-aware") can also send from a pool. On the CPU any MPI can.
 *
 *     mpicc mpi_pool.c $(pkg-config --cflags --libs rill) && mpirun -n 2 ./a.out
 *
 * MPI is not aware of streams, so synchronize before a send. After a receive there is nothing to wait for. (rill_comm
 * sends and receives in stream order.) */
#include <mpi.h>
#if defined(OPEN_MPI) && OPEN_MPI
#include <mpi-ext.h>
#endif
#include <rill/rill.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1 << 16 };

static void check(rill_status status) {
  if (status == RILL_OK) return;
  (void)fprintf(stderr, "%s\n", rill_last_error_text());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Returns whether MPI accepts addresses of device memory. */
static int takes_device_memory(uint32_t backend) {
  if (backend == RILL_BACKEND_CPU) return 1;
#if defined(MPIX_CUDA_AWARE_SUPPORT) && MPIX_CUDA_AWARE_SUPPORT
  if (backend == RILL_BACKEND_CUDA) return MPIX_Query_cuda_support();
#endif
#if defined(MPIX_ROCM_AWARE_SUPPORT) && MPIX_ROCM_AWARE_SUPPORT
  if (backend == RILL_BACKEND_HIP) return MPIX_Query_rocm_support();
#endif
  return 0;
}

int main(int argc, char **argv) {
  rill_device device;
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  rill_stream stream;
  rill_pool pool;
  uint32_t *data = NULL, *host = NULL;
  int rank = 0, ranks = 1, wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  check(rill_device_open(NULL, &device));
  check(rill_device_get_info(device, &info));
  if (!takes_device_memory(info.backend)) {
    if (rank == 0) (void)printf("this MPI does not take memory of %s\n", info.name);
    MPI_Finalize();
    return 0;
  }
  check(rill_stream_create(device, NULL, &stream));
  check(rill_pool_create(device, NULL, &pool));
  check(RILL_NEW(device, RILL_MEMORY_PINNED, COUNT, &host));
  check(rill_pool_alloc_async(pool, stream, sizeof *data * COUNT, (void **)&data));

  /* Send around a ring: the left neighbour's data arrives in the same memory. */
  const uint32_t value = 100 + (uint32_t)rank;
  check(rill_fill_async(stream, data, &value, sizeof value, COUNT));
  check(rill_stream_synchronize(stream));
  MPI_Sendrecv_replace(data, COUNT, MPI_UINT32_T, (rank + 1) % ranks, 0, (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD,
                       MPI_STATUS_IGNORE);
  check(rill_copy_async(stream, host, data, sizeof *data * COUNT));
  check(rill_free_async(stream, data));
  check(rill_stream_synchronize(stream));

  const uint32_t expected = 100 + (uint32_t)((rank + ranks - 1) % ranks);
  for (int i = 0; i < COUNT; i++) wrong += host[i] != expected;
  (void)printf("rank %d of %d: %d wrong values\n", rank, ranks, wrong);
  check(rill_free(host));
  check(rill_pool_release(pool));
  check(rill_stream_release(stream));
  MPI_Finalize();
  return wrong != 0;
}
