/* All queues, for those who look at more than one.
 *
 * Each is in one of two lists.  It is put among the busy when something is submitted to it, and back among the idle by
 * who waits for all queues and finds it without work: so that wait costs nothing for queues that have none, and to
 * submit costs a look at `busy`.  Who submits stores `submitted` and then looks at `busy`; who puts it back clears
 * `busy` and then looks at `submitted`: in the order of those four accesses one of them sees what the other one did.
 */
#include "backends/cpu/schedule.h"

struct list {
  struct cpu_queue *first, *last;
};

static struct cpu_lock queues_lock;
static struct list idle, busy;
static uint64_t last_serial;

static void append_queue(struct list *list, struct cpu_queue *queue) {
  queue->next = NULL;
  queue->previous = list->last;
  *(list->last != NULL ? &list->last->next : &list->first) = queue;
  list->last = queue;
}

static void take_queue_out(struct list *list, struct cpu_queue *queue) {
  *(queue->previous != NULL ? &queue->previous->next : &list->first) = queue->next;
  *(queue->next != NULL ? &queue->next->previous : &list->last) = queue->previous;
}

void rill__cpu_queues_add(struct cpu_queue *queue) {
  cpu_acquire(&queues_lock);
  append_queue(&idle, queue);
  cpu_release(&queues_lock);
}

void rill__cpu_queues_remove(struct cpu_queue *queue) {
  cpu_acquire(&queues_lock);
  take_queue_out(atomic_load(&queue->busy) ? &busy : &idle, queue);
  cpu_release(&queues_lock);
}

void rill__cpu_queues_add_busy(struct cpu_queue *queue) {
  cpu_acquire(&queues_lock);
  if (!atomic_load(&queue->busy)) {
    take_queue_out(&idle, queue);
    queue->serial = ++last_serial;
    append_queue(&busy, queue);
    atomic_store(&queue->busy, true);
  }
  cpu_release(&queues_lock);
}

/* ---- waiting for all ---- */

static bool has_work(struct cpu_queue *queue) {
  return atomic_load(&queue->completed) != atomic_load(&queue->submitted);
}

/* Puts it among the idle, if it is.  Under the lock. */
static void put_queue_back(struct cpu_queue *queue) {
  if (queue->walkers != 0 || has_work(queue)) return;
  atomic_store(&queue->busy, false);
  if (has_work(queue)) {
    atomic_store(&queue->busy, true);
  } else {
    take_queue_out(&busy, queue);
    append_queue(&idle, queue);
  }
}

/* Adds a reference to a queue of the list, unless the last one has gone.  Under the lock. */
static bool retain_listed(struct cpu_queue *queue) {
  uint32_t references = atomic_load_explicit(&queue->references, memory_order_relaxed);
  while (references != 0) {
    if (atomic_compare_exchange_weak_explicit(&queue->references, &references, references + 1, memory_order_relaxed,
                                              memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

/* Releases the lock meanwhile; the queue stays where it is, so that the way on from it is known.  Keeps the queue in
 * place of `kept`. */
static bool wait_for(struct cpu_queue *queue, struct cpu_queue **kept) {
  if (!retain_listed(queue)) return true; /* it has no work */
  const uint64_t number = cpu_queue_submitted(queue);
  queue->walkers++;
  cpu_release(&queues_lock);
  if (*kept != NULL) rill__cpu_queue_release(*kept);
  *kept = queue;
  const bool reached = rill__cpu_queue_wait(queue, number, RILL__FOREVER, true);
  cpu_acquire(&queues_lock);
  queue->walkers--;
  return reached;
}

bool rill__cpu_queues_synchronize(void) {
  struct cpu_queue *kept = NULL;
  bool reached = true;
  cpu_acquire(&queues_lock);
  const uint64_t last = last_serial;
  for (struct cpu_queue *queue = busy.first; queue != NULL && queue->serial <= last && reached;) {
    if (has_work(queue)) reached = wait_for(queue, &kept);
    struct cpu_queue *const next = queue->next;
    put_queue_back(queue);
    queue = next;
  }
  cpu_release(&queues_lock);
  if (kept != NULL) rill__cpu_queue_release(kept);
  return reached;
}

/* ---- the end of waiting ---- */

/* Of idle ones too: one may be about to be put among the busy. */
void rill__cpu_queues_give_up(void) {
  const struct list *const lists[] = { &busy, &idle };
  cpu_acquire(&queues_lock);
  for (int i = 0; i < 2; i++) {
    for (struct cpu_queue *queue = lists[i]->first; queue != NULL; queue = queue->next) {
      rill__cpu_queue_wake(queue, UINT64_MAX);
    }
  }
  cpu_release(&queues_lock);
  if (rill__cpu_scheduled) rill__cpu_schedule_give_up();
}

/* ---- fork ---- */

void rill__cpu_queues_lock(void) { cpu_acquire(&queues_lock); }
void rill__cpu_queues_unlock(void) { cpu_release(&queues_lock); }

/* Other threads may have been anywhere in a queue when the process was forked, so no more of it is trusted than the
 * links from the head on and the count of what was submitted.  What pending operations held is given up: one may have
 * been about to end. */
static void reset(struct cpu_queue *queue) {
  const uint64_t submitted = atomic_load(&queue->submitted);
  atomic_store(&queue->active, false);
  rill__cpu_queue_forget_chunks(queue);
  queue->seen = queue->done = submitted;
  queue->walkers = 0;
  atomic_store(&queue->completed, submitted);
  queue->waiters = NULL;
  atomic_store(&queue->wake_at, UINT64_MAX);
}

void rill__cpu_queues_reset(void) {
  for (struct cpu_queue *queue = busy.first; queue != NULL; queue = queue->next) reset(queue);
  for (struct cpu_queue *queue = idle.first; queue != NULL; queue = queue->next) reset(queue);
}
