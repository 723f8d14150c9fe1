#include "backends/gpu/gpu.h"

#include <sched.h>
#include <time.h>

enum { FIRST_PAUSE = 2000, LONGEST_PAUSE = 500000 }; /* ns */

static uint64_t now(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct gpu_patience gpu_patience_begin(uint64_t ns) {
  const uint64_t start = now();
  return (struct gpu_patience){ ns > UINT64_MAX - start ? UINT64_MAX : start + ns, 0 };
}

bool gpu_patience_again(struct gpu_patience *patience) {
  const uint64_t time = now();
  if (time >= patience->deadline) return false;
  if (patience->pause == 0) { /* what is nearly done gets one more look at once */
    patience->pause = FIRST_PAUSE;
    (void)sched_yield();
    return true;
  }
  const uint64_t left = patience->deadline - time;
  const uint64_t pause = patience->pause < left ? patience->pause : left;
  (void)nanosleep(&(struct timespec){ 0, (long)pause }, NULL);
  if (patience->pause < LONGEST_PAUSE) patience->pause += patience->pause / 2;
  return true;
}
