/* Calling observers. */
#include "core/diagnose/observe.h"

_Atomic uint32_t rill__observers_on, rill__calls_watched;

static _Atomic(const struct rill__observer *) observers[RILL__OBSERVERS];

void rill__observe(enum rill__observer_index index, const struct rill__observer *observer) {
  const uint32_t bit = UINT32_C(1) << index;
  if (observer == NULL) {
    atomic_fetch_and(&rill__observers_on, ~bit);
    return;
  }
  atomic_store(&observers[index], observer);
  atomic_fetch_or(&rill__observers_on, bit);
}

void rill__calls_watch(uint32_t bit, bool on) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static const struct rill__observer calls = { NULL, NULL };
  pthread_mutex_lock(&lock);
  if (on) {
    atomic_fetch_or(&rill__calls_watched, bit);
  } else {
    atomic_fetch_and(&rill__calls_watched, ~bit);
  }
  rill__observe(RILL__OBSERVER_CALLS, atomic_load(&rill__calls_watched) != 0 ? &calls : NULL);
  pthread_mutex_unlock(&lock);
}

rill_status rill__observe_before(struct rill__observed *what) {
  const uint32_t on = atomic_load(&rill__observers_on);
  rill_status status = RILL_OK;
  what->called = 0;
  for (uint32_t i = 0; i < RILL__OBSERVERS && status == RILL_OK; i++) {
    if ((on & UINT32_C(1) << i) == 0) continue;
    const struct rill__observer *const observer = atomic_load(&observers[i]);
    if (observer->before != NULL) status = observer->before(what);
    if (status == RILL_OK) what->called |= UINT32_C(1) << i;
  }
  if (status == RILL_OK) return RILL_OK;
  (void)rill__observe_after(what, status);
  what->called = 0;
  return status;
}

rill_status rill__observe_after(struct rill__observed *what, rill_status status) {
  for (uint32_t i = 0; i < RILL__OBSERVERS; i++) {
    if ((what->called & UINT32_C(1) << i) == 0) continue;
    const struct rill__observer *const observer = atomic_load(&observers[i]);
    if (observer->after != NULL) status = observer->after(what, status);
  }
  return status;
}
