/* What the files of the workers share: workers.c, job.c, watch.c. */
#ifndef RILL_CPU_WORKERS_STATE_H
#define RILL_CPU_WORKERS_STATE_H

#include "backends/cpu/workers.h"

enum { CPU_JOBS_BIT = 1u << CPU_LEVELS }; /* in rill__cpu_workers.work */

enum {
  CPU_WORKERS_EXTRA = 252, /* at most, beyond the base number */
  CPU_WORKERS_ALL = CPU_WORKERS_MOST + CPU_WORKERS_EXTRA
};

struct cpu_workers_worker {
  struct cpu_worker public;
  struct cpu_workers_worker *next_asleep, *next_fallen;
  bool asleep; /* in the list */
  _Atomic uint32_t woken;
};

extern struct cpu_workers {
  struct cpu_lock lock;
  struct {
    struct cpu_queue *first, *last;
  } ready[CPU_LEVELS];
  uint32_t ready_count;
  struct cpu_job *jobs;              /* open: with parts left and room for another worker */
  struct cpu_workers_worker *asleep; /* the last to fall asleep first: its caches are warm */
  uint32_t workers, coming;          /* coming: spinning, woken or starting; they look here before they sleep */
  uint32_t base;                     /* workers that do not end */
  uint64_t turns;                    /* queues taken */
  bool numbers[CPU_WORKERS_ALL];     /* those that workers have */
  bool watcher_exists;

  struct cpu_lock start_lock;
  _Atomic bool started;
  _Atomic uint32_t processors; /* workers that share a job at most */

  /* Read without the lock by those who poll: a bit for each level with a ready queue, and CPU_JOBS_BIT. */
  _Alignas(64) _Atomic uint32_t work;

  _Alignas(64) _Atomic uint32_t watch;         /* 1 while the watcher is to be awake */
  _Atomic(struct cpu_workers_worker *) fallen; /* the latest first */
} rill__cpu_workers;

static inline uint32_t cpu_workers_processors(void) {
  return atomic_load_explicit(&rill__cpu_workers.processors, memory_order_relaxed);
}

/* Starts a detached thread that gets no signals but those that its own faults raise. */
int rill__cpu_thread_start(void *(*run)(void *), void *arg);

/* Somebody to call: a worker to wake, or the right to start one, if there are fewer than `limit`.  Under the lock. */
struct cpu_workers_call {
  struct cpu_workers_worker *wake;
  bool start;
};
struct cpu_workers_call rill__cpu_workers_find(uint32_t limit);

/* For a worker that runs nothing any more.  Under the lock. */
void rill__cpu_workers_count_out(struct cpu_worker *worker);

/* Not under the lock. */
void rill__cpu_workers_make(struct cpu_workers_call call);

/* watch.c.  Makes the watcher look after a ready queue that nobody can be called for: true, under the lock, if
 * rill__cpu_workers_call_watcher is to be called afterwards, without it. */
bool rill__cpu_workers_needs_watcher(void);
void rill__cpu_workers_call_watcher(void);

/* job.c.  Joins an open job, or returns NULL.  Under the lock. */
struct cpu_job *rill__cpu_job_join(void);

/* Helps with a job that the caller has joined. */
void rill__cpu_job_help(struct cpu_job *job);

/* For a participant that fell: true if it was the last. */
bool rill__cpu_job_give_up(struct cpu_job *job);

#endif
