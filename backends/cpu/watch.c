/* The watcher: a thread that sees to it that no ready queue waits for workers that block, and does for workers that
 * fell what they cannot do themselves. */
#include "backends/cpu/fault.h"
#include "backends/cpu/workers_state.h"

#include <string.h>

enum {
  TICK_NS = 1000000,
  EXTRA_WORKERS = 252 /* at most, beyond the base number */
};

/* ---- calling it ---- */

bool cpu_workers_needs_watcher(void) {
  if (atomic_load_explicit(&cpu_workers.watch, memory_order_relaxed) != 0) return false;
  atomic_store_explicit(&cpu_workers.watch, 1, memory_order_release);
  return true;
}

static void *watch(void *unused);

/* 0, or why it could not be started. */
static int start(void) {
  cpu_acquire(&cpu_workers.lock);
  const bool exists = cpu_workers.watcher_exists;
  cpu_workers.watcher_exists = true;
  cpu_release(&cpu_workers.lock);
  const int code = exists ? 0 : cpu_thread_start(watch, NULL);
  if (code == 0) return 0;
  cpu_acquire(&cpu_workers.lock);
  cpu_workers.watcher_exists = false; /* the next one to find all workers busy tries again */
  atomic_store_explicit(&cpu_workers.watch, 0, memory_order_relaxed);
  cpu_release(&cpu_workers.lock);
  return code;
}

void cpu_workers_call_watcher(void) {
  if (start() == 0) cpu_wake_one(&cpu_workers.watch);
}

rill_status cpu_workers_start_watcher(void) {
  const int code = start();
  RILL_REQUIRE(code == 0, RILL_ERROR_OUT_OF_MEMORY, "the thread that watches for faults could not be started: %s",
               strerror(code));
  return RILL_OK;
}

/* ---- workers that fell ---- */

/* From here on the worker is the watcher's.  What it pushed is seen: the watcher clears `watch` and then looks at
 * `fallen`. */
_Noreturn void cpu_workers_fall(struct cpu_worker *public) {
  static _Atomic uint32_t never;
  struct cpu_workers_worker *const worker = (struct cpu_workers_worker *)public;
  worker->next_fallen = atomic_load(&cpu_workers.fallen);
  while (!atomic_compare_exchange_weak(&cpu_workers.fallen, &worker->next_fallen, worker)) {
  }
  atomic_store(&cpu_workers.watch, 1);
  cpu_wake_one(&cpu_workers.watch);
  for (;;) cpu_sleep(&never, 0, NULL);
}

static void bury(struct cpu_worker *worker) {
  cpu_fault_report(worker);
  cpu_acquire(&cpu_workers.lock);
  cpu_workers.workers--;
  cpu_release(&cpu_workers.lock);
  const bool last = worker->job == NULL || cpu_job_give_up(worker->job);
  if (last) cpu_queue_hand_on(worker->queue);
}

/* The first fault is the cause. */
static void bury_fallen(void) {
  struct cpu_workers_worker *list = atomic_exchange(&cpu_workers.fallen, NULL), *fallen = NULL;
  if (list == NULL) return;
  while (list != NULL) {
    struct cpu_workers_worker *const worker = list;
    list = worker->next_fallen;
    worker->next_fallen = fallen;
    fallen = worker;
  }
  for (; fallen != NULL; fallen = fallen->next_fallen) bury(&fallen->public);
  cpu_queues_give_up();
}

/* ---- its life ---- */

/* Starts workers if nothing has moved since the last tick: a quarter more each time, so that many operations that
 * block are soon outnumbered.  False if nothing is ready any more. */
static bool look_after(uint64_t *turns) {
  cpu_acquire(&cpu_workers.lock);
  const bool ready = cpu_workers.ready_count > 0;
  uint32_t more = ready && cpu_workers.turns == *turns ? cpu_workers.workers / 4 + 1 : 0;
  *turns = cpu_workers.turns;
  if (!ready) atomic_store(&cpu_workers.watch, 0);
  for (; more > 0 && cpu_workers.ready_count > cpu_workers.coming; more--) {
    const struct cpu_workers_call call = cpu_workers_find(cpu_workers.base + EXTRA_WORKERS);
    cpu_release(&cpu_workers.lock);
    cpu_workers_make(call);
    cpu_acquire(&cpu_workers.lock);
  }
  cpu_release(&cpu_workers.lock);
  return ready;
}

static void *watch(void *unused) {
  (void)unused;
  rill__errors_suspend(); /* its record is made now: malloc may not be usable any more when a kernel has faulted */
  for (;;) {
    bury_fallen();
    while (atomic_load_explicit(&cpu_workers.watch, memory_order_acquire) == 0) cpu_sleep(&cpu_workers.watch, 0, NULL);
    bury_fallen();
    uint64_t turns = UINT64_MAX;
    do {
      const struct timespec tick = cpu_timespec(TICK_NS);
      (void)nanosleep(&tick, NULL);
      bury_fallen();
    } while (look_after(&turns));
  }
  return NULL;
}
