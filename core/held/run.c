/* Handing held work to the driver. */
#include "core/held/queue.h"
#include "core/sync/submit.h"

#include <stdlib.h>

/* ---- one operation; without the lock ---- */

struct reported_call {
  rill_host_fn fn;
  void *user;
  rill_status status;
};

static void report(void *user, rill_status stream_status) {
  const struct reported_call call = *(struct reported_call *)user;
  free(user);
  (void)stream_status;
  call.fn(call.user, call.status);
}

/* The call was accepted, so it runs in any case; where the driver cannot take it, here. */
static rill_status submit_held_host_call(struct rill__stream *stream, const struct held_op *op) {
  if (op->reported == RILL_OK) {
    const rill_status status = RILL_DISPATCH(stream, stream, host_call, stream, op->host_call.fn, op->host_call.user);
    if (status != RILL_OK) rill__call_host(op->host_call.fn, op->host_call.user, status);
    return status;
  }
  struct reported_call *call = malloc(sizeof *call);
  if (call != NULL) {
    *call = (struct reported_call){ op->host_call.fn, op->host_call.user, op->reported };
    if (RILL_DISPATCH(stream, stream, host_call, stream, report, call) == RILL_OK) return RILL_OK;
  }
  free(call);
  rill__call_host(op->host_call.fn, op->host_call.user, op->reported);
  return RILL_OK;
}

static void deliver_rows(void *user, rill_status stream_status) {
  const struct rill__copy_3d *copy = user;
  if (stream_status == RILL_OK) rill__copy_rows(copy, 0, copy->height * copy->depth);
}

/* The driver uses from here on what the operation owned. */
static void finish_payload(struct rill__stream *stream, struct held_op *op) {
  struct rill__payload *payload = op->payload;
  op->payload = NULL;
  if (payload != NULL) payload->finish(stream, payload);
}

static rill_status submit_held_copy(struct rill__stream *stream, struct held_op *op) {
  const struct rill__copy_3d *ends = &op->copy.ends;
  if (ends->height == 1 && ends->depth == 1) {
    RILL_TRY(
        RILL_DISPATCH(stream, memory, copy, stream, ends->dst, ends->dst_kind, ends->src, ends->src_kind, ends->width));
  } else {
    RILL_TRY(RILL_DISPATCH(stream, memory, copy_3d, stream, ends));
  }
  struct rill__copy_3d *deliver = op->copy.deliver;
  const rill_status status =
      deliver != NULL ? RILL_DISPATCH(stream, stream, host_call, stream, deliver_rows, deliver) : RILL_OK;
  finish_payload(stream, op);
  return status;
}

static rill_status submit_held_launch(struct rill__stream *stream, struct held_op *op) {
  const struct rill__launch *const launch = &op->launch.shape;
  const rill_status status = RILL_DISPATCH_LAUNCH(stream, launch);
  if (status != RILL_OK && launch->label != NULL) rill__error_of_launch(launch->label);
  finish_payload(stream, op);
  return status;
}

/* Where others may wait for the native event, and the fence is still what the event stands for, that is recorded, too.
 */
static rill_status record_shared(struct rill__stream *stream, const struct held_op *op) {
  struct rill__event *event = op->record.event;
  rill__held_lock();
  struct rill__fence *fence = rill__event_claim(event);
  rill__held_unlock();
  if (fence == NULL) return RILL_OK;
  const bool current = fence == op->record.fence;
  const rill_status status = current ? rill__record_in_driver(stream, event, op->record.flags) : RILL_OK;
  rill__held_lock();
  rill__event_unclaim(fence);
  if (current && status == RILL_OK) rill__event_detach(event, RILL__EVENT_RECORDED);
  rill__held_unlock();
  return status;
}

static rill_status submit_held_record(struct rill__stream *stream, struct held_op *op) {
  struct rill__event *event = op->record.event, *mark = NULL;
  RILL_TRY(rill__mark_new(event, &mark));
  rill_status status = rill__record_in_driver(stream, mark, op->record.flags);
  if (status == RILL_OK && rill__event_is_shared(event)) status = record_shared(stream, op);
  if (status != RILL_OK) {
    rill__object_retire(&mark->base);
    return status;
  }
  rill__held_lock();
  rill__fence_issue(op->record.fence, mark, false);
  rill__held_unlock();
  return RILL_OK;
}

static rill_status hand_over(struct rill__stream *stream, struct held_op *op) {
  switch (op->kind) {
    case HELD_WAIT:
      if (op->wait.fence->mark == NULL) return RILL_OK;
      return RILL_DISPATCH(stream, stream, wait, stream, op->wait.fence->mark, 0);
    case HELD_HOST_CALL: return submit_held_host_call(stream, op);
    case HELD_COPY: return submit_held_copy(stream, op);
    case HELD_FILL: return rill__fill_rows(stream, &op->fill.rows);
    case HELD_PREFETCH: return RILL_DISPATCH(stream, memory, prefetch, stream, op->prefetch.p, op->prefetch.size);
    case HELD_LAUNCH: return submit_held_launch(stream, op);
    case HELD_GRAPH: return rill__graph_launch_held(op->exec, stream);
    case HELD_RECORD: break; /* by submit_held_record */
  }
  return RILL_ERROR_INTERNAL;
}

/* ---- queues; under the lock ---- */

/* The driver refused an operation: what comes after it fails, too. */
static void fail_rest(struct rill__queue *queue, const struct held_op *op, struct held_op **dead) {
  const struct rill__error_record *error = rill__failure();
  struct rill__failure *failure =
      rill__failure_new(error->status, error->native_code, error->native_name, error->message);
  if (op->kind == HELD_RECORD) rill__fence_fail(op->record.fence, failure);
  rill__queue_fail(queue, failure, dead);
  rill__failure_unref(failure);
}

/* Hands the first operation over, and releases the lock meanwhile. */
static void submit_first(struct rill__queue *queue, struct held_op **dead) {
  struct rill__stream *stream = queue->stream;
  struct held_op *op = rill__queue_remove_first(queue);
  queue->submitting = op->serial;
  rill__held_unlock();
  rill__held_ops_free(*dead);
  *dead = NULL;
  rill_status status = RILL_OK;
  if (op->kind == HELD_RECORD) {
    status = submit_held_record(stream, op);
  } else {
    rill__submission_begin(&rill__core(stream)->work, rill__self);
    status = hand_over(stream, op);
    rill__submission_end(&rill__core(stream)->work, rill__self);
  }
  rill__held_lock();
  queue->submitting = 0;
  queue->done = op->position;
  rill__held_op_end(op);
  if (status != RILL_OK) fail_rest(queue, op, dead);
  if (op->kind == HELD_WAIT) rill__fence_remove_wait(op->wait.fence);
  if (op->kind == HELD_RECORD) rill__fence_unref(op->record.fence);
  op->next = *dead;
  *dead = op;
  rill__held_changed();
}

static void end_hold(struct rill__queue *queue, struct held_op **dead) {
  struct rill__stream *stream = queue->stream;
  *queue->link_held = queue->next_held;
  if (queue->next_held != NULL) queue->next_held->link_held = queue->link_held;
  queue->done = queue->pushed; /* what failed was taken out */
  (void)atomic_fetch_and(&rill__core(stream)->diverted, ~(uint32_t)RILL__HELD);
  atomic_fetch_sub(&rill__core(stream->base.device)->held_streams, 1);
  atomic_fetch_sub(&rill__held_count, 1);
  rill__held_changed();
  rill__held_unlock();
  rill__held_ops_free(*dead);
  *dead = NULL;
  rill__unref(&stream->base);
  rill__held_lock();
}

/* Hands over what can go. */
static void run_queue(struct rill__queue *queue, struct held_op **dead) {
  while (queue->first != NULL) {
    const struct held_op *op = queue->first;
    struct rill__fence *fence = op->kind == HELD_WAIT ? op->wait.fence : NULL;
    if (fence != NULL && rill__fence_is_pending(fence)) {
      rill__queue_link(queue, &fence->blocked);
      return;
    }
    if (fence != NULL && rill__fence_state(fence) == FENCE_FAILED) {
      struct rill__failure *failure = fence->failure; /* the wait's reference goes with it */
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
    if (!blocked) continue; /* a thread runs it, or will */
    rill__queue_unlink(queue);
    rill__queue_link(queue, &rill__held_ready);
  }
  rill__failure_unref(failure);
  rill__held_changed();
  rill__held_unlock();
  rill__held_ops_free(dead);
  rill__held_run();
}
