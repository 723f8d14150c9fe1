/* State shared by workers.c, job.c and watch.c. */
#ifndef RILL_CPU_WORKERS_STATE_H
#define RILL_CPU_WORKERS_STATE_H

#include "backends/cpu/workers.h"

enum { CPU_JOBS_BIT = 1u << CPU_LEVELS }; /* bit in rill__cpu_workers.work */

enum {
  CPU_WORKERS_EXTRA = 252, /* maximum number beyond the base number */
  CPU_WORKERS_ALL = CPU_WORKERS_MAX + CPU_WORKERS_EXTRA
};

struct cpu_workers_worker {
  struct cpu_worker public;
  struct cpu_workers_worker *next_asleep, *next_faulted;
  bool asleep; /* true while in the list */
  _Atomic uint32_t woken;
};

extern struct cpu_workers {
  struct cpu_lock lock;
  struct {
    struct cpu_queue *first, *last;
  } ready[CPU_LEVELS];
  uint32_t ready_count;
  struct cpu_job *jobs;              /* jobs that workers may join */
  struct cpu_workers_worker *asleep; /* last one to fall asleep first, because its caches are warm */
  uint32_t workers;
  _Atomic uint32_t coming; /* spinning, woken or starting: they look for work before they sleep; set under the lock */
  uint32_t base;           /* number of workers that never end */
  uint64_t turns;          /* number of queues taken */
  bool numbers[CPU_WORKERS_ALL]; /* numbers in use */
  bool watcher_exists;

  struct cpu_lock start_lock;
  _Atomic bool started;
  _Atomic uint32_t processors; /* maximum number of workers that share a job */

  /* Read without the lock by spinning workers: one bit for each level with a ready queue, and CPU_JOBS_BIT. */
  _Alignas(64) _Atomic uint32_t work;

  _Alignas(64) _Atomic uint32_t watch;          /* 1 while the watcher has to be awake */
  _Atomic(struct cpu_workers_worker *) faulted; /* latest first */
} rill__cpu_workers;

static inline uint32_t cpu_workers_processors(void) {
  return atomic_load_explicit(&rill__cpu_workers.processors, memory_order_relaxed);
}

/* Starts a detached thread that receives no signals except those that its own faults raise. */
int rill__cpu_thread_start(void *(*run)(void *), void *arg);

/* Chooses a worker to wake, or reserves the right to start one if there are fewer than `limit`.  Call it under the
 * lock. */
struct cpu_workers_call {
  struct cpu_workers_worker *wake;
  bool start;
};
struct cpu_workers_call rill__cpu_workers_find(uint32_t limit);

/* Removes a worker that no longer runs anything from the counts.  Call it under the lock. */
void rill__cpu_workers_count_out(struct cpu_worker *worker);

/* Wakes or starts the chosen worker.  Call it without the lock. */
void rill__cpu_workers_make(struct cpu_workers_call call);

/* watch.c: asks the watcher to handle a ready queue for which no worker can be called.  Call the first under the lock;
 * if it returns true, call the second afterwards, without the lock. */
bool rill__cpu_workers_needs_watcher(void);
void rill__cpu_workers_call_watcher(void);

/* job.c: joins an open job, or returns NULL.  Call it under the lock. */
struct cpu_job *rill__cpu_job_join(void);

/* Helps with a job that the caller has joined. */
void rill__cpu_job_help(struct cpu_job *job);

/* Leaves the job for a participant that faulted.  Returns true if it was the last participant. */
bool rill__cpu_job_abort(struct cpu_job *job);

#endif
