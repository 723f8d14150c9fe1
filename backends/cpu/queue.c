#include "backends/cpu/queue.h"

#include "backends/cpu/pool.h"

#include <stdlib.h>
#include <string.h>

enum {
  CHUNK_BYTES = 16384 - sizeof(struct cpu_chunk),
  OP_ALIGNMENT = 64,           /* an operation is written by one processor and read by another */
  MARKER_BYTES = OP_ALIGNMENT, /* room for the operation that says "the next chunk" */
  SPIN_NS = 30000,
};

/* All queues, oldest first. */
static struct {
  struct cpu_lock lock;
  struct cpu_queue *first, *last;
  uint64_t last_serial;
} all;

/* ---- life ---- */

rill_status cpu_queue_new(struct rill__device *device, uint32_t level, struct cpu_queue **out) {
  struct cpu_queue *queue = aligned_alloc(_Alignof(struct cpu_queue), sizeof *queue);
  RILL_REQUIRE(queue != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a queue of %zu bytes", sizeof *queue);
  memset(queue, 0, sizeof *queue);
  queue->device = device;
  queue->level = level;
  atomic_init(&queue->references, 1);
  atomic_init(&queue->wake_at, UINT64_MAX);
  cpu_acquire(&all.lock);
  queue->serial = ++all.last_serial;
  queue->previous = all.last;
  if (all.last != NULL) {
    all.last->next = queue;
  } else {
    all.first = queue;
  }
  all.last = queue;
  cpu_release(&all.lock);
  *out = queue;
  return RILL_OK;
}

void cpu_queue_release(struct cpu_queue *queue) {
  if (atomic_fetch_sub_explicit(&queue->references, 1, memory_order_acq_rel) != 1) return;
  cpu_acquire(&all.lock);
  if (queue->previous != NULL) {
    queue->previous->next = queue->next;
  } else {
    all.first = queue->next;
  }
  if (queue->next != NULL) {
    queue->next->previous = queue->previous;
  } else {
    all.last = queue->previous;
  }
  cpu_release(&all.lock);
  free(atomic_load_explicit(&queue->spare, memory_order_relaxed));
  free(queue->head); /* nothing is pending: the head is in the last chunk */
  free(queue);
}

/* Adds a reference to a queue of the list, unless the last one has gone.  Under the list's lock. */
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

/* ---- submission ---- */

/* A chunk at the tail with room for `size` bytes and a marker.  False when memory ran out. */
static bool grow(struct cpu_queue *queue, size_t size) {
  const size_t needed = size + MARKER_BYTES;
  struct cpu_chunk *chunk = atomic_exchange_explicit(&queue->spare, NULL, memory_order_acquire);
  if (chunk != NULL && chunk->capacity < needed) {
    free(chunk);
    chunk = NULL;
  }
  if (chunk == NULL) {
    const size_t capacity = needed > CHUNK_BYTES ? needed : CHUNK_BYTES;
    chunk = aligned_alloc(OP_ALIGNMENT, sizeof *chunk + (capacity + OP_ALIGNMENT - 1) / OP_ALIGNMENT * OP_ALIGNMENT);
    if (chunk == NULL) return false;
    chunk->capacity = capacity;
  }
  chunk->next = NULL;
  if (queue->tail != NULL) {
    struct cpu_op *marker = (struct cpu_op *)(void *)(queue->tail->bytes + queue->tail_offset);
    marker->run = NULL;
    queue->tail->next = chunk;
  } else {
    queue->head = chunk; /* the first one: nothing is published yet, so nobody else looks */
  }
  queue->tail = chunk;
  queue->tail_offset = 0;
  return true;
}

rill_status cpu_queue_begin(struct cpu_queue *queue, size_t size, void *out) {
  RILL_TRY(cpu_pool_start());
  size = (size + OP_ALIGNMENT - 1) / OP_ALIGNMENT * OP_ALIGNMENT;
  cpu_acquire(&queue->lock);
  if (queue->tail == NULL || queue->tail_offset + size + MARKER_BYTES > queue->tail->capacity) {
    if (!grow(queue, size)) {
      cpu_release(&queue->lock);
      return rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory to queue an operation of %zu bytes", size);
    }
  }
  struct cpu_op *op = (struct cpu_op *)(void *)(queue->tail->bytes + queue->tail_offset);
  op->size = size;
  queue->reserved = size;
  *(struct cpu_op **)out = op;
  return RILL_OK;
}

uint64_t cpu_queue_commit(struct cpu_queue *queue) {
  const uint64_t number = atomic_load_explicit(&queue->submitted, memory_order_relaxed) + 1;
  queue->tail_offset += queue->reserved;
  atomic_store(&queue->submitted, number);
  const bool start = !atomic_load(&queue->active) && !atomic_exchange(&queue->active, true);
  if (start) cpu_queue_retain(queue);
  cpu_release(&queue->lock);
  if (start) cpu_pool_push(queue);
  return number;
}

/* ---- the owner ---- */

/* Publishes that another operation is done.  `wake_at` is looked at after that. */
static void complete(struct cpu_queue *queue);

/* Ends ownership of a queue that was found empty.  True if work has come and the caller is the owner again. */
static bool go_on(struct cpu_queue *queue) {
  const uint64_t done = queue->done; /* the next owner changes it */
  atomic_store(&queue->active, false);
  if (atomic_load(&queue->submitted) != done && !atomic_exchange(&queue->active, true)) return true;
  cpu_queue_release(queue);
  return false;
}

bool cpu_queue_take(struct cpu_queue *queue) {
  if (atomic_load_explicit(&queue->active, memory_order_relaxed)) return false;
  cpu_acquire(&queue->lock);
  bool taken = !atomic_exchange(&queue->active, true);
  bool push = false;
  if (taken) {
    cpu_queue_retain(queue);
    const uint64_t submitted = atomic_load_explicit(&queue->submitted, memory_order_relaxed);
    push = submitted != queue->done; /* its last owner was about to take it again */
    taken = !push;
    if (taken) atomic_store(&queue->submitted, submitted + 1);
  }
  cpu_release(&queue->lock);
  if (push) cpu_pool_push(queue);
  return taken;
}

void cpu_queue_give_back(struct cpu_queue *queue) {
  complete(queue);
  if (go_on(queue)) cpu_pool_push(queue);
}

/* The operation at the head, or NULL. */
static struct cpu_op *first_op(struct cpu_queue *queue) {
  if (queue->seen <= queue->done) {
    queue->seen = atomic_load_explicit(&queue->submitted, memory_order_acquire);
    if (queue->seen == queue->done) return NULL;
  }
  struct cpu_op *op = (struct cpu_op *)(void *)(queue->head->bytes + queue->head_offset);
  if (op->run != NULL) return op;
  struct cpu_chunk *used = queue->head;
  queue->head = used->next;
  queue->head_offset = 0;
  free(atomic_exchange_explicit(&queue->spare, used, memory_order_release));
  return (struct cpu_op *)(void *)queue->head->bytes;
}

static void finish(struct cpu_queue *queue, struct cpu_op *op) {
  const size_t size = op->size;
  if (op->end != NULL) op->end(op);
  queue->head_offset += size;
  complete(queue);
}

void cpu_queue_run(struct cpu_queue *queue) {
  for (uint32_t count = 0;; count++) {
    struct cpu_op *op = first_op(queue);
    if (op == NULL) {
      if (!go_on(queue)) return;
      continue;
    }
    if (cpu_pool_wants_other(queue->level, count)) {
      cpu_pool_push(queue);
      return;
    }
    if (!op->run(queue, op)) return;
    finish(queue, op);
  }
}

void cpu_queue_resume(struct cpu_queue *queue) {
  finish(queue, queue->job.op);
  cpu_queue_run(queue);
}

/* ---- waiting ---- */

/* Under waiters_lock. */
static void set_wake_at(struct cpu_queue *queue) {
  uint64_t least = UINT64_MAX;
  for (struct cpu_waiter *waiter = queue->waiters; waiter != NULL; waiter = waiter->next) {
    if (waiter->number < least) least = waiter->number;
  }
  atomic_store(&queue->wake_at, least);
}

/* Takes a waiter off the list; false if it is not there.  Under waiters_lock. */
static bool unlink_waiter(struct cpu_queue *queue, struct cpu_waiter *waiter) {
  struct cpu_waiter **link = &queue->waiters;
  while (*link != NULL && *link != waiter) link = &(*link)->next;
  if (*link == NULL) return false;
  *link = waiter->next;
  set_wake_at(queue);
  return true;
}

/* Puts a waiter on the list; false, and it is not there, if its number is reached. */
static bool add_waiter(struct cpu_queue *queue, struct cpu_waiter *waiter) {
  cpu_acquire(&queue->waiters_lock);
  waiter->next = queue->waiters;
  queue->waiters = waiter;
  const uint64_t wake_at = atomic_load_explicit(&queue->wake_at, memory_order_relaxed);
  atomic_store(&queue->wake_at, waiter->number < wake_at ? waiter->number : wake_at);
  const bool reached = atomic_load(&queue->completed) >= waiter->number;
  if (reached) (void)unlink_waiter(queue, waiter);
  cpu_release(&queue->waiters_lock);
  return !reached;
}

static void wake(struct cpu_queue *queue, uint64_t completed) {
  struct cpu_waiter *reached = NULL;
  cpu_acquire(&queue->waiters_lock);
  struct cpu_waiter **link = &queue->waiters;
  while (*link != NULL) {
    struct cpu_waiter *waiter = *link;
    if (waiter->number <= completed) {
      *link = waiter->next;
      waiter->next = reached;
      reached = waiter;
    } else {
      link = &waiter->next;
    }
  }
  set_wake_at(queue);
  cpu_release(&queue->waiters_lock);
  while (reached != NULL) {
    struct cpu_waiter *waiter = reached;
    reached = waiter->next;
    if (waiter->parked != NULL) {
      cpu_pool_push(waiter->parked);
    } else {
      /* From the store on the waiter may be gone: waking what is at its address then is harmless. */
      _Atomic uint32_t *const woken = &waiter->woken;
      atomic_store_explicit(woken, 1, memory_order_release);
      cpu_wake_one(woken);
    }
  }
}

static void complete(struct cpu_queue *queue) {
  const uint64_t done = ++queue->done;
  atomic_store(&queue->completed, done);
  if (RILL__UNLIKELY(atomic_load(&queue->wake_at) <= done)) wake(queue, done);
}

bool cpu_queue_park(struct cpu_queue *queue, struct cpu_waiter *waiter) { return add_waiter(queue, waiter); }

/* Looks for a while; false if it took too long. */
static bool spin_until(struct cpu_queue *queue, uint64_t number, uint64_t until) {
  do {
    for (int i = 0; i < 8; i++) {
      if (cpu_queue_reached(queue, number)) return true;
      cpu_relax();
    }
  } while (cpu_now() < until);
  return false;
}

bool cpu_queue_wait(struct cpu_queue *queue, uint64_t number, uint64_t ns, bool spin) {
  if (cpu_queue_reached(queue, number)) return true;
  if (ns == 0) return false;
  const uint64_t now = cpu_now();
  const bool forever = ns > UINT64_MAX / 4; /* centuries */
  const uint64_t until = forever ? UINT64_MAX : now + ns;
  if (spin && cpu_pool_may_spin() && spin_until(queue, number, ns < SPIN_NS ? until : now + SPIN_NS)) return true;

  struct cpu_waiter waiter = { .number = number };
  if (!add_waiter(queue, &waiter)) return true;
  const struct timespec deadline = cpu_timespec(until);
  while (atomic_load_explicit(&waiter.woken, memory_order_acquire) == 0) {
    cpu_sleep(&waiter.woken, 0, forever ? NULL : &deadline);
    if (forever || cpu_now() < until) continue;
    cpu_acquire(&queue->waiters_lock);
    const bool was_there = unlink_waiter(queue, &waiter);
    cpu_release(&queue->waiters_lock);
    if (was_there) return cpu_queue_reached(queue, number);
    /* Its number was reached just now, and it is being woken. */
    while (atomic_load_explicit(&waiter.woken, memory_order_acquire) == 0) cpu_sleep(&waiter.woken, 0, NULL);
  }
  return true;
}

void cpu_queues_synchronize(void) {
  /* A queue that is held stays in the list, so the way on from it is known. */
  struct cpu_queue *held = NULL;
  cpu_acquire(&all.lock);
  const uint64_t last = all.last_serial;
  for (struct cpu_queue *queue = all.first; queue != NULL && queue->serial <= last; queue = queue->next) {
    const uint64_t number = cpu_queue_submitted(queue);
    if (cpu_queue_reached(queue, number) || !retain_listed(queue)) continue;
    cpu_release(&all.lock);
    if (held != NULL) cpu_queue_release(held);
    held = queue;
    (void)cpu_queue_wait(queue, number, RILL__FOREVER, true);
    cpu_acquire(&all.lock);
  }
  cpu_release(&all.lock);
  if (held != NULL) cpu_queue_release(held);
}

/* ---- fork ---- */

void cpu_queues_lock(void) { cpu_acquire(&all.lock); }
void cpu_queues_unlock(void) { cpu_release(&all.lock); }

/* Other threads may have been anywhere in a queue when the process was forked, so no more of it is trusted than the
 * links from the head on and the count of what was submitted.  What pending operations held is given up: one may have
 * been about to end. */
void cpu_queues_reset(void) {
  for (struct cpu_queue *queue = all.first; queue != NULL; queue = queue->next) {
    const uint64_t submitted = atomic_load(&queue->submitted);
    atomic_store(&queue->active, false);
    for (struct cpu_chunk *chunk = queue->head; chunk != NULL;) {
      struct cpu_chunk *next = chunk->next;
      free(chunk);
      chunk = next;
    }
    queue->head = queue->tail = NULL;
    queue->head_offset = queue->tail_offset = queue->reserved = 0;
    queue->seen = queue->done = submitted;
    atomic_store(&queue->completed, submitted);
    queue->waiters = NULL;
    atomic_store(&queue->wake_at, UINT64_MAX);
  }
}
