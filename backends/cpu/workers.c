#include "backends/cpu/workers_state.h"

#include "backends/cpu/cpu.h"
#include "backends/cpu/fault.h"
#include "backends/cpu/fiber.h"
#include "backends/cpu/schedule.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
  BASE_WORKERS = 4,          /* minimum, if the number was not set */
  SPIN_NS = 50000,           /* about the cost of waking a sleeping worker */
  YIELD_NS = 2000,           /* after this time, a polling worker yields its processor at each step, if there are ... */
  FEW_PROCESSORS = 4,        /* ... at most so many */
  IDLE_NS = 2000000000,      /* idle time after which a surplus worker ends and large stacks are freed */
  STACK_BYTES = 9 << 20,     /* kernels need up to 8 MiB (tools/rillcc_lib/stacks.py) */
  STACK_GUARD_BYTES = 65536, /* guard below the stack */
  TURN = 32                  /* operations of a queue before another one of the same level is served */
};

struct cpu_workers rill__cpu_workers;

/* The mapping of a worker contains the worker, the alternate signal stack, and shared memory. */
enum {
  WORKER_BYTES = 4096,
  MAPPING_BYTES = WORKER_BYTES + CPU_FAULT_STACK_BYTES + (CPU_SHARED_BYTES + 4095) / 4096 * 4096
};

static _Thread_local struct cpu_workers_worker *self __attribute__((tls_model("initial-exec")));

struct cpu_worker *rill__cpu_worker_self(void) {
  return self != NULL ? &self->public : NULL;
}

bool rill__cpu_workers_may_spin(void) { return rill__cpu_count() > 1; }

/* ---- threads ---- */

int rill__cpu_thread_start(void *(*run)(void *), void *arg) {
  sigset_t blocked, before;
  (void)sigfillset(&blocked);
  const int own[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF };
  for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) (void)sigdelset(&blocked, own[i]);
  pthread_attr_t attributes;
  int code = pthread_attr_init(&attributes);
  if (code != 0) return code;
  size_t stack = 0;
  if (pthread_attr_getstacksize(&attributes, &stack) == 0 && stack < STACK_BYTES + STACK_GUARD_BYTES)
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES + STACK_GUARD_BYTES);
  (void)pthread_attr_setguardsize(&attributes, STACK_GUARD_BYTES);
  (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  (void)pthread_sigmask(SIG_SETMASK, &blocked, &before);
  pthread_t thread;
  code = pthread_create(&thread, &attributes, run, arg);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  (void)pthread_attr_destroy(&attributes);
  if (code == 0) (void)pthread_setname_np(thread, "rill-cpu");
  return code;
}

static void *work(void *worker);

/* Starts a worker that is already included in `workers` and `coming`. */
static int start_worker(void) {
  struct cpu_workers_worker *worker =
      mmap(NULL, MAPPING_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int code = ENOMEM;
  if (worker != MAP_FAILED) {
    worker->public.shared = (char *)worker + WORKER_BYTES + CPU_FAULT_STACK_BYTES;
    code = rill__cpu_thread_start(work, worker);
    if (code == 0) return 0;
    (void)munmap(worker, MAPPING_BYTES);
  }
  cpu_acquire(&rill__cpu_workers.lock);
  rill__cpu_workers.workers--;
  rill__cpu_workers.coming--;
  cpu_release(&rill__cpu_workers.lock);
  return code;
}

/* ---- number of workers ---- */

static struct cpu_workers_option {
  _Atomic uint32_t requested;  /* number that the program has set; 0 if not set */
  _Atomic uint32_t by_default; /* number from the environment; 0 if not set */
} option;

void rill__cpu_workers_read_count(void) {
  const char *text = getenv("RILL_CPU_WORKERS");
  if (text == NULL || text[0] == '\0') return;
  char *end = NULL;
  const unsigned long count = strtoul(text, &end, 10);
  if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && count >= 1 && count <= CPU_WORKERS_MAX) {
    atomic_store(&option.by_default, (uint32_t)count);
    return;
  }
  char instead[80];
  (void)snprintf(instead, sizeof instead, "a number from 1 to %d; the cpu device has %u workers", CPU_WORKERS_MAX,
                 rill__cpu_count());
  rill__cpu_warn_of_setting("RILL_CPU_WORKERS", text, instead);
}

/* Returns 0 if the number was set neither by the program nor in the environment. */
static uint32_t chosen_workers(void) {
  const uint32_t requested = atomic_load(&option.requested);
  return requested != 0 ? requested : atomic_load(&option.by_default);
}

uint32_t rill__cpu_workers_count(void) {
  const uint32_t chosen = chosen_workers();
  return chosen != 0 ? chosen : rill__cpu_count();
}

/* Uses a few more workers if the number was not set, so that a few blocking operations delay nothing.  Call it under
 * the lock. */
static void apply_workers(void) {
  const uint32_t count = rill__cpu_workers_count();
  atomic_store(&rill__cpu_workers.processors, count);
  rill__cpu_workers.base = chosen_workers() == 0 && count < BASE_WORKERS ? BASE_WORKERS : count;
}

void rill__cpu_workers_set_count(uint32_t count) {
  cpu_acquire(&rill__cpu_workers.lock);
  atomic_store(&option.requested, count);
  apply_workers();
  /* Wakes all workers, so that surplus workers notice the new number before they sleep again. */
  struct cpu_workers_worker *list = rill__cpu_workers.asleep;
  rill__cpu_workers.asleep = NULL;
  for (struct cpu_workers_worker *worker = list; worker != NULL; worker = worker->next_asleep) {
    worker->asleep = false;
    rill__cpu_workers.coming++;
  }
  cpu_release(&rill__cpu_workers.lock);
  while (list != NULL) {
    struct cpu_workers_worker *const worker = list;
    list = worker->next_asleep; /* read before the worker is woken, which may change it */
    atomic_store_explicit(&worker->woken, 1, memory_order_release);
    rill__cpu_wake_one(&worker->woken);
  }
}

rill_status rill__cpu_workers_start(void) {
  if (RILL__LIKELY(atomic_load_explicit(&rill__cpu_workers.started, memory_order_acquire))) return RILL_OK;
  int code = 0;
  cpu_acquire(&rill__cpu_workers.start_lock);
  if (!atomic_load(&rill__cpu_workers.started)) {
    cpu_acquire(&rill__cpu_workers.lock);
    apply_workers();
    rill__cpu_workers.workers = 1;
    rill__cpu_workers.coming = 1;
    cpu_release(&rill__cpu_workers.lock);
    code = rill__cpu_scheduled ? rill__cpu_schedule_start() : 0;
    if (code == 0) code = start_worker();
    atomic_store_explicit(&rill__cpu_workers.started, code == 0, memory_order_release);
  }
  cpu_release(&rill__cpu_workers.start_lock);
  RILL_REQUIRE(code == 0, RILL_ERROR_OUT_OF_MEMORY, "no worker thread could be started: %s", strerror(code));
  return RILL_OK;
}

bool rill__cpu_workers_add(void) {
  cpu_acquire(&rill__cpu_workers.lock);
  const bool room = rill__cpu_workers.workers < rill__cpu_workers.base + CPU_WORKERS_EXTRA;
  if (room) {
    rill__cpu_workers.workers++;
    rill__cpu_workers.coming++;
  }
  cpu_release(&rill__cpu_workers.lock);
  return room && start_worker() == 0;
}

/* ---- calling workers ---- */

struct cpu_workers_call rill__cpu_workers_find(uint32_t limit) {
  struct cpu_workers_call call = { .wake = rill__cpu_workers.asleep };
  if (call.wake != NULL) {
    rill__cpu_workers.asleep = call.wake->next_asleep;
    call.wake->asleep = false;
    rill__cpu_workers.coming++;
  } else if (rill__cpu_workers.workers < limit) {
    call.start = true;
    rill__cpu_workers.workers++;
    rill__cpu_workers.coming++;
  }
  return call;
}

void rill__cpu_workers_make(struct cpu_workers_call call) {
  if (call.wake != NULL) {
    atomic_store_explicit(&call.wake->woken, 1, memory_order_release);
    rill__cpu_wake_one(&call.wake->woken);
  } else if (call.start && start_worker() != 0) {
    cpu_acquire(&rill__cpu_workers.lock);
    const bool watcher = rill__cpu_workers_needs_watcher();
    cpu_release(&rill__cpu_workers.lock);
    if (watcher) rill__cpu_workers_call_watcher();
  }
}

void rill__cpu_workers_push(struct cpu_queue *queue) {
  if (RILL__UNLIKELY(rill__cpu_scheduled)) {
    rill__cpu_schedule_push(queue);
    return;
  }
  const uint32_t level = queue->level;
  queue->next_ready = NULL;
  cpu_acquire(&rill__cpu_workers.lock);
  if (rill__cpu_workers.ready[level].last != NULL) {
    rill__cpu_workers.ready[level].last->next_ready = queue;
  } else {
    rill__cpu_workers.ready[level].first = queue;
    atomic_fetch_or(&rill__cpu_workers.work, UINT64_C(1) << level);
  }
  rill__cpu_workers.ready[level].last = queue;
  rill__cpu_workers.ready_count++;
  struct cpu_workers_call call = { NULL, false };
  bool watcher = false;
  if (rill__cpu_workers.ready_count > atomic_load(&rill__cpu_workers.coming)) {
    call = rill__cpu_workers_find(rill__cpu_workers.base);
    watcher = call.wake == NULL && !call.start && rill__cpu_workers_needs_watcher();
  }
  cpu_release(&rill__cpu_workers.lock);
  rill__cpu_workers_make(call);
  if (watcher) rill__cpu_workers_call_watcher();
}

/* Removes a queue of the highest level with ready queues, for a worker that then no longer counts as coming.  Call it
 * under the lock. */
static struct cpu_queue *take_ready(void) {
  for (uint32_t level = 0; level < CPU_LEVELS; level++) {
    struct cpu_queue *queue = rill__cpu_workers.ready[level].first;
    if (queue == NULL) continue;
    rill__cpu_workers.ready[level].first = queue->next_ready;
    if (queue->next_ready == NULL) {
      rill__cpu_workers.ready[level].last = NULL;
      atomic_fetch_and_explicit(&rill__cpu_workers.work, ~(UINT64_C(1) << level), memory_order_relaxed);
    }
    RILL_ASSERT(rill__cpu_workers.ready_count > 0, "the queues that are ready are counted");
    rill__cpu_workers.ready_count--;
    rill__cpu_workers.coming--;
    rill__cpu_workers.turns++;
    return queue;
  }
  return NULL;
}

bool rill__cpu_workers_should_yield(uint32_t level, uint32_t count) {
  const uint64_t work = atomic_load_explicit(&rill__cpu_workers.work, memory_order_relaxed);
  const uint64_t before = (1u << level) - 1, before_or_same = (2u << level) - 1;
  return (work & before) != 0 || (count % TURN == TURN - 1 && (work & before_or_same) != 0);
}

/* ---- a worker's thread ---- */

/* What a worker does next: it runs a queue, or helps with a job. */
struct task {
  struct cpu_queue *queue;
  struct cpu_job *job;
};

/* Takes a ready queue.  All polling workers see that it is ready, and would delay each other and the thread that
 * submits if they tried to get the lock at the same time.  So each waits a little longer than the one before. */
static struct cpu_queue *try_to_take(void) {
  const uint32_t coming = atomic_load_explicit(&rill__cpu_workers.coming, memory_order_relaxed);
  for (uint32_t i = self->public.number % (coming > 0 ? coming : 1); i > 0; i--) cpu_relax();
  const uint64_t work = atomic_load_explicit(&rill__cpu_workers.work, memory_order_relaxed);
  if ((work & CPU_LEVELS_MASK) == 0 || !cpu_try_acquire(&rill__cpu_workers.lock)) return NULL;
  struct cpu_queue *const queue = take_ready();
  cpu_release(&rill__cpu_workers.lock);
  return queue;
}

/* Polls for SPIN_NS, or only once if too many workers poll: one processor is left for threads that have work.  If
 * there are few processors, soon yields at each step, because a thread that has work may be waiting for this processor.
 * If there are more, the system finds another one, and a yield would cost milliseconds if a thread of the program, for
 * example of OpenMP, spins on this one.  Returns false if nothing was found. */
static bool poll_work(struct task *task) {
  for (uint64_t until = 0, now = 0; until == 0 || now < until; now = cpu_now()) {
    if (now != 0 && until == 0) {
      if (atomic_load_explicit(&rill__cpu_workers.coming, memory_order_relaxed) >= rill__cpu_count()) break;
      until = now + SPIN_NS;
    }
    for (int i = 0; i < 8; i++) {
      const uint64_t work = atomic_load_explicit(&rill__cpu_workers.work, memory_order_relaxed);
      if ((work & CPU_LEVELS_MASK) != 0) {
        task->queue = try_to_take();
        if (task->queue != NULL) return true;
      } else if (work != 0) {
        task->job = rill__cpu_job_join(work);
        if (task->job != NULL) {
          atomic_fetch_sub(&rill__cpu_workers.coming, 1);
          return true;
        }
      }
      cpu_relax();
    }
    const bool yields = rill__cpu_count() <= FEW_PROCESSORS;
    if (yields && until != 0 && until - now < SPIN_NS - YIELD_NS) (void)sched_yield();
  }
  return false;
}

/* Decides whether a worker whose sleep timed out ends, and removes it from the list if it does.  Workers numbered below
 * the base number stay. */
static bool ends(void) {
  if (!self->asleep || rill__cpu_workers.workers <= rill__cpu_workers.base) return false;
  if (self->public.number < rill__cpu_workers.base) return false;
  struct cpu_workers_worker **link = &rill__cpu_workers.asleep;
  while (*link != self) link = &(*link)->next_asleep;
  *link = self->next_asleep;
  rill__cpu_workers_count_out(&self->public);
  return true;
}

/* Sleeps until called.  Returns false if the worker has to end.  Called under the lock, returns without it. */
static bool sleep_until_called(void) {
  RILL_ASSERT(rill__cpu_workers.ready_count == 0, "a worker sleeps only when nothing is ready");
  bool for_a_while =
      rill__cpu_workers.workers > rill__cpu_workers.base || rill__cpu_fibers_are_large(self->public.fibers);
  atomic_store_explicit(&self->woken, 0, memory_order_relaxed);
  self->asleep = true;
  self->next_asleep = rill__cpu_workers.asleep;
  rill__cpu_workers.asleep = self;
  cpu_release(&rill__cpu_workers.lock);
  const uint64_t until = cpu_now() + IDLE_NS;
  const struct timespec deadline = cpu_timespec(until);
  while (atomic_load_explicit(&self->woken, memory_order_acquire) == 0) {
    rill__cpu_sleep(&self->woken, 0, for_a_while ? &deadline : NULL);
    if (!for_a_while || cpu_now() < until) continue;
    rill__cpu_fibers_trim(&self->public.fibers);
    cpu_acquire(&rill__cpu_workers.lock);
    const bool end = ends();
    cpu_release(&rill__cpu_workers.lock);
    if (end) return false;
    for_a_while = false;
  }
  return true;
}

/* Polls and sleeps until there is work.  Returns false if the worker has to end.  The worker counts as coming when this
 * is called, and until it has found a task or falls asleep.
 *
 * Invariant: nobody relies on a worker that does not come.
 *   - Queues.  A thread that makes a queue ready sets its bit in `work` and then reads `coming`.  A worker that joins a
 *     job subtracts itself from `coming` and then reads `work`.  So the thread does not count the worker, or the worker
 *     sees the queue, leaves the job without running a part of it, and calls this function again.  A worker that falls
 *     asleep does both under the lock, under which queues become ready.
 *   - Jobs.  A participant that calls helpers has opened the job and set how many it wants, and then reads `coming`.  A
 *     worker subtracts itself and then looks for jobs before it sleeps, or calls helpers itself if it has joined.
 * These accesses are sequentially consistent. */
static bool find_task(struct task *task) {
  do {
    *task = (struct task){ NULL, NULL };
    if (poll_work(task)) return true;
    cpu_acquire(&rill__cpu_workers.lock);
    task->queue = take_ready();
    if (task->queue == NULL) {
      rill__cpu_workers.coming--;
      task->job = rill__cpu_job_join(atomic_load(&rill__cpu_workers.work));
    }
    if (task->queue != NULL || task->job != NULL) {
      cpu_release(&rill__cpu_workers.lock);
      return true;
    }
  } while (sleep_until_called());
  return false;
}

/* Finds the worker's stack, so that a stack overflow is reported as such. */
static void find_stack(struct cpu_worker *worker) {
  pthread_attr_t attributes;
  void *stack = NULL;
  size_t size = 0, guard = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  if (pthread_attr_getstack(&attributes, &stack, &size) == 0 && pthread_attr_getguardsize(&attributes, &guard) == 0) {
    worker->stack = (uintptr_t)stack;
    worker->stack_guard = (uintptr_t)stack - guard;
  }
  (void)pthread_attr_destroy(&attributes);
}

/* Assigns the lowest free number.  Call it under the lock. */
static void number_worker(struct cpu_worker *worker) {
  while (rill__cpu_workers.numbers[worker->number]) worker->number++;
  rill__cpu_workers.numbers[worker->number] = true;
}

void rill__cpu_workers_count_out(struct cpu_worker *worker) {
  rill__cpu_workers.numbers[worker->number] = false;
  rill__cpu_workers.workers--;
}

static void *work(void *worker) {
  self = worker;
  rill__cpu_run_anywhere();
  find_stack(&self->public);
  rill__cpu_fault_stack((char *)worker + WORKER_BYTES);
  cpu_acquire(&rill__cpu_workers.lock);
  number_worker(&self->public);
  cpu_release(&rill__cpu_workers.lock);
  if (rill__cpu_scheduled) rill__cpu_schedule_serve(&self->public);
  for (struct task task; find_task(&task); rill__cpu_workers.coming++) {
    if (task.queue != NULL) {
      rill__cpu_queue_run(task.queue);
    } else {
      rill__cpu_job_help(task.job);
    }
  }
  rill__cpu_fibers_free(&self->public.fibers, 0);
  (void)munmap(self, MAPPING_BYTES);
  return NULL;
}

/* ---- fork ---- */

void rill__cpu_workers_reset(void) { memset(&rill__cpu_workers, 0, sizeof rill__cpu_workers); }
