#include "core/diagnose/waits.h"

#include <time.h>

uint64_t rill__now(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void set_word(_Atomic uint64_t *word, uint64_t value) {
  atomic_store_explicit(word, value, memory_order_relaxed);
}

static rill_status show_wait(struct rill__observed *what, enum rill__observed_kind kind, struct rill__object *object) {
  *what = (struct rill__observed){ .kind = kind, .device = object->device };
  if (kind == RILL__OBSERVED_STREAM_WAIT) what->stream = (struct rill__stream *)object;
  if (kind == RILL__OBSERVED_EVENT_WAIT) what->event.event = (struct rill__event *)object;
  return rill__observe_before(what);
}

static void begin_wait(uint64_t object, const struct rill__device *device, uintptr_t freed) {
  struct rill__thread *const self = rill__self;
  const uint64_t number = atomic_load_explicit(&self->wait.number, memory_order_relaxed);
  RILL_ASSERT(number % 2 == 0, "a thread waits for one thing at a time");
  atomic_thread_fence(memory_order_release);
  set_word(&self->wait.object, object);
  set_word(&self->wait.device, device->base.id);
  set_word(&self->wait.freed, freed);
  set_word(&self->wait.since, rill__now());
  atomic_store_explicit(&self->wait.number, number + 1, memory_order_release);
}

static void leave_wait(void) {
  struct rill__thread *const self = rill__self;
  const uint64_t number = atomic_load_explicit(&self->wait.number, memory_order_relaxed);
  if (number % 2 == 1) set_word(&self->wait.number, number + 1);
}

rill_status rill__host_wait_begin(struct rill__observed *what, enum rill__observed_kind kind,
                                  struct rill__object *object) {
  begin_wait(object->id, object->device, 0);
  what->called = 0;
  const rill_status status = rill__is_observed() ? show_wait(what, kind, object) : RILL_OK;
  if (status != RILL_OK) (void)rill__host_wait_end(what, status);
  return status;
}

rill_status rill__host_wait_end(struct rill__observed *what, rill_status status) {
  leave_wait();
  return rill__observe_end(what, status);
}

void rill__host_free_begin(struct rill__device *device, const void *p) {
  begin_wait(device->base.id, device, (uintptr_t)p);
}

void rill__host_free_end(void) { leave_wait(); }

bool rill__host_wait_of(struct rill__thread *thread, struct rill__host_wait *out) {
  out->number = atomic_load_explicit(&thread->wait.number, memory_order_acquire);
  out->object = atomic_load_explicit(&thread->wait.object, memory_order_relaxed);
  out->device = atomic_load_explicit(&thread->wait.device, memory_order_relaxed);
  out->freed = atomic_load_explicit(&thread->wait.freed, memory_order_relaxed);
  out->since = atomic_load_explicit(&thread->wait.since, memory_order_relaxed);
  atomic_thread_fence(memory_order_acquire);
  return out->number % 2 == 1 && atomic_load_explicit(&thread->wait.number, memory_order_relaxed) == out->number;
}
