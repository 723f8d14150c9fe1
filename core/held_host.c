/* The lock of all that is held, and the host's waits for it. */
#include "core/held_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
uint64_t rill__held_progress;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void prepare(void) {
  pthread_condattr_t monotonic;
  (void)pthread_condattr_init(&monotonic);
  (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  (void)pthread_cond_init(&changed, &monotonic);
  (void)pthread_condattr_destroy(&monotonic);
}

void rill__held_lock(void) {
  (void)pthread_once(&once, prepare);
  pthread_mutex_lock(&lock);
}

void rill__held_unlock(void) { pthread_mutex_unlock(&lock); }
void rill__held_changed(void) {
  rill__held_progress++;
  pthread_cond_broadcast(&changed);
}

void rill__held_after_fork(void) {
  prepare(); /* the parent's waiters are not here */
  rill__held_drop_all();
}

/* ---- waits of the host ---- */

static void deadline_after(struct timespec *at, uint64_t ns) {
  (void)clock_gettime(CLOCK_MONOTONIC, at);
  const uint64_t limit = (uint64_t)INT32_MAX * 1000000000u; /* for ever, nearly */
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

void rill__held_await_change(void) { (void)pthread_cond_wait(&changed, &lock); }

/* Waits for a change; false if the time is over.  Under the lock. */
static bool wait_for_change(const struct timespec *until, uint64_t ns) {
  if (ns == RILL__FOREVER) {
    (void)pthread_cond_wait(&changed, &lock);
    return true;
  }
  return pthread_cond_timedwait(&changed, &lock, until) != ETIMEDOUT;
}

rill_status rill__held_wait_for_stream(struct rill__stream *stream, uint64_t *ns) {
  struct timespec until = { 0 };
  if (*ns != RILL__FOREVER) deadline_after(&until, *ns);
  struct rill__device *device = stream->base.device;
  bool in_time = true;
  rill__held_lock();
  const struct rill__held *held = atomic_load(&stream->held);
  const uint64_t target = stream->held_pushed;
  while (held != NULL && stream->held_popped < target && in_time && atomic_load(&device->lost) == RILL_OK) {
    in_time = wait_for_change(&until, *ns);
    held = atomic_load(&stream->held);
  }
  rill__held_unlock();
  RILL_TRY(rill__check_usable(device)); /* a lost device ends the wait, and fails what was held, in either order */
  RILL_REQUIRE(in_time, RILL_ERROR_TIMEOUT, "%s is still held after %llu ns", rill__name_of(&stream->base).text,
               (unsigned long long)*ns);
  if (*ns != RILL__FOREVER) *ns = time_left(&until);
  return RILL_OK;
}

rill_status rill__held_failure(struct rill__stream *stream) {
  struct rill__failure *failure = atomic_exchange(&stream->failure, NULL);
  if (failure == NULL) return RILL_OK;
  const rill_status status =
      rill__fail_native(failure->status, failure->native_code, failure->native_name, "held work of %s failed: %s",
                        rill__name_of(&stream->base).text, failure->text);
  free(failure);
  return status;
}

rill_status rill__held_wait_for_event(struct rill__event *event, uint64_t *ns) {
  struct rill__device *device = event->base.device;
  struct timespec until = { 0 };
  if (*ns != RILL__FOREVER) deadline_after(&until, *ns);
  bool in_time = true, failed = false;
  rill__held_lock();
  struct rill__point *const point = atomic_load(&event->held_point);
  if (point != NULL) {
    rill__point_use(point);
    while (point->state == POINT_HELD && in_time && atomic_load(&device->lost) == RILL_OK) {
      in_time = wait_for_change(&until, *ns);
    }
    failed = point->state == POINT_FAILED;
    rill__point_unuse(point);
  }
  rill__held_unlock();
  RILL_TRY(rill__check_usable(device)); /* a lost device ends the wait, and fails what was held, in either order */
  RILL_REQUIRE(in_time, RILL_ERROR_TIMEOUT, "%s is still held after %llu ns", rill__name_of(&event->base).text,
               (unsigned long long)*ns);
  RILL_REQUIRE(!failed, RILL_ERROR_NOT_RECORDED, "%s was recorded on a held stream, whose work failed",
               rill__name_of(&event->base).text);
  if (*ns != RILL__FOREVER) *ns = time_left(&until);
  return RILL_OK;
}

void rill__held_wait_for_device(struct rill__device *device) {
  if (atomic_load(&device->held_streams) == 0) return;
  rill__held_lock();
  while (atomic_load(&device->held_streams) != 0 && atomic_load(&device->lost) == RILL_OK) {
    (void)wait_for_change(NULL, RILL__FOREVER);
  }
  rill__held_unlock();
}
