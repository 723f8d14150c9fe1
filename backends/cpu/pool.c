#include "backends/cpu/pool.h"

#include "backends/cpu/fiber.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
  BASE_WORKERS = 4,           /* at least, so that a few operations that block hold nothing up */
  EXTRA_WORKERS = 252,        /* at most, beyond the base number */
  SPIN_NS = 50000,            /* about what waking a sleeping worker costs */
  TICK_NS = 1000000,          /* of the watcher */
  EXTRA_IDLE_NS = 2000000000, /* after which a worker beyond the base number ends */
  STACK_BYTES = 4 << 20,      /* at least: for what a block keeps for its threads (rill/device/host_split.h) */
  TURN = 32,                  /* operations of a queue before another one of its level gets its turn */
  CALL_HELPERS_NS = 4000,     /* what a job takes before sleeping workers are woken for it */
  JOBS_BIT = 1u << CPU_LEVELS /* in pool.work */
};

/* At the start of a mapping of its own, before its shared memory. */
struct worker {
  struct cpu_worker public;
  struct worker *next_asleep;
  bool asleep; /* in the list */
  _Atomic uint32_t woken;
};
enum { WORKER_BYTES = 4096, MAPPING_BYTES = WORKER_BYTES + (CPU_SHARED_BYTES + 4095) / 4096 * 4096 };

static struct {
  struct cpu_lock lock;
  struct {
    struct cpu_queue *first, *last;
  } ready[CPU_LEVELS];
  uint32_t ready_count;
  struct cpu_job *jobs;     /* open: with parts left and room for another worker */
  struct worker *asleep;    /* the last to fall asleep first: its caches are warm */
  uint32_t workers, coming; /* coming: spinning, woken or starting; they look here before they sleep */
  uint64_t turns;           /* queues taken */
  bool watcher_exists;

  /* Constant once started. */
  struct cpu_lock start_lock;
  _Atomic bool started;
  _Atomic uint32_t processors;
  uint32_t base;

  /* Read without the lock by those who poll: a bit for each level with a ready queue, and JOBS_BIT. */
  _Alignas(64) _Atomic uint32_t work;
  _Alignas(64) _Atomic uint32_t watch; /* 1 while the watcher is to be awake */
} pool;

static _Thread_local struct worker *self __attribute__((tls_model("initial-exec")));

struct cpu_worker *cpu_worker_self(void) {
  return &self->public;
}

static uint32_t processors(void) { return atomic_load_explicit(&pool.processors, memory_order_relaxed); }

bool cpu_pool_may_spin(void) { return processors() > 1; }

uint32_t cpu_count(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return (uint32_t)CPU_COUNT(&set);
  const long online = sysconf(_SC_NPROCESSORS_ONLN); /* more processors than the set has bits for */
  return online > 0 ? (uint32_t)online : 1;
}

/* ---- threads ---- */

/* Starts a detached thread that gets no signals but those that its own faults raise. */
static int start_thread(void *(*run)(void *), void *arg) {
  sigset_t blocked, before;
  (void)sigfillset(&blocked);
  const int own[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF };
  for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) (void)sigdelset(&blocked, own[i]);
  pthread_attr_t attributes;
  int code = pthread_attr_init(&attributes);
  if (code != 0) return code;
  size_t stack = 0;
  if (pthread_attr_getstacksize(&attributes, &stack) == 0 && stack < STACK_BYTES)
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
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

/* Starts a worker that `workers` and `coming` count already. */
static int start_worker(void) {
  struct worker *worker = mmap(NULL, MAPPING_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int code = ENOMEM;
  if (worker != MAP_FAILED) {
    worker->public.shared = (char *)worker + WORKER_BYTES;
    code = start_thread(work, worker);
    if (code == 0) return 0;
    (void)munmap(worker, MAPPING_BYTES);
  }
  cpu_acquire(&pool.lock);
  pool.workers--;
  pool.coming--;
  cpu_release(&pool.lock);
  return code;
}

rill_status cpu_pool_start(void) {
  if (RILL__LIKELY(atomic_load_explicit(&pool.started, memory_order_acquire))) return RILL_OK;
  int code = 0;
  cpu_acquire(&pool.start_lock);
  if (!atomic_load(&pool.started)) {
    const uint32_t count = cpu_count();
    atomic_store(&pool.processors, count);
    pool.base = count > BASE_WORKERS ? count : BASE_WORKERS;
    pool.workers = pool.coming = 1;
    code = start_worker();
    atomic_store_explicit(&pool.started, code == 0, memory_order_release);
  }
  cpu_release(&pool.start_lock);
  RILL_REQUIRE(code == 0, RILL_ERROR_OUT_OF_MEMORY, "no worker thread could be started: %s", strerror(code));
  return RILL_OK;
}

/* ---- who is called when there is work ---- */

/* Somebody to call: a worker to wake, or the right to start one.  Under the lock. */
struct call {
  struct worker *wake;
  bool start;
};

static struct call call_worker(uint32_t limit) {
  struct call call = { .wake = pool.asleep };
  if (call.wake != NULL) {
    pool.asleep = call.wake->next_asleep;
    call.wake->asleep = false;
    pool.coming++;
  } else if (pool.workers < limit) {
    call.start = true;
    pool.workers++;
    pool.coming++;
  }
  return call;
}

static void *watch(void *unused);

/* Makes the watcher look after a ready queue that nobody can be called for.  True if it sleeps, or does not exist
 * yet.  Under the lock. */
static bool needs_watcher(void) {
  if (atomic_load_explicit(&pool.watch, memory_order_relaxed) != 0) return false;
  atomic_store_explicit(&pool.watch, 1, memory_order_release);
  return true;
}

/* Not under the lock. */
static void call_watcher(void) {
  cpu_acquire(&pool.lock);
  const bool start = !pool.watcher_exists;
  pool.watcher_exists = true;
  cpu_release(&pool.lock);
  if (!start) {
    cpu_wake_one(&pool.watch);
  } else if (start_thread(watch, NULL) != 0) {
    cpu_acquire(&pool.lock);
    pool.watcher_exists = false; /* the next one to find all workers busy tries again */
    atomic_store_explicit(&pool.watch, 0, memory_order_relaxed);
    cpu_release(&pool.lock);
  }
}

/* Not under the lock. */
static void make(struct call call) {
  if (call.wake != NULL) {
    atomic_store_explicit(&call.wake->woken, 1, memory_order_release);
    cpu_wake_one(&call.wake->woken);
  } else if (call.start && start_worker() != 0) {
    cpu_acquire(&pool.lock);
    const bool watcher = needs_watcher();
    cpu_release(&pool.lock);
    if (watcher) call_watcher();
  }
}

void cpu_pool_push(struct cpu_queue *queue) {
  const uint32_t level = queue->level;
  queue->next_ready = NULL;
  cpu_acquire(&pool.lock);
  if (pool.ready[level].last != NULL) {
    pool.ready[level].last->next_ready = queue;
  } else {
    pool.ready[level].first = queue;
    atomic_fetch_or_explicit(&pool.work, 1u << level, memory_order_relaxed);
  }
  pool.ready[level].last = queue;
  pool.ready_count++;
  struct call call = { NULL, false };
  bool watcher = false;
  if (pool.ready_count > pool.coming) {
    call = call_worker(pool.base);
    watcher = call.wake == NULL && !call.start && needs_watcher();
  }
  cpu_release(&pool.lock);
  make(call);
  if (watcher) call_watcher();
}

/* Under the lock. */
static struct cpu_queue *take_ready(void) {
  for (uint32_t level = 0; level < CPU_LEVELS; level++) {
    struct cpu_queue *queue = pool.ready[level].first;
    if (queue == NULL) continue;
    pool.ready[level].first = queue->next_ready;
    if (queue->next_ready == NULL) {
      pool.ready[level].last = NULL;
      atomic_fetch_and_explicit(&pool.work, ~(1u << level), memory_order_relaxed);
    }
    pool.ready_count--;
    pool.turns++;
    return queue;
  }
  return NULL;
}

bool cpu_pool_wants_other(uint32_t level, uint32_t count) {
  const uint32_t work = atomic_load_explicit(&pool.work, memory_order_relaxed);
  const uint32_t before = (1u << level) - 1, before_or_same = (2u << level) - 1;
  return (work & before) != 0 || (count % TURN == TURN - 1 && (work & before_or_same) != 0);
}

/* ---- jobs ----
 *
 * The owner of the queue and those who help are the participants.  Each takes ranges of parts until there are
 * none; the last one to leave ends the operation and becomes the owner of the queue, so nobody waits.
 * A job is in the list only while its owner has not left: a helper joins under the lock, which counts it before
 * the owner can be the last.  The owner leaves when all parts are taken, and from then on nobody opens it again.
 */

static bool has_parts(struct cpu_job *job) {
  return atomic_load_explicit(&job->taken, memory_order_relaxed) < job->parts;
}

/* Under the lock. */
static void open_job(struct cpu_job *job) {
  if (job->open) return;
  job->open = true;
  job->previous = NULL;
  job->next = pool.jobs;
  if (pool.jobs != NULL) pool.jobs->previous = job;
  pool.jobs = job;
  atomic_fetch_or_explicit(&pool.work, JOBS_BIT, memory_order_relaxed);
}

/* Under the lock. */
static void close_job(struct cpu_job *job) {
  if (!job->open) return;
  job->open = false;
  if (job->next != NULL) job->next->previous = job->previous;
  if (job->previous != NULL) {
    job->previous->next = job->next;
  } else {
    pool.jobs = job->next;
  }
  if (pool.jobs == NULL) atomic_fetch_and_explicit(&pool.work, ~(uint32_t)JOBS_BIT, memory_order_relaxed);
}

/* Under the lock. */
static struct cpu_job *join_job(void) {
  struct cpu_job *job = pool.jobs;
  if (job == NULL) return NULL;
  const uint32_t participants = atomic_fetch_add_explicit(&job->participants, 1, memory_order_relaxed) + 1;
  if (participants >= processors()) close_job(job);
  return job;
}

/* Wakes two workers for a job; each of them does the same, so that many are there soon. */
static void call_helpers(struct cpu_job *job) {
  for (int i = 0; i < 2; i++) {
    cpu_acquire(&pool.lock);
    struct call call = { NULL, false };
    const uint32_t there = atomic_load_explicit(&job->participants, memory_order_relaxed) + pool.coming;
    if (job->open && has_parts(job) && there < processors() && pool.coming < 2) call = call_worker(processors());
    cpu_release(&pool.lock);
    make(call);
  }
}

/* True if the caller was the last participant. */
static bool leave_job(struct cpu_job *job) {
  cpu_acquire(&pool.lock);
  if (!has_parts(job)) {
    close_job(job);
  } else {
    open_job(job); /* there is room again */
  }
  cpu_release(&pool.lock);
  return atomic_fetch_sub_explicit(&job->participants, 1, memory_order_acq_rel) == 1;
}

/* How many parts to take next: few enough that all participants end at about the same time. */
static uint64_t range_size(const struct cpu_job *job, uint64_t taken) {
  const uint64_t left = taken < job->parts ? job->parts - taken : 0;
  const uint64_t size = left / (4 * (uint64_t)processors());
  return size > 0 ? size : 1;
}

/* Runs parts until none is left.  `size` is what to take first. */
static bool run_range(struct cpu_job *job, uint64_t size) {
  const uint64_t first = atomic_fetch_add_explicit(&job->taken, size, memory_order_relaxed);
  if (first >= job->parts) return false;
  job->run(job->op, first, size < job->parts - first ? first + size : job->parts);
  return true;
}

bool cpu_pool_share(struct cpu_queue *queue, struct cpu_op *op, uint64_t parts,
                    void (*run)(struct cpu_op *op, uint64_t first, uint64_t end)) {
  if (parts == 1 || processors() == 1) {
    run(op, 0, parts);
    return true;
  }
  struct cpu_job *job = &queue->job;
  job->queue = queue;
  job->op = op;
  job->run = run;
  job->parts = parts;
  atomic_store_explicit(&job->participants, 1, memory_order_relaxed);
  atomic_store_explicit(&job->taken, 0, memory_order_relaxed);
  cpu_acquire(&pool.lock);
  open_job(job); /* whoever is awake may help */
  cpu_release(&pool.lock);

  /* Waking others is worth it only if this takes a while: try with 1 part, 2, 4, ... */
  const uint64_t begin = cpu_now();
  uint64_t size = 1;
  bool left = run_range(job, size);
  while (left && cpu_now() - begin < CALL_HELPERS_NS) {
    const uint64_t most = range_size(job, atomic_load_explicit(&job->taken, memory_order_relaxed));
    size = 2 * size < most ? 2 * size : most;
    left = run_range(job, size);
  }
  if (left && has_parts(job)) call_helpers(job);
  while (left) left = run_range(job, range_size(job, atomic_load_explicit(&job->taken, memory_order_relaxed)));
  return leave_job(job);
}

static void help(struct cpu_job *job) {
  call_helpers(job);
  while (run_range(job, range_size(job, atomic_load_explicit(&job->taken, memory_order_relaxed)))) {
    const uint32_t queues = atomic_load_explicit(&pool.work, memory_order_relaxed) & ~(uint32_t)JOBS_BIT;
    if (queues != 0) break; /* the owner goes on with the job; nobody else may be there for them */
  }
  if (leave_job(job)) cpu_queue_resume(job->queue);
}

/* ---- the life of a worker ---- */

/* Polls for work for a while.  Called and returns under the lock. */
static void spin(void) {
  pool.coming++;
  cpu_release(&pool.lock);
  const uint64_t until = cpu_now() + SPIN_NS;
  do {
    for (int i = 0; i < 8 && atomic_load_explicit(&pool.work, memory_order_relaxed) == 0; i++) cpu_relax();
  } while (atomic_load_explicit(&pool.work, memory_order_relaxed) == 0 && cpu_now() < until);
  cpu_acquire(&pool.lock);
  pool.coming--;
}

/* Whether a worker that slept too long for one beyond the base number ends.  Takes it off the list if so. */
static bool ends(void) {
  if (!self->asleep || pool.workers <= pool.base) return false;
  struct worker **link = &pool.asleep;
  while (*link != self) link = &(*link)->next_asleep;
  *link = self->next_asleep;
  pool.workers--;
  return true;
}

/* Sleeps until called; false if the worker is to end.  Called and returns under the lock. */
static bool sleep_until_called(void) {
  bool extra = pool.workers > pool.base;
  atomic_store_explicit(&self->woken, 0, memory_order_relaxed);
  self->asleep = true;
  self->next_asleep = pool.asleep;
  pool.asleep = self;
  cpu_release(&pool.lock);
  const uint64_t until = cpu_now() + EXTRA_IDLE_NS;
  const struct timespec deadline = cpu_timespec(until);
  while (atomic_load_explicit(&self->woken, memory_order_acquire) == 0) {
    cpu_sleep(&self->woken, 0, extra ? &deadline : NULL);
    if (!extra || cpu_now() < until) continue;
    cpu_acquire(&pool.lock);
    if (ends()) return false;
    cpu_release(&pool.lock);
    extra = false;
  }
  cpu_acquire(&pool.lock);
  pool.coming--;
  return true;
}

static void *work(void *worker) {
  self = worker;
  cpu_acquire(&pool.lock);
  pool.coming--;
  for (bool spun = false;;) {
    struct cpu_queue *queue = take_ready();
    struct cpu_job *job = queue == NULL ? join_job() : NULL;
    if (queue != NULL || job != NULL) {
      cpu_release(&pool.lock);
      if (queue != NULL) {
        cpu_queue_run(queue);
      } else {
        help(job);
      }
      cpu_acquire(&pool.lock);
      spun = false;
    } else if (!spun && pool.coming + 1 < processors()) {
      spin(); /* a processor is left for those who have something to do */
      spun = true;
    } else {
      if (!sleep_until_called()) break;
      spun = false;
    }
  }
  cpu_release(&pool.lock);
  cpu_fibers_free(self->public.fibers);
  (void)munmap(self, MAPPING_BYTES);
  return NULL;
}

/* ---- the watcher ---- */

/* Starts workers if nothing has moved since the last tick: a quarter more each time, so that many operations that
 * block are soon outnumbered.  False if nothing is ready any more. */
static bool look_after(uint64_t *turns) {
  cpu_acquire(&pool.lock);
  const bool ready = pool.ready_count > 0;
  uint32_t more = ready && pool.turns == *turns ? pool.workers / 4 + 1 : 0;
  *turns = pool.turns;
  if (!ready) atomic_store_explicit(&pool.watch, 0, memory_order_relaxed);
  for (; more > 0 && pool.ready_count > pool.coming; more--) {
    const struct call call = call_worker(pool.base + EXTRA_WORKERS);
    cpu_release(&pool.lock);
    make(call);
    cpu_acquire(&pool.lock);
  }
  cpu_release(&pool.lock);
  return ready;
}

static void *watch(void *unused) {
  (void)unused;
  for (;;) {
    while (atomic_load_explicit(&pool.watch, memory_order_acquire) == 0) cpu_sleep(&pool.watch, 0, NULL);
    uint64_t turns = UINT64_MAX;
    do {
      const struct timespec tick = cpu_timespec(TICK_NS);
      (void)nanosleep(&tick, NULL);
    } while (look_after(&turns));
  }
  return NULL;
}

/* ---- fork ---- */

void cpu_pool_reset(void) { memset(&pool, 0, sizeof pool); }
