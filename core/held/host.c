/* The lock of held work, and waits of the host for held work. */
#include "core/device/life.h"
#include "core/held/queue.h"
#include "core/sync/events.h"

#include <errno.h>
#include <time.h>

static pthread_mutex_t held_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static pthread_once_t held_once = PTHREAD_ONCE_INIT;

/* Sets the function pointers at the first use of the lock: no stream can be held before that, so nothing has to be
 * called. */
static void prepare_held(void) {
  atomic_store(&rill__device_lost_held, rill__held_device_lost);
  atomic_store(&rill__event_leave_fence, rill__held_leave_fence);
  pthread_condattr_t monotonic;
  (void)pthread_condattr_init(&monotonic);
  (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  (void)pthread_cond_init(&changed, &monotonic);
  (void)pthread_condattr_destroy(&monotonic);
}

void rill__held_lock(void) {
  (void)pthread_once(&held_once, prepare_held);
  pthread_mutex_lock(&held_lock);
  rill__lock_taken(RILL__LOCK_HELD);
}

void rill__held_unlock(void) {
  rill__lock_released(RILL__LOCK_HELD);
  pthread_mutex_unlock(&held_lock);
}

void rill__held_changed(void) {
  RILL_ASSERT_HELD_LOCKED();
  pthread_cond_broadcast(&changed);
}

void rill__held_await_change(void) {
  RILL_WITHOUT_CANCEL();
  (void)pthread_cond_wait(&changed, &held_lock);
}

/* ---- fork ---- */

/* Empties all queues without freeing their operations: an operation may own something that belongs to a thread that
 * does not exist in the child. */
static void drop_all(void) {
  for (struct held_op *op = rill__held_any.oldest; op != NULL; op = op->newer) {
    if (rill__held_is(op, RILL__OPERATION_EXEC)) atomic_store(&rill__core(op->operation->exec)->held_launches, 0);
  }
  for (struct held_op *op = rill__held_named.oldest; op != NULL; op = op->newer) {
    for (size_t i = 0; i < 2 && op->named[i].object != NULL; i++) *op->named[i].uses = 0;
    if (rill__held_is(op, RILL_NODE_EVENT_RECORD)) op->fence->queue = NULL;
  }
  for (struct rill__queue *queue = rill__held_queues; queue != NULL; queue = queue->next_held) {
    for (struct held_op *op = queue->first; op != NULL; op = op->next) {
      if (rill__held_is(op, RILL_NODE_EVENT_RECORD)) atomic_store(&op->fence->state, FENCE_FAILED);
    }
    struct rill__stream *stream = queue->stream;
    queue->first = queue->last_wait = NULL;
    queue->last = &queue->first;
    if (queue->link != NULL) rill__queue_unlink(queue);
    queue->bytes = 0;
    queue->submitting = 0;
    queue->removed = queue->done = queue->pushed;
    (void)atomic_fetch_and(&rill__core(stream)->diverted, ~(uint32_t)RILL__HELD);
    atomic_store(&rill__core(stream->base.device)->held_streams, 0);
  }
  rill__held_queues = rill__held_ready = NULL;
  rill__held_named = rill__held_any = (struct held_list){ NULL, NULL };
  atomic_store(&rill__held_count, 0);
}

void rill__held_after_fork(void) {
  prepare_held(); /* the parent's waiting threads do not exist in the child */
  drop_all();
  rill__held_claims_end();
  rill__held_changed();
}

/* ---- waits of the host ---- */

static void deadline_after(struct timespec *at, uint64_t ns) {
  (void)clock_gettime(CLOCK_MONOTONIC, at);
  const uint64_t limit = (uint64_t)INT32_MAX * 1000000000u; /* about 68 years */
  if (ns > limit) ns = limit;
  at->tv_sec += (time_t)(ns / 1000000000u);
  at->tv_nsec += (long)(ns % 1000000000u);
  if (at->tv_nsec >= 1000000000) {
    at->tv_sec++;
    at->tv_nsec -= 1000000000;
  }
}

static uint64_t time_left(const struct timespec *until) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t left = (until->tv_sec - now.tv_sec) * INT64_C(1000000000) + (until->tv_nsec - now.tv_nsec);
  return left > 0 ? (uint64_t)left : 0;
}

/* Waits for a change under the lock.  Returns false if the time has elapsed. */
static bool wait_for_change(const struct timespec *until, uint64_t ns) {
  if (ns == RILL__FOREVER) {
    rill__held_await_change();
    return true;
  }
  RILL_WITHOUT_CANCEL();
  return pthread_cond_timedwait(&changed, &held_lock, until) != ETIMEDOUT;
}

static rill_status fail_time_out(const struct rill__object *object, uint64_t ns, const struct held_chain *chain) {
  return rill__fail(RILL_ERROR_TIMEOUT, "%s is still held after %llu ns%s" RILL_HINT "record the event first",
                    rill__name_of(object).text, (unsigned long long)ns, chain->text);
}

rill_status rill__held_wait_for_stream(struct rill__stream *stream, uint64_t *ns) {
  RILL_ASSERT(rill__is_outside_epochs(), "nothing that runs inside an epoch blocks");
  struct timespec until = { 0 };
  struct held_chain chain = { "" };
  if (*ns != RILL__FOREVER) deadline_after(&until, *ns);
  struct rill__device *device = stream->base.device;
  bool in_time = true;
  rill__held_lock();
  const struct rill__queue *queue = rill__core(stream)->queue;
  const uint64_t target = queue != NULL ? queue->pushed : 0;
  while (target > 0 && queue->done < target && in_time && atomic_load(&device->lost) == RILL_OK) {
    in_time = wait_for_change(&until, *ns);
  }
  /* The work may have been submitted just as the time elapsed: that counts as in time. */
  in_time |= target == 0 || queue->done >= target;
  if (!in_time) rill__held_describe(queue, &chain);
  rill__held_unlock();
  /* either may happen first: the loss of a device ends the wait, and fails the held work */
  RILL_TRY(rill__check_usable(device));
  if (!in_time) return fail_time_out(&stream->base, *ns, &chain);
  if (*ns != RILL__FOREVER) *ns = time_left(&until);
  return RILL_OK;
}

/* Returns true if nothing prevents the queue from being submitted.  Call it under the lock. */
static bool is_handed_over(const struct rill__queue *queue) {
  const struct held_op *op = queue->first;
  return queue->link == NULL || op == NULL || !rill__held_is_wait(op) || !rill__fence_is_pending(op->fence);
}

void rill__held_wait_submitted(struct rill__stream *stream) {
  struct rill__thread *const self = rill__self;
  /* A host call must not block here: the queue may wait for the end of that same host call. */
  if (RILL__LIKELY(!rill__is_held(stream)) || rill__in_host_call) return;
  const bool inside = !rill__is_outside_epochs();
  if (inside) rill__leave(&self);
  rill__held_run(); /* submits ready queues itself, because it is not certain that another thread will */
  rill__held_lock();
  while (rill__is_held(stream) && is_handed_over(rill__core(stream)->queue)) rill__held_await_change();
  rill__held_unlock();
  if (inside) rill__enter_epoch(self);
}

bool rill__held_wait_launches(struct rill__graph_exec *exec) {
  struct rill__exec_core *core = rill__core(exec);
  RILL_ASSERT(rill__is_outside_epochs(), "nothing that runs inside an epoch blocks");
  if (rill__in_host_call) return atomic_load(&core->held_launches) == 0;
  rill__held_run();
  rill__held_lock();
  while (atomic_load(&core->held_launches) > 0 && is_handed_over(rill__core(core->held_stream)->queue)) {
    rill__held_await_change();
  }
  const bool none = atomic_load(&core->held_launches) == 0;
  rill__held_unlock();
  return none;
}

rill_status rill__stream_note_failure(struct rill__stream *stream, rill_status status, const char *text) {
  struct rill__failure *failure = rill__failure_new(status, 0, "", text), *none = NULL;
  RILL_REQUIRE(failure != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory to store a failure");
  if (!atomic_compare_exchange_strong(&rill__core(stream)->failure, &none, failure)) rill__failure_unref(failure);
  return RILL_OK;
}

rill_status rill__held_failure(struct rill__stream *stream) {
  struct rill__failure *failure = atomic_exchange(&rill__core(stream)->failure, NULL);
  if (failure == NULL) return RILL_OK;
  const rill_status status =
      rill__fail_native(failure->status, failure->native_code, failure->native_name, "work of %s failed: %s",
                        rill__name_of(&stream->base).text, failure->text);
  rill__held_lock();
  rill__failure_unref(failure);
  rill__held_unlock();
  return status;
}

/* Waits until the record is no longer queued.  Call it under the lock, with a reference to the fence.  Returns false if
 * the time has elapsed first. */
static bool wait_for_fence(const struct rill__fence *fence, const struct timespec *until, uint64_t ns) {
  bool in_time = true;
  while (rill__fence_state(fence) == FENCE_QUEUED && in_time && atomic_load(&fence->base.device->lost) == RILL_OK) {
    in_time = wait_for_change(until, ns);
  }
  return in_time || rill__fence_state(fence) != FENCE_QUEUED;
}

rill_status rill__held_wait_for_event(struct rill__event *event, uint64_t *ns, struct rill__event **point) {
  struct rill__device *device = event->base.device;
  struct timespec until = { 0 };
  struct held_chain chain = { "" };
  bool in_time = true, failed = false;
  RILL_ASSERT(rill__is_outside_epochs(), "nothing that runs inside an epoch blocks");
  if (*ns != RILL__FOREVER) deadline_after(&until, *ns);
  *point = NULL;
  rill__held_lock();
  struct rill__fence *const fence = rill__event_fence(event);
  if (atomic_load(&rill__core(event)->state) == RILL__EVENT_RECORDED) *point = event;
  if (fence != NULL) {
    fence->references++;
    in_time = wait_for_fence(fence, &until, *ns);
    if (!in_time) rill__held_describe(fence->queue, &chain);
    failed = rill__fence_state(fence) == FENCE_FAILED;
    if (rill__fence_state(fence) == FENCE_ISSUED) *point = fence->mark;
  }
  /* The mark is referenced before the fence's reference is dropped, because the fence may own the mark. */
  if (*point != NULL) rill__ref(&(*point)->base);
  if (fence != NULL) rill__fence_unref(fence);
  rill__held_unlock();
  rill_status status = rill__check_usable(device);
  if (status == RILL_OK && !in_time) status = fail_time_out(&event->base, *ns, &chain);
  if (status == RILL_OK && failed) status = rill__fail_failed_record(event);
  if (status != RILL_OK && *point != NULL) {
    rill__unref(&(*point)->base);
    *point = NULL;
  }
  if (*ns != RILL__FOREVER) *ns = time_left(&until);
  return status;
}

void rill__held_explain(struct rill__stream *stream, struct rill__text *text) {
  struct held_chain chain = { "" };
  rill__held_lock();
  const struct rill__queue *const queue = rill__is_held(stream) ? rill__core(stream)->queue : NULL;
  const uint64_t queued = queue != NULL ? queue->pushed - queue->done : 0;
  if (queue != NULL) rill__held_describe(queue, &chain);
  rill__held_unlock();
  if (queue == NULL) return;
  rill__text_add(text, "\n  held%s; %llu operations are queued%s", chain.text, (unsigned long long)queued,
                 chain.text[0] != '\0' ? ": record the event first" : "");
}

/* Returns a queue of the device with work up to the serial number, or NULL. */
static struct rill__queue *find_queue(const struct rill__device *device, uint64_t serial) {
  struct rill__queue *queue = rill__held_queues;
  while (queue != NULL &&
         (queue->stream->base.device != device || !((queue->first != NULL && queue->first->serial <= serial) ||
                                                    (queue->submitting != 0 && queue->submitting <= serial)))) {
    queue = queue->next_held;
  }
  return queue;
}

void rill__held_wait_for_device(struct rill__device *device) {
  if (atomic_load(&rill__core(device)->held_streams) == 0) return;
  rill__held_lock();
  const uint64_t serial = rill__held_serial;
  while (find_queue(device, serial) != NULL && atomic_load(&device->lost) == RILL_OK) {
    (void)wait_for_change(NULL, RILL__FOREVER);
  }
  rill__held_unlock();
}

/* ---- memory that held work may use ---- */

bool rill__record_is_held(struct rill__event *event) {
  const struct rill__fence *fence = rill__event_fence(event);
  return fence != NULL && fence->queue != NULL;
}

/* Operations queued from now on cannot name the memory.  Kernels, host calls and graphs may use any memory and can
 * still be queued, so only those that are already queued are waited for. */
void rill__held_wait_for_range(const uint32_t *uses, bool (*is_used)(const void *range), const void *range) {
  if (atomic_load(&rill__held_count) == 0) return;
  rill__held_lock();
  const uint64_t serial = rill__held_serial;
  while ((rill__held_any.oldest != NULL && rill__held_any.oldest->serial <= serial) || *uses > 0 || is_used(range)) {
    rill__held_await_change();
  }
  rill__held_unlock();
}
