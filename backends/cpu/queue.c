#include "backends/cpu/queue.h"

#include "backends/cpu/pages.h"
#include "backends/cpu/schedule.h"

#include <stdlib.h>
#include <string.h>

enum {
  CHUNK_SMALL = 16384,        /* bytes, with its header; small chunks are from the heap, large ones mapped */
  OP_ALIGNMENT = 64,          /* a cache line: one processor writes an operation, and another one reads it */
  MARKER_BYTES = OP_ALIGNMENT /* room for the operation that stands for "the next chunk" */
};

/* ---- creating ---- */

rill_status rill__cpu_queue_new(struct rill__device *device, uint32_t level, struct cpu_queue **out) {
  struct cpu_queue *queue = aligned_alloc(_Alignof(struct cpu_queue), sizeof *queue);
  RILL_REQUIRE(queue != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a queue of %zu bytes", sizeof *queue);
  memset(queue, 0, sizeof *queue);
  queue->device = device;
  queue->level = level;
  atomic_init(&queue->references, 1);
  atomic_init(&queue->wake_at, UINT64_MAX);
  rill__cpu_queues_add(queue);
  *out = queue;
  return RILL_OK;
}

/* ---- chunks ---- */

static bool is_large(const struct cpu_chunk *chunk) { return chunk->size > CHUNK_SMALL; }

/* Returns a chunk for at least `bytes`, or NULL if memory ran out. */
static struct cpu_chunk *new_chunk(size_t bytes, bool large) {
  size_t size = sizeof(struct cpu_chunk) + bytes;
  large |= size > CHUNK_SMALL;
  if (size < CPU_PAGES) size = CPU_PAGES;
  struct cpu_chunk *chunk = large ? rill__cpu_pages_take(size) : aligned_alloc(OP_ALIGNMENT, CHUNK_SMALL);
  if (chunk != NULL) chunk->size = large ? size : CHUNK_SMALL;
  return chunk;
}

static void free_chunk(struct cpu_chunk *chunk) {
  if (chunk == NULL || !is_large(chunk)) {
    free(chunk);
  } else {
    rill__cpu_pages_free(chunk, chunk->size);
  }
}

static size_t capacity(const struct cpu_chunk *chunk) { return chunk->size - sizeof *chunk; }

void rill__cpu_queue_release(struct cpu_queue *queue) {
  if (atomic_fetch_sub_explicit(&queue->references, 1, memory_order_acq_rel) != 1) return;
  rill__cpu_queues_remove(queue);
  free_chunk(atomic_load_explicit(&queue->spare, memory_order_relaxed));
  free_chunk(queue->head); /* nothing is pending, so the head is in the last chunk */
  free(queue->job.claims);
  free(queue);
}

void rill__cpu_queue_forget_chunks(struct cpu_queue *queue) {
  for (struct cpu_chunk *chunk = queue->head; chunk != NULL;) {
    struct cpu_chunk *next = chunk->next;
    free_chunk(chunk);
    chunk = next;
  }
  queue->head = queue->tail = NULL;
  queue->head_offset = queue->tail_offset = queue->reserved = 0;
  queue->used = false;
}

/* ---- submission ---- */

/* Adds a chunk at the tail with room for `size` bytes and a marker.  Returns false if memory ran out.  The new chunk is
 * large if no spare one is left, because the queue is then getting long. */
static bool grow_ring(struct cpu_queue *queue, size_t size) {
  struct cpu_chunk *chunk = atomic_exchange_explicit(&queue->spare, NULL, memory_order_acquire);
  if (chunk == NULL || capacity(chunk) < size + MARKER_BYTES) {
    free_chunk(chunk);
    chunk = new_chunk(size + MARKER_BYTES, queue->tail != NULL);
    if (chunk == NULL) return false;
  }
  chunk->next = NULL;
  if (queue->tail != NULL) {
    struct cpu_op *marker = (struct cpu_op *)(void *)(queue->tail->bytes + queue->tail_offset);
    marker->run = NULL;
    queue->tail->next = chunk;
  } else {
    queue->head = chunk; /* nothing is published yet, so no other thread reads it */
  }
  queue->tail = chunk;
  queue->tail_offset = 0;
  return true;
}

/* Refills the memory from its start if the queue has no owner and, checked under the lock, no operations. */
static void rewind_if_empty(struct cpu_queue *queue) {
  if (queue->tail_offset == 0 || atomic_load(&queue->active)) return;
  if (atomic_load(&queue->submitted) != atomic_load(&queue->completed)) return; /* its last owner may take it again */
  queue->tail_offset = queue->head_offset = 0;
}

static rill_status collect(struct cpu_queue *queue, size_t size, struct cpu_op **out) {
  queue->collected = aligned_alloc(OP_ALIGNMENT, size);
  RILL_REQUIRE(queue->collected != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for an operation of %zu bytes",
               size);
  memset(queue->collected, 0, size);
  queue->collected->size = size;
  *out = queue->collected;
  return RILL_OK;
}

rill_status rill__cpu_queue_begin(struct cpu_queue *queue, size_t size, void *out) {
  RILL_TRY(rill__cpu_workers_start());
  size = (size + OP_ALIGNMENT - 1) / OP_ALIGNMENT * OP_ALIGNMENT;
  if (RILL__UNLIKELY(queue->collects)) return collect(queue, size, out);
  cpu_acquire(&queue->lock);
  rewind_if_empty(queue);
  if (queue->tail == NULL || queue->tail_offset + size + MARKER_BYTES > capacity(queue->tail)) {
    if (!grow_ring(queue, size)) {
      cpu_release(&queue->lock);
      return rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory to queue an operation of %zu bytes", size);
    }
  }
  struct cpu_op *op = (struct cpu_op *)(void *)(queue->tail->bytes + queue->tail_offset);
  op->size = size;
  op->run_if_lost = false;
  op->again = false;
  queue->reserved = size;
  *(struct cpu_op **)out = op;
  return RILL_OK;
}

uint64_t rill__cpu_queue_commit(struct cpu_queue *queue) { return rill__cpu_queue_commit_many(queue, 1); }

uint64_t rill__cpu_queue_commit_many(struct cpu_queue *queue, uint64_t count) {
  if (RILL__UNLIKELY(queue->collects)) return 0;
  const uint64_t number = atomic_load_explicit(&queue->submitted, memory_order_relaxed) + count;
  queue->tail_offset += queue->reserved;
  atomic_store(&queue->submitted, number);
  const bool start = !atomic_load(&queue->active) && !atomic_exchange(&queue->active, true);
  if (start) cpu_queue_retain(queue);
  cpu_release(&queue->lock);
  cpu_queue_is_busy(queue);
  if (start) rill__cpu_workers_push(queue);
  return number;
}

/* ---- the owner ---- */

/* Publishes that another operation is done, and reads `wake_at` after that. */
static void complete(struct cpu_queue *queue) {
  const uint64_t done = ++queue->done;
  atomic_store(&queue->completed, done);
  if (RILL__UNLIKELY(atomic_load(&queue->wake_at) <= done)) rill__cpu_queue_wake(queue, done);
}

/* Frees the large chunk that a long queue has left, if the queue is really empty.  `head` may be read only if
 * operations were taken since the last call; otherwise another thread may be growing the queue and changing it. */
static void shrink(struct cpu_queue *queue) {
  struct cpu_chunk *spare = NULL, *large = NULL;
  queue->used = false;
  if (!is_large(queue->head)) return;
  cpu_acquire(&queue->lock);
  if (atomic_load(&queue->submitted) == queue->done) {
    spare = atomic_exchange_explicit(&queue->spare, NULL, memory_order_acquire);
    large = queue->head;
    queue->head = queue->tail = NULL;
    queue->head_offset = queue->tail_offset = 0;
  }
  cpu_release(&queue->lock);
  free_chunk(spare);
  free_chunk(large);
}

/* Ends ownership of a queue that was found empty.  Returns true if work has arrived and the caller is the owner
 * again. */
static bool leave_empty_queue(struct cpu_queue *queue) {
  const uint64_t done = queue->done; /* read now, because the next owner changes it */
  atomic_store(&queue->active, false);
  if (atomic_load(&queue->submitted) != done && !atomic_exchange(&queue->active, true)) return true;
  rill__cpu_queue_release(queue);
  return false;
}

bool rill__cpu_queue_take(struct cpu_queue *queue) {
  if (atomic_load_explicit(&queue->active, memory_order_relaxed) || queue->collects || rill__cpu_scheduled)
    return false;
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
  if (taken) cpu_queue_is_busy(queue);
  if (push) rill__cpu_workers_push(queue);
  return taken;
}

void rill__cpu_queue_cancel(struct cpu_queue *queue) {
  complete(queue);
  if (leave_empty_queue(queue)) rill__cpu_workers_push(queue);
}

/* Returns the operation at the head, or NULL. */
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
  free_chunk(is_large(used) ? used : atomic_exchange_explicit(&queue->spare, used, memory_order_release));
  return (struct cpu_op *)(void *)queue->head->bytes;
}

static void finish(struct cpu_queue *queue, struct cpu_op *op) {
  const size_t size = op->size;
  if (op->end != NULL) op->end(op);
  queue->head_offset += size;
  queue->used = true;
  complete(queue);
}

void rill__cpu_queue_run(struct cpu_queue *queue) {
  for (uint32_t count = 0;; count++) {
    struct cpu_op *op = first_op(queue);
    if (op == NULL) {
      if (queue->used) shrink(queue);
      if (!leave_empty_queue(queue)) return;
      continue;
    }
    if (rill__cpu_workers_should_yield(queue->level, count)) {
      rill__cpu_workers_push(queue);
      return;
    }
    if ((RILL__LIKELY(!cpu_is_lost(queue->device)) || op->run_if_lost) && !op->run(queue, op)) return;
    finish(queue, op);
  }
}

/* Hands the queue over if it has more operations. */
static void hand_over_or_leave(struct cpu_queue *queue) {
  while (first_op(queue) == NULL) {
    if (queue->used) shrink(queue);
    if (!leave_empty_queue(queue)) return;
  }
  rill__cpu_workers_push(queue);
}

void rill__cpu_queue_step(struct cpu_queue *queue) {
  struct cpu_op *op = first_op(queue);
  if (op != NULL && queue->job.open) {
    if (rill__cpu_schedule_parts(queue) && !op->again) finish(queue, op);
  } else if (op != NULL) {
    if ((!cpu_is_lost(queue->device) || op->run_if_lost) && !op->run(queue, op)) return;
    finish(queue, op);
  }
  hand_over_or_leave(queue);
}

static void end_head(struct cpu_queue *queue) {
  struct cpu_op *op = first_op(queue);
  if (!op->again) finish(queue, op);
}

void rill__cpu_queue_resume(struct cpu_queue *queue) {
  end_head(queue);
  rill__cpu_queue_run(queue);
}

void rill__cpu_queue_pass_on(struct cpu_queue *queue) {
  end_head(queue);
  rill__cpu_workers_push(queue);
}

void rill__cpu_queue_finish_head(struct cpu_queue *queue) {
  finish(queue, first_op(queue));
  rill__cpu_workers_push(queue);
}
