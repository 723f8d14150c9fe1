#include "backends/cpu/cpu.h"
#include "backends/cpu/schedule.h"

#include <pthread.h>

static rill_status cpu_stream_create(struct rill__stream *stream) {
  struct cpu_stream *part = rill__part(stream);
  /* There is no null stream to order against, so `blocking` has no effect. */
  return rill__cpu_queue_new(stream->base.device, (uint32_t)(stream->priority + 1), &part->queue);
}

static bool cpu_stream_may_destroy(struct rill__stream *stream) {
  struct cpu_queue *queue = cpu_queue_of(stream);
  return cpu_queue_reached(queue, cpu_queue_submitted(queue));
}

static bool cpu_stream_destroy(struct rill__stream *stream) {
  rill__cpu_queue_release(cpu_queue_of(stream));
  return true;
}

static uintptr_t cpu_stream_native(struct rill__stream *stream) {
  (void)stream;
  return 0;
}

static rill_status cpu_stream_context(struct rill__stream *stream, uintptr_t *out) {
  (void)stream;
  *out = 0;
  return RILL_OK;
}

rill_status rill__cpu_wait_status(struct rill__device *device, bool reached, uint64_t ns) {
  if (RILL__UNLIKELY(atomic_load_explicit(&device->lost, memory_order_acquire) != RILL_OK))
    return rill__fail_lost(device);
  RILL_REQUIRE(reached, RILL_ERROR_TIMEOUT, "the work was not done within %llu ns", (unsigned long long)ns);
  return RILL_OK;
}

static rill_status cpu_stream_synchronize(struct rill__stream *stream, uint64_t ns) {
  struct cpu_queue *queue = cpu_queue_of(stream);
  const bool reached = rill__cpu_queue_wait(queue, cpu_queue_submitted(queue), ns, true);
  return rill__cpu_wait_status(stream->base.device, reached, ns);
}

static rill_status cpu_stream_is_complete(struct rill__stream *stream, bool *out) {
  struct cpu_queue *queue = cpu_queue_of(stream);
  cpu_queried();
  *out = cpu_queue_reached(queue, cpu_queue_submitted(queue));
  return RILL_OK;
}

static rill_status cpu_stream_is_capturing(struct rill__stream *stream, bool *out) {
  (void)stream;
  *out = false;
  return RILL_OK;
}

/* ---- host calls ---- */

struct host_call {
  struct cpu_op op;
  rill_host_fn fn;
  void *user;
  uint64_t stream; /* id of the stream */
};

static bool run_host_call(struct cpu_queue *queue, struct cpu_op *op) {
  const struct host_call *call = (const struct host_call *)op;
  const uint32_t generation = atomic_load_explicit(&rill__cpu_generation, memory_order_relaxed);
  rill__call_host(call->stream, call->fn, call->user, atomic_load_explicit(&queue->device->lost, memory_order_acquire));
  /* In the child of a fork inside fn, this worker is the only thread and its queue has been reset. */
  if (atomic_load_explicit(&rill__cpu_generation, memory_order_relaxed) != generation) pthread_exit(NULL);
  return true;
}

static rill_status host_call(struct rill__stream *stream, rill_host_fn fn, void *user) {
  struct cpu_queue *queue = cpu_queue_of(stream);
  struct host_call *call = NULL;
  RILL_TRY(rill__cpu_queue_begin(queue, sizeof *call, &call));
  call->op.run = run_host_call;
  call->op.run_if_lost = true; /* fn is called with the status */
  call->op.end = NULL;
  call->fn = fn;
  call->user = user;
  call->stream = stream->base.id;
  cpu_queue_unsettle(queue);
  (void)rill__cpu_queue_commit(queue);
  cpu_submitted(queue);
  return RILL_OK;
}

const struct rill__stream_table rill__cpu_stream_table = {
  .create = cpu_stream_create,
  .may_destroy = cpu_stream_may_destroy,
  .destroy = cpu_stream_destroy,
  .native = cpu_stream_native,
  .context = cpu_stream_context,
  .record = rill__cpu_event_record,
  .wait = rill__cpu_event_wait,
  .synchronize = cpu_stream_synchronize,
  .is_complete = cpu_stream_is_complete,
  .is_capturing = cpu_stream_is_capturing,
  .host_call = host_call,
};
