/* A program for rill trace --summary.  Its argument names what limits its speed; after "not" it is a similar program
 * without that limit.  Kernels that wait for the host make the order of the bars certain. */
#include <rill/rill.h>

#include "limits.rill.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { COUNT = 1 << 18, ROUNDS = 10, LAUNCHES = 50 };
static const unsigned long long LIMIT_NS = 60000000000ull;

#define TRY(call)                                            \
  do {                                                       \
    if ((call) != RILL_OK) {                                 \
      (void)fprintf(stderr, "%s\n", rill_last_error_text()); \
      exit(1);                                               \
    }                                                        \
  } while (0)

static rill_device device;
static rill_stream copies, kernels; /* equal if there is one stream */
static rill_event copied, computed;
static float *x, *pinned;
static _Atomic unsigned *flags; /* pinned: the kernel has come to its wait, and may go on */

static void copy(void) { TRY(rill_copy_async(copies, x, pinned, COUNT * sizeof *x)); }

static void compute(int count) {
  rill_launch launch = rill_launch_1d((uint64_t)count, 256);
  launch.label = "step";
  TRY(increment_all_launch(kernels, &launch, count, x));
}

/* Returns once the kernel runs, which goes on until open_gate. */
static void close_gate(void) {
  const rill_launch one = rill_launch_1d(1, 1);
  TRY(meet_launch(kernels, &one, (unsigned *)&flags[0], (unsigned *)&flags[1], LIMIT_NS));
  while (atomic_load(&flags[0]) == 0) continue;
}

static void open_gate(void) { atomic_store(&flags[1], 1); }

static void do_nothing(void *user, rill_status status) { (void)user, (void)status; }

static void work_hard(void *user, rill_status status) {
  volatile unsigned *const count = user;
  (void)status;
  for (unsigned i = 0; i < 3000000; i++) *count = *count + 1;
}

/* ---- the programs ---- */

static void one_stream(bool limited) {
  if (limited) kernels = copies;
  if (!limited) close_gate();
  for (int i = 0; i < ROUNDS; i++) {
    copy();
    if (limited) compute(COUNT);
  }
  TRY(rill_stream_synchronize(copies));
  open_gate();
}

/* The copy of each round waits for the kernel of the one before. */
static void in_turn(bool limited) {
  if (!limited) close_gate();
  for (int i = 0; i < ROUNDS; i++) {
    if (limited) TRY(rill_stream_wait_event(copies, computed, 0));
    copy();
    if (limited) TRY(rill_stream_record_event(copies, copied, 0));
    if (limited) TRY(rill_stream_wait_event(kernels, copied, 0));
    compute(COUNT);
    if (limited) TRY(rill_stream_record_event(kernels, computed, 0));
  }
  if (!limited) TRY(rill_stream_synchronize(copies));
  open_gate();
}

static void long_host_call(bool limited) {
  static unsigned counted;
  if (!limited) close_gate();
  TRY(rill_stream_host_call(copies, limited ? work_hard : do_nothing, &counted));
  TRY(rill_stream_synchronize(copies));
  for (int i = 0; i < 100 * ROUNDS && !limited; i++) copy(); /* so that the device has been busy for long */
  compute(COUNT);
  TRY(rill_stream_synchronize(copies));
  open_gate();
}

static unsigned long long now_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (unsigned long long)now.tv_sec * 1000000000 + (unsigned long long)now.tv_nsec;
}

/* The stream is idle for longer than each kernel took, however slow the machine is. */
static void slow_launches(bool limited) {
  if (!limited) close_gate();
  for (int i = 0; i < LAUNCHES; i++) {
    const unsigned long long from = now_ns();
    compute(1);
    if (limited) TRY(rill_stream_synchronize(kernels));
    const unsigned long long took = now_ns() - from;
    while (limited && now_ns() - from < 4 * took) continue;
  }
  open_gate();
}

static void pageable(bool limited) {
  float *const host = limited ? calloc(COUNT, sizeof *host) : pinned;
  TRY(rill_copy_async(copies, x, host, COUNT * sizeof *x));
  TRY(rill_stream_synchronize(copies));
  if (limited) free(host);
}

static void null_stream(bool limited) {
  const unsigned zero = 0;
  rill_stream stream = copies;
  if (limited) TRY(rill_stream_import(device, 0, NULL, &stream));
  TRY(rill_fill_async(stream, x, &zero, sizeof zero, COUNT));
}

static const struct {
  const char *name;
  void (*run)(bool limited);
} programs[] = { { "one stream", one_stream },       { "in turn", in_turn },   { "long host call", long_host_call },
                 { "slow launches", slow_launches }, { "pageable", pageable }, { "null stream", null_stream } };

int main(int argc, char **argv) {
  const bool limited = argc > 1 && strncmp(argv[1], "not ", 4) != 0;
  const char *const name = argc > 1 ? argv[1] + (limited ? 0 : 4) : "";
  void *memory = NULL;
  TRY(rill_device_open(NULL, &device));
  TRY(rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "copies"), &copies));
  TRY(rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "kernels"), &kernels));
  TRY(rill_event_create(device, RILL_EVENT_OPTIONS(.label = "copied"), &copied));
  TRY(rill_event_create(device, RILL_EVENT_OPTIONS(.label = "computed", .signaled = true), &computed));
  TRY(RILL_NEW(device, RILL_MEMORY_DEVICE, COUNT, &x));
  TRY(RILL_NEW(device, RILL_MEMORY_PINNED, COUNT, &pinned));
  TRY(rill_alloc(device, 2 * sizeof *flags, RILL_MEMORY_PINNED, &memory));
  memset(pinned, 0, COUNT * sizeof *pinned);
  flags = memory;
  atomic_init(&flags[0], 0);
  atomic_init(&flags[1], 0);
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
    if (strcmp(name, programs[i].name) == 0) programs[i].run(limited);
  }
  TRY(rill_device_synchronize(device));
  return 0;
}
