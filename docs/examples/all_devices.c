/* Computes a sum over all GPUs of this machine: each fills a buffer with its number, and an all-reduce adds them.
 *
 *     cc all_devices.c $(pkg-config --cflags --libs rill_comm rill) && ./a.out
 *
 * One thread serves all GPUs. The operations wait for each other, so they must be in a group. With one thread or
 * process per GPU, each would call rill_comm_create, and no group would be needed.
 */
#include <rill/comm.h>
#include <rill/rill.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 64, COUNT = 1 << 20 };

static void check(rill_status status) {
  if (status == RILL_OK) return;
  (void)fprintf(stderr, "%s\n", rill_last_error_text());
  exit(EXIT_FAILURE);
}

static void check_comm(rill_status status) { /* rill_comm has its own last error */
  if (status == RILL_OK) return;
  (void)fprintf(stderr, "%s\n", rill_comm_last_error_text());
  exit(EXIT_FAILURE);
}

/* Finds the GPUs of the first GPU's backend, because a communicator belongs to one backend. */
static uint32_t find_gpus(rill_device gpus[MOST]) {
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  uint32_t backend = 0, found = 0;
  int32_t count = 0;
  check(rill_device_count(&count));
  for (int32_t i = 0; i < count && found < MOST; i++) {
    check(rill_device_get(i, &gpus[found]));
    check(rill_device_get_info(gpus[found], &info));
    if (i == 0) backend = info.backend;
    found += info.backend == backend && backend != RILL_BACKEND_CPU;
  }
  return found;
}

int main(void) {
  rill_device gpus[MOST];
  rill_comm comms[MOST];
  rill_stream streams[MOST];
  uint32_t *memory[MOST], *seen = NULL, wrong = 0;
  const uint32_t count = find_gpus(gpus);
  if (count == 0) {
    (void)printf("no GPU here\n");
    return EXIT_SUCCESS;
  }

  /* If a rank does not answer within 20 seconds, the call fails instead of blocking forever. */
  check_comm(rill_comm_create_all(gpus, count, RILL_COMM_OPTIONS(.timeout_ns = UINT64_C(20000000000)), comms));
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t number = i + 1;
    check(rill_stream_create(gpus[i], NULL, &streams[i]));
    check(RILL_NEW(gpus[i], RILL_MEMORY_DEVICE, COUNT, &memory[i]));
    check(rill_fill_async(streams[i], memory[i], &number, sizeof number, COUNT));
  }

  check_comm(rill_comm_group_begin());
  for (uint32_t i = 0; i < count; i++) { /* in place, in stream order after the fill */
    check_comm(
        rill_comm_all_reduce(comms[i], streams[i], memory[i], memory[i], COUNT, RILL_COMM_UINT32, RILL_COMM_SUM));
  }
  check_comm(rill_comm_group_end());

  check(RILL_NEW(gpus[0], RILL_MEMORY_PINNED, COUNT, &seen));
  for (uint32_t i = 0; i < count; i++) {
    check(rill_copy_async(streams[i], seen, memory[i], COUNT * sizeof *seen));
    check(rill_stream_synchronize(streams[i]));
    for (uint32_t k = 0; k < COUNT; k++) wrong += seen[k] != count * (count + 1) / 2;
    check(rill_free(memory[i]));
    check(rill_stream_release(streams[i]));
    check_comm(rill_comm_release(comms[i]));
  }
  (void)printf("%u GPUs, %u wrong values\n", count, wrong);
  check(rill_free(seen));
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
