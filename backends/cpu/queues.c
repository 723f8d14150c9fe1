/* The lists of all queues.
 *
 * Each queue is in one of two lists.  A submission adds it to the busy list.  A wait for all queues that finds it
 * without work moves it back to the idle list.  Such a wait therefore costs nothing for queues without work, and a
 * submission only has to read `busy`.  A submission stores `submitted` and then reads `busy`; the wait clears `busy`
 * and then reads `submitted`.  These four accesses are sequentially consistent, so one of the threads sees what the
 * other did.
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

/* ---- waiting for all queues ---- */

static bool has_work(struct cpu_queue *queue) {
  return atomic_load(&queue->completed) != atomic_load(&queue->submitted);
}

/* Moves the queue to the idle list if it has no work.  Call it under the lock. */
static void put_queue_back(struct cpu_queue *queue) {
  if (queue->iterators != 0 || has_work(queue)) return;
  atomic_store(&queue->busy, false);
  if (has_work(queue)) {
    atomic_store(&queue->busy, true);
  } else {
    take_queue_out(&busy, queue);
    append_queue(&idle, queue);
  }
}

/* Adds a reference to a listed queue, unless the last reference has been dropped.  Call it under the lock. */
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

/* Waits for the queue without the lock.  The queue stays in its list meanwhile, so that the caller can continue from
 * it.  Keeps a reference to the queue in `kept`, and drops the previous one. */
static bool wait_for(struct cpu_queue *queue, struct cpu_queue **kept) {
  if (!retain_listed(queue)) return true; /* a queue without references has no work */
  const uint64_t number = cpu_queue_submitted(queue);
  queue->iterators++;
  cpu_release(&queues_lock);
  if (*kept != NULL) rill__cpu_queue_release(*kept);
  *kept = queue;
  const bool reached = rill__cpu_queue_wait(queue, number, RILL__FOREVER, true);
  cpu_acquire(&queues_lock);
  queue->iterators--;
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

/* ---- lost devices ---- */

/* Includes idle queues, because one of them may be about to become busy. */
void rill__cpu_queues_abort(void) {
  const struct list *const lists[] = { &busy, &idle };
  cpu_acquire(&queues_lock);
  for (int i = 0; i < 2; i++) {
    for (struct cpu_queue *queue = lists[i]->first; queue != NULL; queue = queue->next) {
      rill__cpu_queue_wake(queue, UINT64_MAX);
    }
  }
  cpu_release(&queues_lock);
  if (rill__cpu_scheduled) rill__cpu_schedule_abort();
}

/* ---- fork ---- */

void rill__cpu_queues_lock(void) { cpu_acquire(&queues_lock); }
void rill__cpu_queues_unlock(void) { cpu_release(&queues_lock); }

/* Resets a queue in the child of a fork.  Other threads may have been anywhere in the queue at that time.  Only the
 * links from the head on and the number of submitted operations are trusted.  The memory that pending operations owned
 * is leaked, because another thread may have been releasing it. */
static void reset(struct cpu_queue *queue) {
  const uint64_t submitted = atomic_load(&queue->submitted);
  atomic_store(&queue->active, false);
  rill__cpu_queue_forget_chunks(queue);
  queue->seen = queue->done = submitted;
  queue->iterators = 0;
  atomic_store(&queue->completed, submitted);
  queue->waiters = NULL;
  atomic_store(&queue->wake_at, UINT64_MAX);
}

void rill__cpu_queues_reset(void) {
  for (struct cpu_queue *queue = busy.first; queue != NULL; queue = queue->next) reset(queue);
  for (struct cpu_queue *queue = idle.first; queue != NULL; queue = queue->next) reset(queue);
}
