/* Jobs: operations whose parts several workers share.
 *
 * The owner of the queue and those who help are the participants.  Each takes ranges of parts until there are
 * none; the last one to leave ends the operation and becomes the owner of the queue, so nobody waits.
 * A job is in the list only while its owner has not left: a helper joins under the lock, which counts it before
 * the owner can be the last.  The owner leaves when all parts are taken, and from then on nobody opens it again.  A
 * participant that falls takes what parts there are with it: the device is lost, and nobody is to begin them.
 */
#include "backends/cpu/workers_state.h"

enum { CALL_HELPERS_NS = 4000 /* what a job takes before sleeping workers are woken for it */ };

static bool has_parts(struct cpu_job *job) {
  return atomic_load_explicit(&job->taken, memory_order_relaxed) < job->parts;
}

/* Under the lock. */
static void open_job(struct cpu_job *job) {
  if (job->open) return;
  job->open = true;
  job->previous = NULL;
  job->next = rill__cpu_workers.jobs;
  if (rill__cpu_workers.jobs != NULL) rill__cpu_workers.jobs->previous = job;
  rill__cpu_workers.jobs = job;
  atomic_fetch_or_explicit(&rill__cpu_workers.work, CPU_JOBS_BIT, memory_order_relaxed);
}

/* Under the lock. */
static void close_job(struct cpu_job *job) {
  if (!job->open) return;
  job->open = false;
  if (job->next != NULL) job->next->previous = job->previous;
  if (job->previous != NULL) {
    job->previous->next = job->next;
  } else {
    rill__cpu_workers.jobs = job->next;
  }
  if (rill__cpu_workers.jobs == NULL)
    atomic_fetch_and_explicit(&rill__cpu_workers.work, ~(uint32_t)CPU_JOBS_BIT, memory_order_relaxed);
}

struct cpu_job *rill__cpu_job_join(void) {
  struct cpu_job *job = rill__cpu_workers.jobs;
  if (job == NULL) return NULL;
  const uint32_t participants = atomic_fetch_add_explicit(&job->participants, 1, memory_order_relaxed) + 1;
  if (participants >= cpu_workers_processors()) close_job(job);
  return job;
}

/* Wakes two workers for a job; each of them does the same, so that many are there soon. */
static void call_helpers(struct cpu_job *job) {
  const uint32_t processors = cpu_workers_processors();
  for (int i = 0; i < 2; i++) {
    cpu_acquire(&rill__cpu_workers.lock);
    struct cpu_workers_call call = { NULL, false };
    const uint32_t there = atomic_load_explicit(&job->participants, memory_order_relaxed) + rill__cpu_workers.coming;
    if (job->open && has_parts(job) && there < processors && rill__cpu_workers.coming < 2)
      call = rill__cpu_workers_find(processors);
    cpu_release(&rill__cpu_workers.lock);
    rill__cpu_workers_make(call);
  }
}

/* True if the caller was the last participant. */
static bool leave_job(struct cpu_job *job) {
  cpu_acquire(&rill__cpu_workers.lock);
  if (!has_parts(job)) {
    close_job(job);
  } else {
    open_job(job); /* there is room again */
  }
  cpu_release(&rill__cpu_workers.lock);
  return atomic_fetch_sub_explicit(&job->participants, 1, memory_order_acq_rel) == 1;
}

/* How many parts to take next: few enough that all participants end at about the same time. */
static uint64_t range_size(const struct cpu_job *job, uint64_t taken) {
  const uint64_t left = taken < job->parts ? job->parts - taken : 0;
  const uint64_t size = left / (4 * (uint64_t)cpu_workers_processors());
  return size > 0 ? size : 1;
}

/* Runs parts until none is left.  `size` is what to take first. */
static bool run_range(struct cpu_job *job, uint64_t size) {
  const uint64_t first = atomic_fetch_add_explicit(&job->taken, size, memory_order_relaxed);
  if (first >= job->parts) return false;
  job->run(job->op, first, size < job->parts - first ? first + size : job->parts);
  return true;
}

bool rill__cpu_workers_share(struct cpu_queue *queue, struct cpu_op *op, uint64_t parts,
                             void (*run)(struct cpu_op *op, uint64_t first, uint64_t end)) {
  struct cpu_worker *const self = rill__cpu_worker_self();
  self->queue = queue;
  self->job = NULL;
  if (parts == 1 || cpu_workers_processors() == 1) {
    run(op, 0, parts);
    return true;
  }
  struct cpu_job *job = self->job = &queue->job;
  job->queue = queue;
  job->op = op;
  job->run = run;
  job->parts = parts;
  atomic_store_explicit(&job->participants, 1, memory_order_relaxed);
  atomic_store_explicit(&job->taken, 0, memory_order_relaxed);
  cpu_acquire(&rill__cpu_workers.lock);
  open_job(job); /* whoever is awake may help */
  cpu_release(&rill__cpu_workers.lock);

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

void rill__cpu_job_help(struct cpu_job *job) {
  struct cpu_worker *const self = rill__cpu_worker_self();
  self->queue = job->queue;
  self->job = job;
  call_helpers(job);
  while (run_range(job, range_size(job, atomic_load_explicit(&job->taken, memory_order_relaxed)))) {
    const uint32_t queues =
        atomic_load_explicit(&rill__cpu_workers.work, memory_order_relaxed) & ~(uint32_t)CPU_JOBS_BIT;
    if (queues != 0) break; /* the owner goes on with the job; nobody else may be there for them */
  }
  if (leave_job(job)) rill__cpu_queue_resume(job->queue);
}

bool rill__cpu_job_give_up(struct cpu_job *job) {
  atomic_store_explicit(&job->taken, job->parts, memory_order_relaxed);
  return leave_job(job);
}
