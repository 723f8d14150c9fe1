/* Data-parallel training: each rank has a part of the samples and all weights. Gradients are averaged over the ranks
 * in two buckets; the first is exchanged while the second is computed.
 *
 *     rillcc -o gradients.rill.c --header gradients.rill.h gradients.kernel.cu
 *     cc comm_gradients.c gradients.rill.c $(pkg-config --cflags --libs rill_comm rill) && mpirun -n 4 ./a.out
 *
 * At the end all ranks have the same weights. They equal the weights that one rank computes from all samples, except
 * for rounding, because the sums are added in a different order. */
#include "gradients.rill.h"

#include <rill/comm.h>
#include <rill/comm_mpi.h>
#include <rill/rill.h>
#include <stdio.h>
#include <stdlib.h>

enum { WEIGHTS = 64, SAMPLES = 256, BUCKETS = 2, STEPS = 100 };

static void check(rill_status status, const char *text) {
  if (status == RILL_OK) return;
  (void)fprintf(stderr, "%s\n", text);
  exit(EXIT_FAILURE);
}
#define RILL(call) check((call), rill_last_error_text())
#define COMM(call) check((call), rill_comm_last_error_text())

/* The weights that the model has to find. */
static float true_weight(int i) { return (float)(i % 5) - 2.0f; }

static void make_samples(float *x, float *y, int first, int count) {
  for (int s = 0; s < count; s++) {
    uint32_t random = (uint32_t)(first + s + 1) * 2654435761u;
    y[s] = 0;
    for (int k = 0; k < WEIGHTS; k++) {
      random = (random ^ random >> 15) * 747796405u + 2891336453u;
      x[s * WEIGHTS + k] = (float)(random >> 8) / (float)(1 << 24) - 0.5f;
      y[s] += true_weight(k) * x[s * WEIGHTS + k];
    }
  }
}

int main(void) {
  rill_device device;
  rill_stream compute, reduce;
  rill_comm comm;
  rill_comm_id id;
  uint32_t ranks = 0, rank = 0;
  float *x, *y, *w, *gradient, *host;
  COMM(rill_comm_mpi_world(&id, &ranks, &rank));
  RILL(rill_device_open(NULL, &device));
  RILL(rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "compute"), &compute));
  RILL(rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "reduce"), &reduce));
  COMM(rill_comm_create(device, &id, ranks, rank, RILL_COMM_OPTIONS(.timeout_ns = UINT64_C(60000000000)), &comm));

  const int own = SAMPLES / (int)ranks;
  const size_t inputs = (size_t)own * WEIGHTS;
  RILL(RILL_NEW(device, RILL_MEMORY_DEVICE, inputs, &x));
  RILL(RILL_NEW(device, RILL_MEMORY_DEVICE, (size_t)own, &y));
  RILL(RILL_NEW(device, RILL_MEMORY_DEVICE, WEIGHTS, &w));
  RILL(RILL_NEW(device, RILL_MEMORY_DEVICE, WEIGHTS, &gradient));
  RILL(RILL_NEW(device, RILL_MEMORY_PINNED, inputs + (size_t)own + WEIGHTS, &host));
  make_samples(host, host + inputs, own * (int)rank, own);
  const float zero = 0;
  RILL(rill_copy_async(compute, x, host, inputs * sizeof *x));
  RILL(rill_copy_async(compute, y, host + inputs, (size_t)own * sizeof *y));
  RILL(rill_fill_async(compute, w, &zero, sizeof zero, WEIGHTS));

  for (int step = 0; step < STEPS; step++) {
    for (int bucket = 0; bucket < BUCKETS; bucket++) {
      const int first = WEIGHTS * bucket / BUCKETS, last = WEIGHTS * (bucket + 1) / BUCKETS;
      rill_launch shape = rill_launch_1d((uint64_t)(last - first), 32);
      RILL(gradients_launch(compute, &shape, own, WEIGHTS, first, last, x, y, w, gradient));
      RILL(rill_stream_wait_stream(reduce, compute)); /* waits for this bucket only; compute continues with the next */
      COMM(rill_comm_all_reduce(comm, reduce, gradient + first, gradient + first, (size_t)(last - first),
                                RILL_COMM_FLOAT, RILL_COMM_AVERAGE));
    }
    RILL(rill_stream_wait_stream(compute, reduce));
    rill_launch shape = rill_launch_1d(WEIGHTS, 32);
    RILL(descend_launch(compute, &shape, WEIGHTS, 2.0f, gradient, w));
  }
  RILL(rill_copy_async(compute, host, w, WEIGHTS * sizeof *w));
  RILL(rill_stream_synchronize(compute));

  float worst = 0;
  for (int i = 0; i < WEIGHTS; i++) {
    const float difference = host[i] - true_weight(i);
    if (difference > worst) worst = difference;
    if (-difference > worst) worst = -difference;
  }
  (void)printf("rank %u of %u: the weights are found within %.4f\n", rank, ranks, (double)worst);

  RILL(rill_free(x));
  RILL(rill_free(y));
  RILL(rill_free(w));
  RILL(rill_free(gradient));
  RILL(rill_free(host));
  COMM(rill_comm_release(comm));
  RILL(rill_stream_release(compute));
  RILL(rill_stream_release(reduce));
  return worst > 0.1f;
}
