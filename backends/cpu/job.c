/* Jobs: operations whose parts are shared by several workers.
 *
 * Parts are handed out in order, or by place.  By place means that the parts are cut into as many ranges as workers can
 * share a job, and each worker starts with the range of its own number.  This is the same range every time, so its data
 * is likely in the worker's caches and in the nearest memory.  When its own range is empty, the worker takes from the
 * other ranges, so a worker that arrives late or never delays nothing.
 *
 * Invariant: each part is run exactly once.
 *   - One word says how much of a range is taken: (round, taken).  A word with another round means that nothing is
 *     taken, so the words need no preparation for a job.  A round has 48 bits, which a queue never exhausts.  A worker
 *     changes the word to (round, taken + n) by compare-and-exchange and then runs these n parts; no other worker gets
 *     them.
 *   - Parts are never returned to a range.  A worker that has found every range empty once therefore knows that all
 *     parts are taken, and stores this in the job's `taken`.  A job is over when all workers that may still be running
 *     parts have left it.
 *
 * The owner of the queue and the helpers are the participants.  Each takes ranges of parts until there are none.  The
 * last one to leave ends the operation and becomes the owner of the queue, so no worker waits.  A participant that
 * faults takes the remaining parts without running them: the device is lost, and no other worker should start them.
 *
 * Invariant: the participant that leaves last is the only one that finds itself to be the last, and nobody joins after
 * it.
 *   - A helper joins by one addition to `joined` of the job's gate.  It has joined if the gate was open.  An addition
 *     to a closed gate means nothing, because opening the gate overwrites `joined`.  Gates are never freed, so a worker
 *     may come too late.
 *   - The owner opens the gate before it starts, and leaves when all parts are taken.  Each participant that leaves
 *     when all parts are taken closes the gate, if it is still open, by an exchange that returns how many have joined
 *     in all.
 *   - A participant subtracts 1 from `left` when it leaves, and the one that has closed the gate adds the number of
 *     those that have joined.  So `left` is below 0 until the gate is closed, and 0 when the last one has left. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/schedule.h"
#include "backends/cpu/workers_state.h"

#include <stdlib.h>
#include <string.h>

enum {
  CALL_HELPERS_NS = 4000, /* a job runs this long before sleeping workers are woken for it */
  LONG_NS = 1000000,      /* if a job would still take this long, all workers are woken as fast as possible */
  GAIN_NS = 15000         /* what the last worker has to gain to be woken; see call_helpers */
};

static bool has_parts(struct cpu_job *job) {
  return atomic_load_explicit(&job->taken, memory_order_relaxed) < job->parts;
}

/* ---- joining and leaving ---- */

static uint64_t bit_of(const struct cpu_gate *gate) { return UINT64_C(1) << (gate - rill__cpu_workers.gates); }

/* Lets workers join the job, unless all gates are in use. */
static void open_job(struct cpu_job *job) {
  uint64_t used = atomic_load_explicit(&rill__cpu_workers.gates_used, memory_order_relaxed), bit;
  do {
    bit = ~used & (used + 1); /* the lowest bit that is not set */
    if (bit >> CPU_GATES != 0) return;
  } while (!atomic_compare_exchange_weak_explicit(&rill__cpu_workers.gates_used, &used, used | bit,
                                                  memory_order_acquire, memory_order_relaxed));
  struct cpu_gate *const gate = job->gate = &rill__cpu_workers.gates[__builtin_ctzll(bit)];
  RILL_ASSERT((atomic_load(&gate->joined) & CPU_GATE_OPEN) == 0, "an unused gate is closed");
  gate->job = job;
  atomic_store_explicit(&gate->left, 0, memory_order_relaxed);
  atomic_store_explicit(&gate->joined, CPU_GATE_OPEN + 1, memory_order_release);
  atomic_fetch_or(&rill__cpu_workers.work, bit << CPU_LEVELS);
}

/* Returns the number of participants, UINT32_MAX if the gate is closed. */
static uint32_t participants_of(const struct cpu_gate *gate) {
  const uint64_t joined = atomic_load_explicit(&gate->joined, memory_order_relaxed);
  if ((joined & CPU_GATE_OPEN) == 0) return UINT32_MAX;
  return (uint32_t)(joined + (uint64_t)atomic_load_explicit(&gate->left, memory_order_relaxed));
}

struct cpu_job *rill__cpu_job_join(uint64_t work) {
  for (uint64_t open = work >> CPU_LEVELS; open != 0; open &= open - 1) {
    struct cpu_gate *const gate = &rill__cpu_workers.gates[__builtin_ctzll(open)];
    if (participants_of(gate) >= cpu_workers_processors()) continue;
    if ((atomic_fetch_add_explicit(&gate->joined, 1, memory_order_acquire) & CPU_GATE_OPEN) != 0) return gate->job;
  }
  return NULL;
}

/* Returns true if the caller was the last participant. */
static bool leave_job(struct cpu_job *job) {
  struct cpu_gate *const gate = job->gate;
  if (gate == NULL) {
    atomic_store_explicit(&job->wanted, 0, memory_order_relaxed);
    return true;
  }
  int64_t change = -1;
  if (!has_parts(job) && (atomic_load_explicit(&gate->joined, memory_order_relaxed) & CPU_GATE_OPEN) != 0) {
    const uint64_t joined = atomic_exchange_explicit(&gate->joined, 0, memory_order_relaxed);
    if ((joined & CPU_GATE_OPEN) != 0) {
      atomic_fetch_and_explicit(&rill__cpu_workers.work, ~(bit_of(gate) << CPU_LEVELS), memory_order_relaxed);
      change += (int64_t)(joined & ~CPU_GATE_OPEN);
    }
  }
  const bool last = atomic_fetch_add_explicit(&gate->left, change, memory_order_acq_rel) + change == 0;
  if (!last) return false;
  atomic_store_explicit(&job->wanted, 0, memory_order_relaxed);
  RILL_ASSERT(atomic_load(&job->faulted) || atomic_load(&job->ran) == job->parts,
              "each part has been run exactly once when the last participant leaves");
  RILL_ASSERT((atomic_load(&gate->joined) & CPU_GATE_OPEN) == 0, "nobody joins after the last participant");
  atomic_fetch_and_explicit(&rill__cpu_workers.gates_used, ~bit_of(gate), memory_order_release);
  return true;
}

/* ---- waking workers ---- */

/* Returns true if another worker should be called.  For a job that is not long, at most two are on their way at a
 * time. */
static bool needs_helpers(struct cpu_job *job, bool is_long) {
  const uint32_t coming = atomic_load(&rill__cpu_workers.coming);
  const uint64_t there = (uint64_t)participants_of(job->gate) + coming;
  return has_parts(job) && there < atomic_load(&job->wanted) && (is_long || coming < 2);
}

/* Wakes two workers for a job, or four if the job is long.  Each of them does the same, so many arrive soon.  Most
 * participants find without the lock that nobody has to be called.  If there is a worker for each processor, the thread
 * that waits for the job is polling on the last one, so the last worker is woken only if it shortens the job by
 * GAIN_NS, or if a single part takes so long.  That thread then sleeps (wait.c). */
static void call_helpers(struct cpu_job *job) {
  const bool is_long = atomic_load_explicit(&job->is_long, memory_order_relaxed);
  for (int i = 0; i < (is_long ? 4 : 2) && needs_helpers(job, is_long); i++) {
    cpu_acquire(&rill__cpu_workers.lock);
    struct cpu_workers_call call = { NULL, false };
    if (needs_helpers(job, is_long)) call = rill__cpu_workers_find(cpu_workers_processors());
    cpu_release(&rill__cpu_workers.lock);
    rill__cpu_workers_make(call);
  }
}

static void run_parts(struct cpu_job *job, uint64_t first, uint64_t end) {
  RILL_ASSERT(first < end && end <= job->parts, "only parts of the job are run");
  job->run(job->op, first, end);
#if RILL_CHECKS
  (void)atomic_fetch_add_explicit(&job->ran, end - first, memory_order_relaxed);
#endif
}

/* ---- parts in order ---- */

static uint64_t min_of(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Returns how many of the remaining parts to take: few enough that all participants end at about the same time. */
static uint64_t share_of(uint64_t left, uint32_t participants) {
  const uint64_t size = left / (4 * (uint64_t)participants);
  return size > 0 ? size : 1;
}

static uint64_t run_next(struct cpu_job *job, uint64_t most) {
  const uint64_t taken = atomic_load_explicit(&job->taken, memory_order_relaxed);
  if (taken >= job->parts) return 0;
  const uint64_t size = min_of(share_of(job->parts - taken, cpu_workers_processors()), most);
  const uint64_t first = atomic_fetch_add_explicit(&job->taken, size, memory_order_relaxed);
  if (first >= job->parts) return 0;
  const uint64_t count = min_of(size, job->parts - first);
  run_parts(job, first, first + count);
  return count;
}

/* ---- parts by place ---- */

enum { TAKEN_BITS = 16, TAKEN_END = 1 << TAKEN_BITS };

struct cpu_claims {
  uint32_t count;
  struct {
    _Alignas(64) _Atomic uint64_t word;
  } of[];
};

/* Returns the job's claims with room for `count` ranges, or NULL if memory ran out.  `job->claims` is valid at any
 * time, because a fork may happen at any time. */
static struct cpu_claims *claims_for(struct cpu_job *job, uint32_t count) {
  struct cpu_claims *const before = job->claims;
  if (before != NULL && before->count >= count) return before;
  const size_t size = sizeof *before + count * sizeof before->of[0];
  struct cpu_claims *const claims = aligned_alloc(_Alignof(struct cpu_claims), size);
  if (claims == NULL) return NULL;
  memset(claims, 0, size);
  claims->count = count;
  job->claims = claims;
  free(before);
  return claims;
}

static void cut_into_ranges(struct cpu_job *job) {
  const uint32_t ranges = (uint32_t)min_of(cpu_workers_processors(), job->parts);
  if (claims_for(job, ranges) == NULL) return;
  job->ranges = ranges;
  job->length = job->parts / ranges;
  job->longer = job->parts % ranges;
  for (job->shift = 0; job->length >> job->shift >= TAKEN_END - 2; job->shift++) {
  }
  job->round++;
  RILL_ASSERT(job->round >> (64 - TAKEN_BITS) == 0, "a round fits into the word with the number of taken parts");
}

/* A participant's position among the ranges. */
struct cursor {
  uint32_t range;
  uint32_t left; /* number of ranges that it has not found empty */
};

static struct cursor start_at_own(const struct cpu_job *job) {
  const uint32_t ranges = job->ranges, number = rill__cpu_worker_self()->number;
  return (struct cursor){ number < ranges || ranges == 0 ? number : number % ranges, ranges };
}

static uint64_t run_of_range(struct cpu_job *job, uint64_t range, uint64_t most) {
  const uint64_t first = range * job->length + min_of(range, job->longer), length = job->length + (range < job->longer);
  const uint64_t all = (length + (UINT64_C(1) << job->shift) - 1) >> job->shift;
  _Atomic uint64_t *const word = &job->claims->of[range].word;
  uint64_t seen = atomic_load_explicit(word, memory_order_relaxed), taken, size;
  do {
    taken = seen >> TAKEN_BITS == job->round ? seen % TAKEN_END : 0;
    RILL_ASSERT(taken <= all && all < TAKEN_END, "no more parts of a range are taken than it has");
    if (taken == all) return 0;
    size = min_of(share_of(all - taken, 1), most);
  } while (!atomic_compare_exchange_weak_explicit(word, &seen, (job->round << TAKEN_BITS) + taken + size,
                                                  memory_order_relaxed, memory_order_relaxed));
  const uint64_t begin = taken << job->shift, end = min_of((taken + size) << job->shift, length);
  run_parts(job, first + begin, first + end);
  return end - begin;
}

/* ---- both orders ---- */

/* Runs at most `most` parts, or groups of parts if ranges are long.  Returns the number of parts run; 0 if none is
 * left. */
static uint64_t run_some(struct cpu_job *job, struct cursor *cursor, uint64_t most) {
  if (job->ranges == 0) return run_next(job, most);
  for (; cursor->left > 0 && has_parts(job); cursor->left--) {
    const uint64_t count = run_of_range(job, cursor->range, most);
    if (count > 0) return count;
    cursor->range = cursor->range + 1 < job->ranges ? cursor->range + 1 : 0;
  }
  atomic_store_explicit(&job->taken, job->parts, memory_order_relaxed);
  return 0;
}

/* Runs 1 part, then 2, 4, ... until waking other workers is worthwhile.  Returns true if parts remain. */
static bool try_alone(struct cpu_job *job, struct cursor *cursor) {
  const uint64_t begin = cpu_now();
  uint64_t done = 0, spent = 0;
  for (uint64_t most = 1; spent < CALL_HELPERS_NS; most = min_of(2 * most, UINT32_MAX)) {
    const uint64_t count = run_some(job, cursor, most);
    if (count == 0) return false;
    done += count;
    spent = cpu_now() - begin;
    job->part_ns = spent / done;
  }
  const double rest = (double)spent / (double)done * (double)(job->parts - done);
  const uint32_t all = cpu_workers_processors();
  const bool last_too = all < rill__cpu_count() || job->part_ns > GAIN_NS || rest / all / (all - 1) > (double)GAIN_NS;
  atomic_store_explicit(&job->is_long, rest > (double)LONG_NS, memory_order_relaxed);
  atomic_store(&job->wanted, (uint32_t)min_of(last_too ? all : all - 1, job->parts));
  return has_parts(job);
}

bool rill__cpu_workers_share(struct cpu_queue *queue, struct cpu_op *op, uint64_t parts, enum cpu_sharing sharing,
                             void (*run)(struct cpu_op *op, uint64_t first, uint64_t end)) {
  struct cpu_worker *const self = rill__cpu_worker_self();
  self->queue = queue;
  self->job = NULL;
  if (RILL__UNLIKELY(rill__cpu_scheduled) && parts > 1) return rill__cpu_schedule_share(queue, op, parts, sharing, run);
  if (parts == 1 || cpu_workers_processors() == 1) {
    run(op, 0, parts);
    return true;
  }
  struct cpu_job *job = self->job = &queue->job;
  job->queue = queue;
  job->op = op;
  job->run = run;
  job->parts = parts;
  job->gate = NULL;
  atomic_store_explicit(&job->is_long, false, memory_order_relaxed);
  job->ranges = 0;
  if (sharing == CPU_BY_PLACE) cut_into_ranges(job);
  atomic_store_explicit(&job->ran, 0, memory_order_relaxed);
  atomic_store_explicit(&job->faulted, false, memory_order_relaxed);
  atomic_store_explicit(&job->taken, 0, memory_order_relaxed);
  open_job(job); /* workers that are awake may help */
  if (job->part_ns > GAIN_NS && job->gate != NULL) {
    /* The parts of the latest job were long, so others are called before this worker runs one. */
    atomic_store_explicit(&job->is_long, true, memory_order_relaxed);
    atomic_store(&job->wanted, (uint32_t)min_of(cpu_workers_processors(), parts));
    call_helpers(job);
  }

  struct cursor cursor = start_at_own(job);
  if (try_alone(job, &cursor)) {
    do {
      if (job->gate == NULL) open_job(job);
      if (job->gate != NULL) call_helpers(job);
    } while (run_some(job, &cursor, UINT64_MAX) > 0);
  }
  return leave_job(job);
}

/* Sequentially consistent; see find_task in workers.c. */
static bool is_queue_ready(void) { return (atomic_load(&rill__cpu_workers.work) & CPU_LEVELS_MASK) != 0; }

void rill__cpu_job_help(struct cpu_job *job) {
  struct cpu_worker *const self = rill__cpu_worker_self();
  self->queue = job->queue;
  self->job = job;
  if (is_queue_ready() || participants_of(job->gate) > cpu_workers_processors()) {
    if (leave_job(job)) rill__cpu_queue_pass_on(job->queue);
    return;
  }
  call_helpers(job);
  struct cursor cursor = start_at_own(job);
  while (run_some(job, &cursor, UINT64_MAX) > 0) {
    if (is_queue_ready()) break; /* the owner continues the job, but there may be no other worker for the queue */
  }
  if (leave_job(job)) rill__cpu_queue_resume(job->queue);
}

bool rill__cpu_job_abort(struct cpu_job *job) {
  atomic_store_explicit(&job->faulted, true, memory_order_relaxed);
  atomic_store_explicit(&job->taken, job->parts, memory_order_relaxed);
  return leave_job(job);
}
