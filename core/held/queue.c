/* Adding work to the queues of held streams. */
#include "core/held/queue.h"

#include <stdlib.h>
#include <string.h>

struct rill__queue *rill__held_queues, *rill__held_ready;
_Atomic uint32_t rill__held_count;
uint64_t rill__held_serial;
struct held_list rill__held_named, rill__held_any;

/* ---- operations ---- */

struct rill__held_range (*_Atomic rill__held_find_range)(const void *p);

/* Notes the registered memory that a copy or fill names.  It is enough to look up the first byte: a range that is used
 * ends inside the registration in which it starts. */
static void name_memory(struct held_op *op, const void *p) {
  struct rill__held_range (*find)(const void *) = atomic_load(&rill__held_find_range);
  if (find != NULL) op->named[op->named[0].object != NULL] = find(p);
}

static void name_memory_of(struct held_op *op) {
  const struct rill__operation *operation = op->operation;
  if (operation->kind == RILL_NODE_FILL) name_memory(op, operation->fill.rows.dst);
  if (operation->kind != RILL_NODE_COPY) return;
  name_memory(op, operation->copy.dst);
  name_memory(op, operation->copy.src);
}

static void free_op(struct held_op *op) {
  for (size_t i = 0; i < 2 && op->named[i].object != NULL; i++) rill__unref(op->named[i].object);
  if (op->operation != NULL) rill__operation_unref(op->operation);
  free(op);
}

void rill__held_ops_free(struct held_op *list) {
  while (list != NULL) {
    struct held_op *op = list;
    list = op->next;
    free_op(op);
  }
}

/* Takes over the operation even on failure.  `operation` is NULL for a wait. */
static rill_status new_op(struct rill__operation *operation, struct held_op **out) {
  *out = calloc(1, sizeof **out);
  if (*out == NULL) {
    if (operation != NULL) rill__operation_unref(operation);
    return rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory for held work");
  }
  (*out)->operation = operation;
  (*out)->bytes = sizeof **out + (operation != NULL ? rill__operation_size(operation) : 0);
  if (operation != NULL) name_memory_of(*out);
  return RILL_OK;
}

/* ---- queues; under the lock ---- */

#if RILL_CHECKS
/* Asserts the invariants of a queue, by visiting all entries. */
static void assert_queue(const struct rill__queue *queue) {
  const struct held_op *last = NULL, *last_wait = NULL;
  uint64_t position = queue->removed;
  size_t bytes = 0;
  for (const struct held_op *op = queue->first; op != NULL; op = op->next) {
    RILL_ASSERT(op->position > position && op->position <= queue->pushed, "entries have rising positions");
    position = op->position;
    bytes += op->bytes;
    last = op;
    if (!rill__held_is_wait(op)) continue;
    RILL_ASSERT(op->wait.older == last_wait && (last_wait == NULL || last_wait->wait.newer == op),
                "the waits of a queue are linked in their order");
    RILL_ASSERT(op->fence->waits > 0 && op->fence->references > 0, "a fence counts the waits that are queued for it");
    last_wait = op;
  }
  RILL_ASSERT(queue->last == (last == NULL ? &queue->first : &last->next), "a queue ends with its last entry");
  RILL_ASSERT(queue->last_wait == last_wait, "a queue knows its last wait");
  RILL_ASSERT(queue->bytes == bytes, "a queue counts the bytes of its entries");
}
#endif

void rill__queue_link(struct rill__queue *queue, struct rill__queue **list) {
  RILL_ASSERT_HELD_LOCKED();
  RILL_ASSERT(queue->link == NULL, "a queue is blocked, ready or run by one thread");
  queue->next = *list;
  queue->link = list;
  if (queue->next != NULL) queue->next->link = &queue->next;
  *list = queue;
}

void rill__queue_unlink(struct rill__queue *queue) {
  RILL_ASSERT_HELD_LOCKED();
  RILL_ASSERT(*queue->link == queue && (queue->next == NULL || queue->next->link == &queue->next),
              "a queue's `link` points to the pointer to the queue");
  *queue->link = queue->next;
  if (queue->next != NULL) queue->next->link = queue->link;
  queue->link = NULL;
}

static rill_status check_room(const struct rill__queue *queue, const struct held_op *op) {
  RILL_REQUIRE(op->bytes <= HELD_BYTES_MAX - queue->bytes, RILL_ERROR_OUT_OF_MEMORY,
               "%s is held with %zu bytes queued; %zu more exceed the limit of %d" RILL_HINT
               "record the event that it waits for",
               rill__name_of(&queue->stream->base).text, queue->bytes, op->bytes, HELD_BYTES_MAX);
  return RILL_OK;
}

/* Returns the list for an operation.  Kernels, host calls and graphs may use any memory. */
static struct held_list *list_for(const struct held_op *op) {
  switch (op->operation->kind) {
    case RILL_NODE_COPY:
    case RILL_NODE_FILL:
    case RILL__OPERATION_PREFETCH:
    case RILL_NODE_EVENT_RECORD: return &rill__held_named;
    default: return &rill__held_any;
  }
}

/* Adds an operation to the list of its kind.  Waits use no memory and are in neither list. */
static void list_op(struct rill__queue *queue, struct held_op *op) {
  if (rill__held_is_wait(op)) return;
  if (rill__held_is(op, RILL__OPERATION_EXEC)) {
    struct rill__exec_core *core = rill__core(op->operation->exec);
    RILL_ASSERT(core->claimed && (atomic_load(&core->held_launches) == 0 || core->held_stream == queue->stream),
                "launches of an execution object are held in one queue");
    core->held_stream = queue->stream;
    atomic_fetch_add(&core->held_launches, 1);
  }
  for (size_t i = 0; i < 2 && op->named[i].object != NULL; i++) ++*op->named[i].uses;
  struct held_list *const list = list_for(op);
  op->older = list->newest;
  *(op->older != NULL ? &op->older->newer : &list->oldest) = op;
  list->newest = op;
}

/* Removes the operation from the lists and counts of pending operations: from here on frees, unregistrations and
 * changes of the execution object no longer wait for it. */
void rill__held_op_end(struct held_op *op) {
  RILL_ASSERT_HELD_LOCKED();
  if (rill__held_is_wait(op)) return;
  if (rill__held_is(op, RILL_NODE_EVENT_RECORD)) {
    /* The fence may outlive the queue, which is freed with its stream. */
    RILL_ASSERT(op->fence->queue != NULL,
                "a fence knows where its record is until the record has been submitted or has failed");
    op->fence->queue = NULL;
  }
  if (rill__held_is(op, RILL__OPERATION_EXEC)) {
    const uint32_t launches = atomic_fetch_sub(&rill__core(op->operation->exec)->held_launches, 1);
    RILL_ASSERT(launches > 0, "launches that are held are counted");
    (void)launches;
  }
  for (size_t i = 0; i < 2 && op->named[i].object != NULL; i++) {
    RILL_ASSERT(*op->named[i].uses > 0, "registered memory counts the held operations that name it");
    --*op->named[i].uses;
  }
  struct held_list *const list = list_for(op);
  *(op->older != NULL ? &op->older->newer : &list->oldest) = op->newer;
  *(op->newer != NULL ? &op->newer->older : &list->newest) = op->older;
}

static void append_op(struct rill__queue *queue, struct held_op *op) {
  RILL_ASSERT_HELD_LOCKED();
  RILL_ASSERT(rill__is_held(queue->stream), "work is queued only for a stream that is held");
#if RILL_CHECKS
  if ((queue->pushed & (queue->pushed - 1)) == 0) assert_queue(queue); /* seldom, to keep the average cost small */
#endif
  op->position = ++queue->pushed;
  op->serial = ++rill__held_serial;
  list_op(queue, op);
  queue->bytes += op->bytes;
  *queue->last = op;
  queue->last = &op->next;
  if (!rill__held_is_wait(op)) return;
  op->wait.older = queue->last_wait;
  if (op->wait.older != NULL) op->wait.older->wait.newer = op;
  queue->last_wait = op;
}

static void remove_wait(struct rill__queue *queue, struct held_op *op) {
  if (op->wait.newer != NULL) op->wait.newer->wait.older = op->wait.older;
  if (op->wait.older != NULL) op->wait.older->wait.newer = op->wait.newer;
  if (queue->last_wait == op) queue->last_wait = op->wait.older;
}

struct held_op *rill__queue_remove_first(struct rill__queue *queue) {
  struct held_op *op = queue->first;
  RILL_ASSERT_HELD_LOCKED();
  RILL_ASSERT(op->position > queue->done && op->position > queue->removed, "operations are handed over in order");
  queue->first = op->next;
  if (queue->first == NULL) queue->last = &queue->first;
  queue->bytes -= op->bytes;
  queue->removed = op->position;
  if (rill__held_is_wait(op)) remove_wait(queue, op);
  return op;
}

/* Host calls stay queued, since an accepted host call always runs.  The removed operations are returned instead of
 * freed: freeing them drops references, which must not happen under the lock. */
void rill__queue_fail(struct rill__queue *queue, struct rill__failure *failure, struct held_op **dead) {
  const rill_status status = failure != NULL ? failure->status : RILL_ERROR_OUT_OF_MEMORY;
  for (struct held_op **link = &queue->first; *link != NULL;) {
    struct held_op *op = *link;
    if (rill__held_is(op, RILL_NODE_HOST_CALL)) {
      if (op->reported == RILL_OK) op->reported = status;
      link = &op->next;
      queue->last = link;
      continue;
    }
    if (rill__held_is_wait(op)) {
      remove_wait(queue, op);
      rill__fence_remove_wait(op->fence);
    }
    rill__held_op_end(op);
    if (rill__held_is(op, RILL_NODE_EVENT_RECORD)) {
      rill__fence_fail(op->fence, failure);
      rill__fence_unref(op->fence);
    }
    *link = op->next;
    queue->last = link;
    queue->bytes -= op->bytes;
    op->next = *dead;
    *dead = op;
  }
  if (queue->first == NULL) queue->last = &queue->first;
#if RILL_CHECKS
  assert_queue(queue);
#endif
  /* Only the first failure is stored: the user needs the cause, not its consequences. */
  struct rill__failure *none = NULL;
  if (failure != NULL && atomic_compare_exchange_strong(&rill__core(queue->stream)->failure, &none, failure))
    failure->references++;
}

/* Takes the operation if the stream is held; otherwise the caller keeps it. */
static rill_status push(struct rill__stream *stream, struct held_op *op, bool *taken) {
  rill_status status = RILL_OK;
  *taken = false;
  rill__held_lock();
  if (rill__is_held(stream)) {
    status = check_room(rill__core(stream)->queue, op);
    *taken = status == RILL_OK;
    if (*taken) append_op(rill__core(stream)->queue, op);
  }
  rill__held_unlock();
  return status;
}

rill_status rill__held_push(struct rill__stream *stream, struct rill__operation *operation,
                            const struct rill__copy_3d *deliver, bool *taken) {
  struct held_op *op = NULL;
  *taken = false;
  RILL_TRY(new_op(operation, &op));
  op->deliver = deliver;
  const rill_status status = push(stream, op, taken);
  if (!*taken) free_op(op);
  return status;
}

/* ---- submissions that are diverted ---- */

/* Queues the operation or adds it to the graph.  Takes over the operation even on failure. */
static rill_status divert(struct rill__stream *stream, struct rill__operation *operation, bool *taken) {
  if (rill__is_captured(stream)) return rill__capture_add(stream, operation, taken);
  return rill__held_push(stream, operation, NULL, taken);
}

rill_status rill__held_host_call(struct rill__stream *stream, rill_host_fn fn, void *user, bool *taken) {
  struct rill__operation *operation = NULL;
  RILL_TRY(rill__operation_host_call(stream->base.device, fn, user, &operation));
  return divert(stream, operation, taken);
}

rill_status rill__held_fill(struct rill__stream *stream, const struct rill__fill_2d *fill, bool *taken) {
  struct rill__operation *operation = NULL;
  RILL_TRY(rill__operation_fill(stream->base.device, fill, &operation));
  return divert(stream, operation, taken);
}

rill_status rill__held_prefetch(struct rill__stream *stream, const void *p, size_t size, bool *taken) {
  struct rill__operation *operation = NULL;
  RILL_REQUIRE(!rill__is_captured(stream), RILL_ERROR_UNSUPPORTED,
               "%s is capturing, and as of version %d.%d graphs have no nodes for prefetches" RILL_HINT
               "prefetch before the capture begins",
               rill__name_of(&stream->base).text, RILL_VERSION_MAJOR, RILL_VERSION_MINOR);
  RILL_TRY(rill__operation_prefetch(stream->base.device, p, size, &operation));
  return rill__held_push(stream, operation, NULL, taken);
}

/* The operation borrows the payload until it is known that the launch was taken.  If it was not, the caller submits the
 * launch to the driver and still needs the payload. */
rill_status rill__held_launch(struct rill__stream *stream, const struct rill__launch *launch,
                              struct rill__payload **payload, bool *taken) {
  struct rill__operation *operation = NULL;
  RILL_TRY(rill__operation_launch(launch, &operation));
  if (payload == NULL || *payload == NULL) return divert(stream, operation, taken);
  operation->payload = *payload;
  rill__operation_ref(operation);
  const rill_status status = divert(stream, operation, taken);
  if (status == RILL_OK && *taken) {
    *payload = NULL;
  } else {
    operation->payload = NULL;
  }
  rill__operation_unref(operation);
  return status;
}

/* ---- records ---- */

/* Queues the record for `fence`.  Call it under the lock. */
static void append_record(struct rill__queue *queue, struct held_op *op, struct rill__fence *fence) {
  op->fence = fence;
  fence->references++;
  fence->wait_before = queue->last_wait;
  fence->wait_position = queue->last_wait != NULL ? queue->last_wait->position : 0;
  append_op(queue, op);
  fence->queue = queue;
  rill__fence_set_state(fence, FENCE_QUEUED);
}

/* Queues a record of the event.  `fence`: a new fence, used if the event is not AWAITED.  Call it under the lock. */
static rill_status queue_record(struct rill__queue *queue, struct rill__event *event, struct held_op *op,
                                struct rill__fence *fence) {
  RILL_TRY(check_room(queue, op));
  struct rill__fence *const before = rill__event_fence(event);
  const bool awaited = before != NULL && rill__fence_state(before) == FENCE_AWAITED;
  if (awaited) RILL_TRY(rill__held_check_order(queue, before, event));
  append_record(queue, op, awaited ? before : fence);
  /* Attached after the record has been queued: a thread that reads the event without the lock must not find a fence
   * that is not QUEUED yet. */
  if (!awaited) rill__event_attach(event, fence);
  return RILL_OK;
}

rill_status rill__held_record(struct rill__stream *stream, struct rill__event *event, uint32_t flags, bool *taken) {
  struct rill__operation *operation = NULL;
  struct held_op *op = NULL;
  struct rill__fence *fence = NULL;
  *taken = false;
  RILL_TRY(rill__operation_event(RILL_NODE_EVENT_RECORD, event, &operation));
  RILL_TRY(new_op(operation, &op));
  op->flags = flags;
  rill_status status = rill__fence_new(event, &fence);
  if (status == RILL_OK) {
    rill__held_lock();
    if (rill__is_held(stream)) {
      status = queue_record(rill__core(stream)->queue, event, op, fence);
      *taken = status == RILL_OK;
    }
    rill__fence_unref(fence);
    rill__held_unlock();
  }
  if (!*taken) free_op(op);
  return status;
}

/* ---- waits ---- */

static rill_status check_may_hold(struct rill__stream *stream, const struct rill__event *event, bool capturing) {
  const char *why = stream->imported ? "an imported stream cannot be held (other code may submit to it)"
                    : atomic_load(&stream->foreign)
                        ? "a stream whose native handle was returned cannot be held (other code may submit to it)"
                    : capturing ? "a capturing stream cannot be held"
                                : NULL;
  RILL_REQUIRE(why == NULL, RILL_ERROR_NOT_RECORDED,
               "%s has never been recorded, or only on a held stream, and %s" RILL_HINT
               "record it first, or pass RILL_WAIT_IF_RECORDED",
               rill__name_of(&event->base).text, why);
  return RILL_OK;
}

/* Makes the stream held.  Call it under the lock.  Returns false if the stream is capturing. */
static bool hold(struct rill__stream *stream, struct rill__queue **fresh) {
  uint32_t none = 0;
  if (!atomic_compare_exchange_strong(&rill__core(stream)->diverted, &none, RILL__HELD)) return false;
  if (rill__core(stream)->queue == NULL) {
    rill__core(stream)->queue = *fresh;
    rill__core(stream)->queue->stream = stream;
    rill__core(stream)->queue->last = &rill__core(stream)->queue->first;
    *fresh = NULL;
  }
  struct rill__queue *queue = rill__core(stream)->queue;
  queue->next_held = rill__held_queues;
  queue->link_held = &rill__held_queues;
  if (queue->next_held != NULL) queue->next_held->link_held = &queue->next_held;
  rill__held_queues = queue;
  /* Work is queued for the stream, so the stream must live until end_hold, even if the user releases it. */
  rill__ref(&stream->base);
  atomic_fetch_add(&rill__core(stream->base.device)->held_streams, 1);
  atomic_fetch_add(&rill__held_count, 1);
  return true;
}

/* The objects that a wait needs; they are allocated before the lock is taken. */
struct new_wait {
  struct rill__stream *stream;
  struct rill__event *event;
  struct held_op *op;
  struct rill__fence *fence; /* used if the event stands for no fence */
  struct rill__queue *queue;
  bool capturing;
};

/* Queues a wait for the fence on the stream.  Call it under the lock. */
static rill_status queue_wait(struct new_wait *wait, struct rill__fence *fence) {
  struct rill__stream *stream = wait->stream;
  if (!rill__is_held(stream)) {
    RILL_TRY(check_may_hold(stream, wait->event, wait->capturing));
    if (!hold(stream, &wait->queue)) return check_may_hold(stream, wait->event, true);
    rill__queue_link(rill__core(stream)->queue, &fence->blocked);
  } else {
    RILL_TRY(check_room(rill__core(stream)->queue, wait->op));
  }
  wait->op->fence = fence;
  rill__fence_add_wait(fence);
  append_op(rill__core(stream)->queue, wait->op);
  wait->op = NULL;
  return RILL_OK;
}

/* Makes the event stand for a fence until its first record; returns false if that record was made meanwhile.
 *
 * The last release of the event makes its handle stale first and then looks for the fence.  So either that release
 * finds the fence, or the check below finds the event dead.
 */
static bool await_first(struct new_wait *wait, rill_status *status) {
  struct rill__event *event = wait->event;
  struct rill__fence *fence = wait->fence;
  uint32_t state = RILL__EVENT_UNRECORDED;
  fence->references++;
  fence->created = rill__held_serial;
  /* The fence is stored before the state, as in rill__event_attach.  If the record wins, the pointer stays, and nothing
   * reads it while the state is not FENCED. */
  atomic_store(&rill__core(event)->fence, fence);
  if (!atomic_compare_exchange_strong(&rill__core(event)->state, &state, RILL__EVENT_FENCED)) {
    rill__fence_unref(fence);
    return false;
  }
  if (rill__object_is_live(&event->base)) {
    *status = queue_wait(wait, fence);
  } else {
    *status = rill__fail(RILL_ERROR_STALE_HANDLE, "event is released while a wait for its first record starts");
  }
  if (*status != RILL_OK) rill__event_detach(event, RILL__EVENT_UNRECORDED);
  return true;
}

/* Queues the wait, or finds the point that the driver has to wait for.  Call it under the lock.  `failed`: set if the
 * event's last record failed. */
static rill_status submit_wait(struct new_wait *wait, struct rill__event **point, bool *taken, bool *failed) {
  struct rill__event *event = wait->event;
  rill_status status = RILL_OK;
  *taken = true;
  if (atomic_load(&rill__core(event)->state) == RILL__EVENT_UNRECORDED && await_first(wait, &status)) return status;
  struct rill__fence *fence = rill__event_fence(event);
  const enum fence_state state = fence == NULL ? FENCE_ISSUED : rill__fence_state(fence);
  *failed = state == FENCE_FAILED;
  if (*failed) return RILL_OK;
  if (state == FENCE_ISSUED && !rill__is_held(wait->stream)) {
    *point = fence == NULL ? event : fence->mark;
    *taken = false;
    return RILL_OK;
  }
  if (state == FENCE_QUEUED && fence->queue == rill__core(wait->stream)->queue)
    return RILL_OK; /* the queue already orders the wait after the record */
  if (fence != NULL) return queue_wait(wait, fence);
  /* The stream is held and the driver has the record.  The fence is issued before the wait is queued, so the wait
   * counts in the event's `awaited`, and a later record of the event uses another mark. */
  rill__fence_issue(wait->fence, event, true);
  RILL_TRY(queue_wait(wait, wait->fence));
  rill__event_attach(event, wait->fence);
  return RILL_OK;
}

static rill_status prepare_wait(struct new_wait *wait) {
  struct rill__stream *stream = wait->stream;
  RILL_TRY(new_op(NULL, &wait->op));
  RILL_TRY(rill__fence_new(wait->event, &wait->fence));
  if (rill__is_held(stream)) return RILL_OK;
  /* The queue is allocated before the lock is taken, and freed by the caller if hold() does not use it. */
  wait->queue = calloc(1, sizeof *wait->queue);
  RILL_REQUIRE(wait->queue != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory to hold a stream");
  return RILL_DISPATCH(stream, stream, is_capturing, stream, &wait->capturing);
}

rill_status rill__held_wait(struct rill__stream *stream, struct rill__event *event, struct rill__event **point,
                            bool *taken) {
  struct new_wait wait = { .stream = stream, .event = event };
  bool failed = false;
  rill_status status = prepare_wait(&wait);
  rill__held_lock();
  if (status == RILL_OK) status = submit_wait(&wait, point, taken, &failed);
  if (wait.fence != NULL) rill__fence_unref(wait.fence);
  rill__held_unlock();
  free(wait.op);
  free(wait.queue);
  return failed ? rill__fail_failed_record(event) : status;
}

/* ---- streams ---- */

bool rill__stream_share(struct rill__stream *stream) {
  rill__held_lock();
  const bool held = rill__is_held(stream);
  if (!held) atomic_store(&stream->foreign, true);
  rill__held_unlock();
  return !held;
}

void rill__held_forget(struct rill__stream *stream) {
  free(rill__core(stream)->queue);
  rill__held_lock();
  rill__failure_unref(atomic_load(&rill__core(stream)->failure));
  rill__held_unlock();
}
