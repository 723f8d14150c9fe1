/* Submitting held work to the driver. */
#include "core/diagnose/calls.h"
#include "core/held/queue.h"
#include "core/sync/submit.h"

#include <stdlib.h>

/* ---- one operation; without the lock ---- */

struct reported_call {
  rill_host_fn fn;
  void *user;
  rill_status status;
};

/* Calls the function with the status of the failed work: the driver knows nothing of that failure, and passes its own
 * status. */
static void report(void *user, rill_status stream_status) {
  const struct reported_call call = *(struct reported_call *)user;
  free(user);
  (void)stream_status;
  rill__call_is_of(call.fn);
  call.fn(call.user, call.status);
}

/* Submits a host call.  The call was accepted, so it has to run: if the driver refuses it, it runs on this thread. */
static rill_status submit_held_host_call(struct rill__stream *stream, const struct held_op *op) {
  const rill_host_fn fn = op->operation->host_call.fn;
  void *const user = op->operation->host_call.user;
  if (op->reported == RILL_OK) {
    const rill_status status = rill__submit_host_call(stream, fn, user);
    if (status != RILL_OK) rill__call_host(stream->base.id, fn, user, status);
    return status;
  }
  struct reported_call *call = malloc(sizeof *call);
  if (call != NULL) {
    *call = (struct reported_call){ fn, user, op->reported };
    if (rill__submit_host_call(stream, report, call) == RILL_OK) return RILL_OK;
  }
  free(call);
  rill__call_host(stream->base.id, fn, user, op->reported);
  return RILL_OK;
}

static void deliver_rows(void *user, rill_status stream_status) {
  const struct rill__copy_3d *copy = user;
  if (stream_status == RILL_OK) rill__copy_rows(copy, 0, copy->height * copy->depth);
}

/* Also records the native event, if other code may wait for it and the event still stands for this fence. */
static rill_status record_shared(struct rill__stream *stream, const struct held_op *op) {
  struct rill__event *event = op->operation->event;
  rill__held_lock();
  struct rill__fence *fence = rill__event_claim(event);
  rill__held_unlock();
  if (fence == NULL) return RILL_OK;
  const bool current = fence == op->fence;
  const rill_status status = current ? rill__record_in_driver(stream, event, op->flags) : RILL_OK;
  rill__held_lock();
  rill__event_unclaim(fence);
  if (current && status == RILL_OK) rill__event_detach(event, RILL__EVENT_RECORDED);
  rill__held_unlock();
  return status;
}

/* Submits a record.  The driver gets it before the fence is issued: a wait that finds the fence ISSUED is submitted
 * immediately. */
static rill_status submit_held_record(struct rill__stream *stream, struct held_op *op) {
  struct rill__event *event = op->operation->event, *mark = NULL;
  RILL_TRY(rill__mark_new(event, &mark));
  rill_status status = rill__record_in_driver(stream, mark, op->flags);
  if (status == RILL_OK && rill__event_is_shared(event)) status = record_shared(stream, op);
  if (status != RILL_OK) {
    rill__object_retire(&mark->base);
    return status;
  }
  rill__held_lock();
  rill__fence_issue(op->fence, mark, false);
  rill__held_unlock();
  return RILL_OK;
}

rill_status rill__submit_operation(struct rill__stream *stream, const struct rill__operation *operation) {
  switch (operation->kind) {
    case RILL_NODE_KERNEL: return rill__submit_launch(stream, &operation->launch);
    case RILL_NODE_COPY: return rill__submit_copy(stream, &operation->copy);
    case RILL_NODE_FILL: return rill__submit_fill(stream, &operation->fill.rows);
    case RILL__OPERATION_PREFETCH:
      return rill__submit_prefetch(stream, operation->prefetch.p, operation->prefetch.size);
    case RILL_NODE_HOST_CALL: return rill__submit_host_call(stream, operation->host_call.fn, operation->host_call.user);
    default:
      return rill__fail(RILL_ERROR_INTERNAL, "operations of kind %u cannot be submitted by themselves",
                        operation->kind);
  }
}

static rill_status submit_held_operation(struct rill__stream *stream, const struct held_op *op) {
  struct rill__operation *operation = op->operation;
  rill_status status = rill__submit_operation(stream, operation);
  if (status == RILL_OK && op->deliver != NULL) {
    status = rill__submit_host_call(stream, deliver_rows, (void *)(uintptr_t)op->deliver);
  }
  if (status != RILL_OK && operation->kind == RILL_NODE_KERNEL && operation->label != NULL) {
    rill__error_of_launch(operation->label);
  }
  rill__operation_finish(operation, stream);
  return status;
}

static rill_status hand_over(struct rill__stream *stream, const struct held_op *op) {
  if (rill__held_is_wait(op)) {
    const struct rill__fence *const fence = op->fence;
    RILL_ASSERT(rill__fence_state(fence) == FENCE_ISSUED,
                "work is submitted to the driver after all work that it depends on");
    return fence->mark != NULL ? rill__submit_wait(stream, fence->mark, 0) : RILL_OK;
  }
  if (rill__held_is(op, RILL_NODE_HOST_CALL)) return submit_held_host_call(stream, op);
  if (rill__held_is(op, RILL__OPERATION_EXEC)) return rill__graph_launch_held(op->operation->exec, stream);
  return submit_held_operation(stream, op);
}

/* ---- queues; under the lock ---- */

/* Fails the rest of the queue after the driver has refused an operation. */
static void fail_rest(struct rill__queue *queue, const struct held_op *op, struct held_op **dead) {
  const struct rill__error_record *error = rill__failure();
  struct rill__failure *failure =
      rill__failure_new(error->status, error->native_code, error->native_name, error->message);
  /* The operation is no longer in the queue, so rill__queue_fail does not fail its fence. */
  if (rill__held_is(op, RILL_NODE_EVENT_RECORD)) rill__fence_fail(op->fence, failure);
  rill__queue_fail(queue, failure, dead);
  rill__failure_unref(failure);
}

/* Submits the first operation, releasing the lock during the driver call. */
static void submit_first(struct rill__queue *queue, struct held_op **dead) {
  struct rill__stream *stream = queue->stream;
  struct held_op *op = rill__queue_remove_first(queue);
  RILL_ASSERT(queue->link == NULL && queue->submitting == 0, "one thread runs a queue");
  queue->submitting = op->serial;
  rill__held_unlock();
  /* Removed operations are freed whenever the lock is released anyway, so the list stays short in a long queue. */
  rill__held_ops_free(*dead);
  *dead = NULL;
  const rill_status status =
      rill__held_is(op, RILL_NODE_EVENT_RECORD) ? submit_held_record(stream, op) : hand_over(stream, op);
  rill__held_lock();
  /* `done` and the lists are updated before the waiting threads are woken, and a failed record fails its fence before
   * the reference to the fence is dropped. */
  queue->submitting = 0;
  queue->done = op->position;
  rill__held_op_end(op);
  if (status != RILL_OK) fail_rest(queue, op, dead);
  if (rill__held_is_wait(op)) rill__fence_remove_wait(op->fence);
  if (rill__held_is(op, RILL_NODE_EVENT_RECORD)) rill__fence_unref(op->fence);
  op->next = *dead;
  *dead = op;
  rill__held_changed();
}

static void end_hold(struct rill__queue *queue, struct held_op **dead) {
  struct rill__stream *stream = queue->stream;
  RILL_ASSERT_HELD_LOCKED();
  RILL_ASSERT(queue->first == NULL && queue->submitting == 0 && queue->bytes == 0 && queue->last_wait == NULL,
              "a stream is held until its last operation has reached the driver");
  *queue->link_held = queue->next_held;
  if (queue->next_held != NULL) queue->next_held->link_held = queue->link_held;
  queue->done = queue->pushed; /* failed operations were removed without being submitted */
  (void)atomic_fetch_and(&rill__core(stream)->diverted, ~(uint32_t)RILL__HELD);
  atomic_fetch_sub(&rill__core(stream->base.device)->held_streams, 1);
  atomic_fetch_sub(&rill__held_count, 1);
  rill__held_changed();
  rill__held_unlock();
  rill__held_ops_free(*dead);
  *dead = NULL;
  /* Dropped without the lock, because this may destroy the stream, and last, because the queue belongs to the
   * stream. */
  rill__unref(&stream->base);
  rill__held_lock();
}

/* Submits operations until a wait blocks the queue or the queue is empty. */
static void run_queue(struct rill__queue *queue, struct held_op **dead) {
  while (queue->first != NULL) {
    const struct held_op *op = queue->first;
    struct rill__fence *fence = rill__held_is_wait(op) ? op->fence : NULL;
    if (fence != NULL && rill__fence_is_pending(fence)) {
      rill__queue_link(queue, &fence->blocked);
      return;
    }
    if (fence != NULL && rill__fence_state(fence) == FENCE_FAILED) {
      /* The failure belongs to the fence, whose last reference the removed wait may hold. */
      struct rill__failure *failure = fence->failure;
      if (failure != NULL) failure->references++;
      rill__queue_fail(queue, failure, dead);
      rill__failure_unref(failure);
      rill__held_changed();
    } else {
      submit_first(queue, dead);
    }
  }
  end_hold(queue, dead);
}

/* The caller's error record is suspended meanwhile: failures of held work are reported to the streams that they belong
 * to, not to the thread that happens to submit. */
void rill__held_run(void) {
  struct held_op *dead = NULL;
  rill__errors_suspend();
  rill__held_lock();
  while (rill__held_ready != NULL) {
    struct rill__queue *queue = rill__held_ready;
    rill__queue_unlink(queue);
    run_queue(queue, &dead);
  }
  rill__held_unlock();
  rill__held_ops_free(dead);
  rill__errors_resume();
}

void rill__held_device_lost(struct rill__device *device) {
  struct held_op *dead = NULL;
  struct rill__failure *failure = rill__failure_new(RILL_ERROR_DEVICE_LOST, rill__core(device)->cause.code,
                                                    rill__core(device)->cause.name, rill__core(device)->cause.text);
  rill__held_lock();
  for (struct rill__queue *queue = rill__held_queues; queue != NULL; queue = queue->next_held) {
    if (queue->stream->base.device != device) continue;
    const bool blocked = queue->first != NULL && queue->link != NULL;
    rill__queue_fail(queue, failure, &dead);
    if (!blocked) continue; /* a thread is running the queue or will run it */
    rill__queue_unlink(queue);
    rill__queue_link(queue, &rill__held_ready);
  }
  rill__failure_unref(failure);
  rill__held_changed();
  rill__held_unlock();
  rill__held_ops_free(dead);
  rill__held_run();
}
