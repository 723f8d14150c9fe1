#include "backends/gpu/gpu.h"

#include <sched.h>
#include <time.h>

enum { FIRST_PAUSE = 2000, LONGEST_PAUSE = 500000 }; /* nanoseconds */

static uint64_t now(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct gpu_backoff gpu_backoff_start(uint64_t ns) {
  const uint64_t start = now();
  return (struct gpu_backoff){ ns > UINT64_MAX - start ? UINT64_MAX : start + ns, 0 };
}

bool gpu_backoff_again(struct gpu_backoff *backoff) {
  const uint64_t time = now();
  if (time >= backoff->deadline) return false;
  if (backoff->pause == 0) { /* polls once more without a pause, because the work may be nearly done */
    backoff->pause = FIRST_PAUSE;
    (void)sched_yield();
    return true;
  }
  const uint64_t left = backoff->deadline - time;
  const uint64_t pause = backoff->pause < left ? backoff->pause : left;
  (void)nanosleep(&(struct timespec){ 0, (long)pause }, NULL);
  if (backoff->pause < LONGEST_PAUSE) backoff->pause += backoff->pause / 2;
  return true;
}
