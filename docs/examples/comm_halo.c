/* Heat conduction on a grid whose rows are spread over the ranks.  Each step needs the outermost rows of the
 * neighbours. One stream exchanges them while another computes the rows that do not depend on them.
 *
 *     rillcc -o heat.rill.c --header heat.rill.h heat.kernel.cu
 *     cc comm_halo.c heat.rill.c $(pkg-config --cflags --libs rill_comm rill) && mpirun -n 4 ./a.out
 *
 * Events keep the order: the edges of a step wait for the halo, and the next halo waits for the edges. */
#include "heat.rill.h"

#include <rill/comm.h>
#include <rill/comm_mpi.h>
#include <rill/rill.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 256, HEIGHT = 240, STEPS = 50 };

static void check(rill_status status, const char *text) {
  if (status == RILL_OK) return;
  (void)fprintf(stderr, "%s\n", text);
  exit(EXIT_FAILURE);
}
#define RILL(call) check((call), rill_last_error_text())
#define COMM(call) check((call), rill_comm_last_error_text())

static float initial(int x, int y) { return (float)((x * 7 + y * 13) % 101); }

/* Computes the complete grid in plain C; its outer rows do not change. */
static void compute_all(float *grid) {
  static float next[WIDTH * HEIGHT];
  for (int step = 0; step < STEPS; step++) {
    memcpy(next, grid, sizeof next);
    for (int y = 1; y < HEIGHT - 1; y++) {
      for (int x = 1; x < WIDTH - 1; x++) {
        const float *in = grid + y * WIDTH + x;
        next[y * WIDTH + x] = in[0] + 0.2f * (in[-WIDTH] + in[WIDTH] + in[-1] + in[1] - 4.0f * in[0]);
      }
    }
    memcpy(grid, next, sizeof next);
  }
}

static void launch(rill_stream stream, int first, int last, const float *in, float *out) {
  if (first >= last) return;
  rill_launch shape = rill_launch_2d(WIDTH, (uint64_t)(last - first), 128, 1);
  RILL(heat_launch(stream, &shape, WIDTH, first, last, in, out));
}

int main(void) {
  rill_device device;
  rill_stream compute, halo;
  rill_comm comm;
  rill_comm_id id;
  uint32_t ranks = 0, rank = 0;
  float *now, *next, *host;
  COMM(rill_comm_mpi_world(&id, &ranks, &rank));
  RILL(rill_device_open(NULL, &device));
  RILL(rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "compute"), &compute));
  RILL(rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "halo"), &halo));
  COMM(rill_comm_create(device, &id, ranks, rank, RILL_COMM_OPTIONS(.timeout_ns = UINT64_C(60000000000)), &comm));

  /* Rows 1 to `rows` belong to this rank; rows 0 and rows + 1 belong to its neighbours, or lie outside the grid. */
  const int begin = (int)(HEIGHT * rank / ranks), rows = (int)(HEIGHT * (rank + 1) / ranks) - begin;
  const size_t cells = (size_t)WIDTH * ((size_t)rows + 2);
  RILL(RILL_NEW(device, RILL_MEMORY_DEVICE, cells, &now));
  RILL(RILL_NEW(device, RILL_MEMORY_DEVICE, cells, &next));
  RILL(RILL_NEW(device, RILL_MEMORY_PINNED, cells, &host));
  for (int y = 0; y < rows + 2; y++) {
    for (int x = 0; x < WIDTH; x++) host[y * WIDTH + x] = initial(x, begin + y - 1);
  }
  RILL(rill_copy_async(compute, now, host, cells * sizeof *host));
  RILL(rill_copy_async(compute, next, host, cells * sizeof *host));

  const bool has_above = rank > 0, has_below = rank + 1 < ranks;
  const int first = has_above ? 1 : 2, last = has_below ? rows + 1 : rows; /* the grid's outer rows are fixed */
  for (int step = 0; step < STEPS; step++) {
    RILL(rill_stream_wait_stream(halo, compute)); /* the rows to send are ready */
    COMM(rill_comm_group_begin());
    if (has_above) {
      COMM(rill_comm_send(comm, halo, now + WIDTH, WIDTH, RILL_COMM_FLOAT, rank - 1));
      COMM(rill_comm_receive(comm, halo, now, WIDTH, RILL_COMM_FLOAT, rank - 1));
    }
    if (has_below) {
      COMM(rill_comm_send(comm, halo, now + (size_t)rows * WIDTH, WIDTH, RILL_COMM_FLOAT, rank + 1));
      COMM(rill_comm_receive(comm, halo, now + (size_t)(rows + 1) * WIDTH, WIDTH, RILL_COMM_FLOAT, rank + 1));
    }
    COMM(rill_comm_group_end());
    launch(compute, 2, rows, now, next); /* meanwhile: rows that need no neighbour */
    RILL(rill_stream_wait_stream(compute, halo));
    if (first <= 1) launch(compute, 1, 2, now, next);
    if (last > rows && rows > 1) launch(compute, rows, rows + 1, now, next);
    float *const swapped = now;
    now = next;
    next = swapped;
  }
  RILL(rill_copy_async(compute, host, now, cells * sizeof *host));
  RILL(rill_stream_synchronize(compute));

  static float expected[WIDTH * HEIGHT];
  for (int i = 0; i < WIDTH * HEIGHT; i++) expected[i] = initial(i % WIDTH, i / WIDTH);
  compute_all(expected);
  int wrong = 0;
  for (int i = 0; i < WIDTH * rows; i++) {
    const float difference = host[WIDTH + i] - expected[begin * WIDTH + i];
    wrong += difference > 1e-3f || difference < -1e-3f;
  }
  (void)printf("rank %u of %u: %d rows, %d steps, %d wrong cells\n", rank, ranks, rows, STEPS, wrong);

  RILL(rill_free(now));
  RILL(rill_free(next));
  RILL(rill_free(host));
  COMM(rill_comm_release(comm));
  RILL(rill_stream_release(compute));
  RILL(rill_stream_release(halo));
  return wrong != 0;
}
