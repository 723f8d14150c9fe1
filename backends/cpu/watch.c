/* The watcher: a thread that starts further workers when ready queues wait because all workers are blocked, and that
 * cleans up after workers that faulted. */
#include "backends/cpu/fault.h"
#include "backends/cpu/schedule.h"
#include "backends/cpu/workers_state.h"

#include <string.h>

enum { TICK_NS = 1000000 };

/* ---- calling the watcher ---- */

bool rill__cpu_workers_needs_watcher(void) {
  if (atomic_load_explicit(&rill__cpu_workers.watch, memory_order_relaxed) != 0) return false;
  atomic_store_explicit(&rill__cpu_workers.watch, 1, memory_order_release);
  return true;
}

static void *watch(void *unused);

/* Returns 0, or the error code if the thread could not be started. */
static int start(void) {
  cpu_acquire(&rill__cpu_workers.lock);
  const bool exists = rill__cpu_workers.watcher_exists;
  rill__cpu_workers.watcher_exists = true;
  cpu_release(&rill__cpu_workers.lock);
  const int code = exists ? 0 : rill__cpu_thread_start(watch, NULL);
  if (code == 0) return 0;
  cpu_acquire(&rill__cpu_workers.lock);
  rill__cpu_workers.watcher_exists = false; /* the next thread that finds all workers busy tries again */
  atomic_store_explicit(&rill__cpu_workers.watch, 0, memory_order_relaxed);
  cpu_release(&rill__cpu_workers.lock);
  return code;
}

void rill__cpu_workers_call_watcher(void) {
  if (start() == 0) rill__cpu_wake_one(&rill__cpu_workers.watch);
}

rill_status rill__cpu_workers_start_watcher(void) {
  const int code = start();
  RILL_REQUIRE(code == 0, RILL_ERROR_OUT_OF_MEMORY, "the thread that watches for faults could not be started: %s",
               strerror(code));
  return RILL_OK;
}

/* ---- workers that faulted ---- */

/* Hands the worker to the watcher and never returns.  The watcher cannot miss the worker, because it clears `watch`
 * before it reads `faulted`. */
_Noreturn void rill__cpu_workers_park_faulted(struct cpu_worker *public) {
  static _Atomic uint32_t never;
  struct cpu_workers_worker *const worker = (struct cpu_workers_worker *)public;
  worker->next_faulted = atomic_load(&rill__cpu_workers.faulted);
  while (!atomic_compare_exchange_weak(&rill__cpu_workers.faulted, &worker->next_faulted, worker)) {
  }
  atomic_store(&rill__cpu_workers.watch, 1);
  rill__cpu_wake_one(&rill__cpu_workers.watch);
  for (;;) rill__cpu_sleep(&never, 0, NULL);
}

static void clean_up_worker(struct cpu_worker *worker) {
  rill__cpu_fault_report(worker);
  cpu_acquire(&rill__cpu_workers.lock);
  rill__cpu_workers_count_out(worker);
  cpu_release(&rill__cpu_workers.lock);
  if (rill__cpu_scheduled) rill__cpu_schedule_drop_turn(worker);
  const bool last = worker->job == NULL || rill__cpu_job_abort(worker->job);
  if (last) rill__cpu_queue_finish_head(worker->queue);
}

/* Reports the oldest fault first, because it is the cause of the others. */
static void clean_up_faulted(void) {
  struct cpu_workers_worker *list = atomic_exchange(&rill__cpu_workers.faulted, NULL), *faulted = NULL;
  if (list == NULL) return;
  while (list != NULL) {
    struct cpu_workers_worker *const worker = list;
    list = worker->next_faulted;
    worker->next_faulted = faulted;
    faulted = worker;
  }
  for (; faulted != NULL; faulted = faulted->next_faulted) clean_up_worker(&faulted->public);
  rill__cpu_queues_abort();
}

/* ---- the watcher's thread ---- */

/* Starts workers if no queue was taken since the last tick: a quarter more each time, so that even many blocking
 * operations are soon outnumbered.  Returns false if no queue is ready. */
static bool start_more_workers(uint64_t *turns) {
  cpu_acquire(&rill__cpu_workers.lock);
  const bool ready = rill__cpu_workers.ready_count > 0;
  uint32_t more = ready && rill__cpu_workers.turns == *turns ? rill__cpu_workers.workers / 4 + 1 : 0;
  *turns = rill__cpu_workers.turns;
  if (!ready) atomic_store(&rill__cpu_workers.watch, 0);
  for (; more > 0 && rill__cpu_workers.ready_count > rill__cpu_workers.coming; more--) {
    const struct cpu_workers_call call = rill__cpu_workers_find(rill__cpu_workers.base + CPU_WORKERS_EXTRA);
    cpu_release(&rill__cpu_workers.lock);
    rill__cpu_workers_make(call);
    cpu_acquire(&rill__cpu_workers.lock);
  }
  cpu_release(&rill__cpu_workers.lock);
  return ready;
}

static void *watch(void *unused) {
  (void)unused;
  rill__errors_suspend(); /* allocates the error record now: malloc may be unusable after a fault */
  for (;;) {
    clean_up_faulted();
    while (atomic_load_explicit(&rill__cpu_workers.watch, memory_order_acquire) == 0)
      rill__cpu_sleep(&rill__cpu_workers.watch, 0, NULL);
    clean_up_faulted();
    uint64_t turns = UINT64_MAX;
    do {
      const struct timespec tick = cpu_timespec(TICK_NS);
      (void)nanosleep(&tick, NULL);
      clean_up_faulted();
    } while (start_more_workers(&turns));
  }
  return NULL;
}
