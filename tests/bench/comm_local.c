/* rill_comm between two ranks of one process on the CPU, and the same work as plain loops.
 *
 *   comm_local [--rounds N]
 *
 * One thread submits for both ranks, each with a stream of its own.  For each operation and size there are rounds; a
 * round times a batch of plain loops and a batch of rill_comm, alternately first.  A batch of rill_comm ends with a
 * synchronize of both streams.  Printed is the median of the rounds: microseconds for one operation, and the speed
 * relative to the plain loop. */
#include <rill/comm.h>
#include <rill/rill.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RANKS = 2, MOST_ROUNDS = 101 };
enum { ALL_REDUCE, SEND_RECEIVE, OPS };
static const char *const op_names[OPS] = { "all_reduce", "send + receive" };
static const size_t sizes[] = { 1u << 10, 1u << 20, 64u << 20 };

static rill_comm comms[RANKS];
static rill_stream streams[RANKS];
static float *src[RANKS], *dst[RANKS];
static unsigned rounds = 15;

static void check(rill_status status, const char *call) {
  if (status == RILL_OK) return;
  (void)fprintf(stderr, "%s: %s; %s\n", call, rill_last_error_text(), rill_comm_last_error_text());
  exit(EXIT_FAILURE);
}
#define CHECK(call) check((call), #call)

static double now_us(void) {
  struct timespec time;
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

/* The compiler must not remove a plain operation, or merge it with the next one. */
static void keep(void *p) { __asm__ volatile("" : : "r"(p) : "memory"); }

static void run_plainly(int op, size_t count) {
  if (op == ALL_REDUCE) {
    const float *const a = src[0], *const b = src[1];
    float *const x = dst[0], *const y = dst[1];
    for (size_t i = 0; i < count; i++) x[i] = a[i] + b[i];
    memcpy(y, x, count * sizeof *y);
  } else {
    memcpy(dst[1], src[0], count * sizeof *dst[1]);
  }
  keep(dst[1]);
}

static void submit(int op, size_t count) {
  const uint32_t type = RILL_COMM_FLOAT;
  if (op == ALL_REDUCE) {
    for (int i = 0; i < RANKS; i++) {
      CHECK(rill_comm_all_reduce(comms[i], streams[i], dst[i], src[i], count, type, RILL_COMM_SUM));
    }
  } else {
    CHECK(rill_comm_send(comms[0], streams[0], src[0], count, type, 1));
    CHECK(rill_comm_receive(comms[1], streams[1], dst[1], count, type, 0));
  }
}

static double time_batch(bool plain, int op, size_t count, unsigned calls) {
  const double start = now_us();
  for (unsigned i = 0; i < calls; i++) {
    if (plain) run_plainly(op, count);
    else submit(op, count);
  }
  for (int i = 0; i < RANKS && !plain; i++) CHECK(rill_stream_synchronize(streams[i]));
  return (now_us() - start) / calls;
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void measure(int op, size_t bytes) {
  static double us[2][MOST_ROUNDS];
  const size_t count = bytes / sizeof(float);
  const unsigned calls = bytes <= 1u << 10 ? 500 : bytes <= 1u << 20 ? 50 : 2;
  for (int plain = 0; plain < 2; plain++) (void)time_batch(plain, op, count, calls); /* warms up */
  for (unsigned round = 0; round < rounds; round++) {
    for (unsigned i = 0; i < 2; i++) {
      const bool plain = (round + i) % 2 == 0;
      us[plain][round] = time_batch(plain, op, count, calls);
    }
  }
  for (int i = 0; i < 2; i++) qsort(us[i], rounds, sizeof(double), by_size);
  const double rill = us[0][rounds / 2], plain = us[1][rounds / 2];
  (void)printf("%-15s %10zu %11.2f %11.2f %8.1f %%\n", op_names[op], bytes, plain, rill, 100 * plain / rill);
  (void)fflush(stdout);
}

int main(int argc, char **argv) {
  const size_t most = sizes[sizeof sizes / sizeof *sizes - 1];
  if (argc == 3 && strcmp(argv[1], "--rounds") == 0) rounds = (unsigned)strtoul(argv[2], NULL, 10);
  if ((argc != 1 && argc != 3) || rounds < 1 || rounds > MOST_ROUNDS) {
    (void)fprintf(stderr, "usage: comm_local [--rounds N], N from 1 to %d\n", MOST_ROUNDS);
    return EXIT_FAILURE;
  }
  rill_device cpu;
  CHECK(rill_device_open("cpu", &cpu));
  const rill_device devices[RANKS] = { cpu, cpu };
  CHECK(rill_comm_create_all(devices, RANKS, NULL, comms));
  for (int i = 0; i < RANKS; i++) {
    CHECK(rill_stream_create(cpu, NULL, &streams[i]));
    CHECK(rill_alloc(cpu, most, RILL_MEMORY_DEVICE, (void **)&src[i]));
    CHECK(rill_alloc(cpu, most, RILL_MEMORY_DEVICE, (void **)&dst[i]));
    memset(src[i], 0, most);
    memset(dst[i], 0, most);
  }
  (void)printf("%d ranks of one process, %u rounds\n\n", RANKS, rounds);
  (void)printf("%-15s %10s %11s %11s %10s\n", "", "bytes", "plain us", "rill us", "plain/rill");
  for (int op = 0; op < OPS; op++) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) measure(op, sizes[i]);
  }
  for (int i = 0; i < RANKS; i++) {
    CHECK(rill_comm_release(comms[i]));
    CHECK(rill_stream_release(streams[i]));
    CHECK(rill_free(src[i]));
    CHECK(rill_free(dst[i]));
  }
  return EXIT_SUCCESS;
}
