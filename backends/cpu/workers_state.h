/* State shared by workers.c, job.c and watch.c. */
#ifndef RILL_CPU_WORKERS_STATE_H
#define RILL_CPU_WORKERS_STATE_H

#include "backends/cpu/workers.h"

enum { CPU_GATES = 61 };                                  /* number of jobs that workers may join at a time */
#define CPU_LEVELS_MASK ((UINT64_C(1) << CPU_LEVELS) - 1) /* bits of rill__cpu_workers.work that stand for queues */

/* The entrance to a job.  It outlives the job, so that a worker can try to join without a lock; see job.c. */
struct cpu_gate {
  _Alignas(64) _Atomic uint64_t joined; /* CPU_GATE_OPEN and the number of participants that have joined */
  struct cpu_job *job;                  /* constant while the gate is open */
  _Alignas(64) _Atomic int64_t left;    /* minus the number of participants that have left; plus all, once closed */
};
#define CPU_GATE_OPEN (UINT64_C(1) << 63)

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
  struct cpu_workers_worker *asleep; /* last one to fall asleep first, because its caches are warm */
  uint32_t workers;
  _Atomic uint32_t coming;       /* polling, woken or starting: they look at the ready queues before they sleep */
  uint32_t base;                 /* number of workers that never end */
  uint64_t turns;                /* number of queues taken */
  bool numbers[CPU_WORKERS_ALL]; /* numbers in use */
  bool watcher_exists;

  struct cpu_lock start_lock;
  _Atomic bool started;
  _Atomic uint32_t processors; /* maximum number of workers that share a job */

  /* Read without the lock by polling workers: one bit for each level with a ready queue, which changes under the lock,
   * and after these one for each gate that is open. */
  _Alignas(64) _Atomic uint64_t work;
  struct cpu_gate gates[CPU_GATES];
  _Alignas(64) _Atomic uint64_t gates_used; /* one bit for each gate that has a job */

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

/* job.c: joins a job whose bit is set in `work`, or returns NULL. */
struct cpu_job *rill__cpu_job_join(uint64_t work);

/* Helps with a job that the caller has joined. */
void rill__cpu_job_help(struct cpu_job *job);

/* Leaves the job for a participant that faulted.  Returns true if it was the last participant. */
bool rill__cpu_job_abort(struct cpu_job *job);

#endif
