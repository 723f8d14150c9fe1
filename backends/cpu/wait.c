/* Waits until a queue has reached a number. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/schedule.h"

#include <sched.h>

/* A thread polls for at most WAIT_YIELD_NS before it sleeps, because waking it takes as long as many kernels: 30 us on
 * some virtual machines.  After WAIT_SPIN_NS it yields its processor to workers at each step. */
enum { WAIT_SPIN_NS = 2000, WAIT_YIELD_NS = 300000 };

/* ---- the heap of waiters, under waiters_lock ----
 *
 * An insertion compares with the root only.  A removal of the root merges its children in pairs.  Each insertion pays
 * for one merge, so the amortized cost is O(log n).
 */

static void place_waiter(struct cpu_waiter *waiter, struct cpu_waiter **link) {
  waiter->beside = *link;
  if (waiter->beside != NULL) waiter->beside->link = &waiter->beside;
  waiter->link = link;
  *link = waiter;
}

/* Makes the element with the larger number a child of the other, and returns the other.  Neither may be in a heap. */
static struct cpu_waiter *merge(struct cpu_waiter *a, struct cpu_waiter *b) {
  struct cpu_waiter *const first = b->number < a->number ? b : a;
  place_waiter(first == a ? b : a, &first->below);
  return first;
}

static struct cpu_waiter *merge_all(struct cpu_waiter *list) {
  struct cpu_waiter *pairs = NULL, *all = NULL;
  while (list != NULL) {
    struct cpu_waiter *a = list, *b = list->beside;
    list = b != NULL ? b->beside : NULL;
    a = b != NULL ? merge(a, b) : a;
    a->beside = pairs;
    pairs = a;
  }
  while (pairs != NULL) {
    struct cpu_waiter *const pair = pairs;
    pairs = pair->beside;
    all = all != NULL ? merge(all, pair) : pair;
  }
  return all;
}

static void put_in(struct cpu_queue *queue, struct cpu_waiter *waiter) {
  struct cpu_waiter *const before = queue->waiters;
  waiter->below = NULL;
  queue->waiters = NULL;
  place_waiter(before != NULL ? merge(before, waiter) : waiter, &queue->waiters);
  atomic_store(&queue->wake_at, queue->waiters->number);
}

static void take_waiter_out(struct cpu_queue *queue, struct cpu_waiter *waiter) {
  *waiter->link = waiter->beside;
  if (waiter->beside != NULL) waiter->beside->link = waiter->link;
  waiter->link = NULL;
  struct cpu_waiter *rest = merge_all(waiter->below);
  if (rest != NULL && queue->waiters != NULL) rest = merge(rest, queue->waiters);
  if (rest != NULL) {
    queue->waiters = NULL;
    place_waiter(rest, &queue->waiters);
  }
  atomic_store(&queue->wake_at, queue->waiters != NULL ? queue->waiters->number : UINT64_MAX);
}

/* ---- waking ---- */

void rill__cpu_queue_wake(struct cpu_queue *queue, uint64_t completed) {
  struct cpu_waiter *woken = NULL, **end = &woken;
  cpu_acquire(&queue->waiters_lock);
  while (queue->waiters != NULL && queue->waiters->number <= completed) {
    struct cpu_waiter *const waiter = queue->waiters;
    take_waiter_out(queue, waiter);
    waiter->beside = NULL;
    *end = waiter;
    end = &waiter->beside;
  }
  cpu_release(&queue->waiters_lock);
  while (woken != NULL) {
    struct cpu_waiter *const waiter = woken;
    woken = waiter->beside;
    if (waiter->parked != NULL) {
      rill__cpu_workers_push(waiter->parked);
    } else if (waiter->waker != NULL) {
      waiter->waker->wake(waiter->waker);
    } else {
      /* After the store the waiter may no longer exist.  Waking whatever is at its address then is harmless. */
      _Atomic uint32_t *const word = &waiter->woken;
      atomic_store_explicit(word, 1, memory_order_release);
      rill__cpu_wake_one(word);
    }
  }
}

/* ---- waiting ---- */

/* Inserts a waiter into the heap.  Returns false without inserting it if there is nothing to wait for. */
static bool add_waiter(struct cpu_queue *queue, struct cpu_waiter *waiter) {
  cpu_acquire(&queue->waiters_lock);
  put_in(queue, waiter);
  /* A thread that loses the device takes this lock afterwards, to wake all waiters. */
  const bool waits = atomic_load(&queue->completed) < waiter->number && !cpu_is_lost(queue->device);
  if (!waits) take_waiter_out(queue, waiter);
  cpu_release(&queue->waiters_lock);
  return waits;
}

bool rill__cpu_queue_park(struct cpu_queue *queue, struct cpu_waiter *waiter) { return add_waiter(queue, waiter); }

/* Polls until the number is reached, from the time `now` to `until`.  Returns false if that takes too long, or if a job
 * of the queue needs a worker on each processor, and so also on the one on which this thread polls. */
static bool spin_until(struct cpu_queue *queue, uint64_t number, uint64_t now, uint64_t until) {
  const uint64_t yield = now + WAIT_SPIN_NS;
  until = until - now < WAIT_YIELD_NS ? until : now + WAIT_YIELD_NS;
  do {
    for (int i = 0; i < 8; i++) {
      if (cpu_queue_reached(queue, number)) return true;
      cpu_relax();
    }
    if (atomic_load_explicit(&queue->job.wanted, memory_order_relaxed) >= rill__cpu_count()) return false;
    if (now > yield) (void)sched_yield();
    now = cpu_now();
  } while (now < until);
  return false;
}

bool rill__cpu_queue_wait(struct cpu_queue *queue, uint64_t number, uint64_t ns, bool spin) {
  if (cpu_queue_reached(queue, number)) return true;
  if (RILL__UNLIKELY(rill__cpu_scheduled)) return rill__cpu_schedule_wait(queue, number, ns);
  if (ns == 0) return false;
  const uint64_t now = cpu_now();
  const bool forever = ns > UINT64_MAX / 4; /* centuries */
  const uint64_t until = forever ? UINT64_MAX : now + ns;
  if (spin && rill__cpu_workers_may_spin() && spin_until(queue, number, now, until)) return true;

  struct cpu_waiter waiter = { .number = number };
  if (!add_waiter(queue, &waiter)) return cpu_queue_reached(queue, number);
  const struct timespec deadline = cpu_timespec(until);
  while (atomic_load_explicit(&waiter.woken, memory_order_acquire) == 0) {
    rill__cpu_sleep(&waiter.woken, 0, forever ? NULL : &deadline);
    if (forever || cpu_now() < until) continue;
    cpu_acquire(&queue->waiters_lock);
    const bool still_waiting = waiter.link != NULL;
    if (still_waiting) take_waiter_out(queue, &waiter);
    cpu_release(&queue->waiters_lock);
    if (still_waiting) break;
    /* another thread has just removed the waiter, and is waking it */
    while (atomic_load_explicit(&waiter.woken, memory_order_acquire) == 0) rill__cpu_sleep(&waiter.woken, 0, NULL);
  }
  return cpu_queue_reached(queue, number);
}

/* ---- reading the caller's memory ---- */

/* One of the two accesses to `reading` comes first.  If the operation is first, the caller sees its number.  If the
 * caller is first, it has already seen that the device is lost, so the operation sees this as well. */
bool rill__cpu_queue_begin_reading(struct cpu_queue *queue) {
  (void)atomic_exchange(&queue->reading, queue->done + 1);
  return !cpu_is_lost(queue->device);
}

rill_status rill__cpu_queue_wait_for_reading(struct cpu_queue *queue, uint64_t number) {
  if (rill__cpu_queue_wait(queue, number, RILL__FOREVER, true)) return RILL_OK;
  while (atomic_fetch_add(&queue->reading, 0) == number && !cpu_queue_reached(queue, number)) {
    const struct timespec shortly = cpu_timespec(50000);
    (void)nanosleep(&shortly, NULL);
  }
  return rill__fail_lost(queue->device);
}
