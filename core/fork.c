/* fork: the forking thread first takes every lock, so that all of them are free in the child, which has no other
 * thread.  Each backend whose devices are known is called as well. */
#include "core/fork.h"
#include "core/device/backends.h"
#include "core/device/registry.h"
#include "core/diagnose/calls.h"
#include "core/diagnose/inject.h"
#include "core/graph/graph.h"
#include "core/held/watch.h"
#include "core/kernel/global.h"
#include "core/kernel/module.h"
#include "core/object/origin.h"
#include "core/order/watch.h"
#include "core/pool/pool.h"
#include "core/sync/event_cache.h"
#include "core/timeline/timeline.h"
#include "core/tracking/guards.h"
#include "core/tracking/map.h"

static void each_device(void (*visit)(struct rill__device *device)) {
  const struct rill__backend *backend;
  for (size_t i = 0; (backend = rill__backend_at(i)) != NULL; i++) {
    struct rill__device *device;
    for (uint32_t n = 0; (device = rill__device_at(backend, n)) != NULL; n++) visit(device);
  }
}

static void lock_device(struct rill__device *device) {
  pthread_mutex_lock(&rill__core(device)->lock);
  rill__guards_lock(device);
  rill__pools_lock(device);
  rill__event_cache_lock(device);
}

static void unlock_device(struct rill__device *device) {
  rill__event_cache_unlock(device);
  rill__pools_unlock(device);
  rill__guards_unlock(device);
  pthread_mutex_unlock(&rill__core(device)->lock);
}

static void lock_all(void) {
  rill__claims_lock();   /* waits for calls that take the other locks */
  rill__registry_lock(); /* from here on no device is added */
  rill__graphs_lock();   /* this lock is held while a graph's memory returns to its pool */
  each_device(lock_device);
  rill__held_lock();
  rill__watches_lock();
  rill__modules_lock();
  rill__globals_lock();
  rill__memory_lock();
  rill__origins_lock();
  rill__fault_lock();
  rill__handles_lock();
}

static void unlock_all(void) {
  rill__handles_unlock();
  rill__fault_unlock();
  rill__origins_unlock();
  rill__memory_unlock();
  rill__globals_unlock();
  rill__modules_unlock();
  rill__watches_unlock();
  rill__held_unlock();
  each_device(unlock_device);
  rill__graphs_unlock();
  rill__registry_unlock();
  rill__claims_unlock();
}

/* Calls a slot of every known backend that has the slot. */
#define TELL_BACKENDS(slot)                                                           \
  for (size_t i_ = 0; rill__backend_at(i_) != NULL; i_++) {                           \
    const struct rill__backend *const backend_ = rill__backend_at(i_);                \
    if (rill__backend_is_known(backend_) && backend_->slot != NULL) backend_->slot(); \
  }

/* Registers the fork handlers.  Handlers that run before a fork run in the reverse order of their registration.  Ours
 * must run before those of a vendor's library: a thread that holds one of our locks may be inside a call to the vendor,
 * which waits for a lock that the vendor's handler has taken.  Vendors register their handlers when they start, so ours
 * are registered again after each search.  Of several registrations, only the one that runs first before a fork, and
 * last after it, has an effect. */
static _Thread_local unsigned depth __attribute__((tls_model("initial-exec")));

static void lock_before_fork(void) {
  if (depth++ != 0) return;
  lock_all();
  TELL_BACKENDS(before_fork)
  rill__order_lock(); /* taken last and released before anything else, since what follows may destroy objects */
}

static void unlock_in_parent(void) {
  if (depth == 0 || --depth != 0) return;
  rill__order_unlock();
  TELL_BACKENDS(after_fork_in_parent)
  unlock_all();
}

static void unlock_in_child(void) {
  if (depth == 0 || --depth != 0) return;
  rill__order_after_fork();
  rill__threads_after_fork();
  rill__calls_after_fork();
  rill__claims_after_fork();
  rill__captures_after_fork();
  rill__held_after_fork();
  rill__watches_after_fork();
  rill__timeline_after_fork();
  each_device(rill__guards_after_fork);
  TELL_BACKENDS(after_fork_in_child)
  rill__registry_after_fork();
  unlock_all();
}

void rill__fork_watch(void) { (void)pthread_atfork(lock_before_fork, unlock_in_parent, unlock_in_child); }
