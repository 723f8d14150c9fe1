#include "core/device/registry.h"
#include "core/diagnose/order_notes.h"
#include "core/fork.h"
#include "core/observers.h"

#include "core/device/life.h"
#include "core/device/peer.h"
#include "core/diagnose/waits.h"
#include "core/held/held.h"
#include "core/memory/memory.h"
#include "core/object/options.h"
#include "core/pool/staging.h"
#include "core/stream/stream.h"

#include <stdlib.h>

/* ---- finding devices ---- */

static void around_search(void) {
  rill__observers_start();
  rill__fork_watch();
}

static void prepare_search(void) {
  atomic_store_explicit(&rill__around_search, around_search, memory_order_relaxed);
  atomic_store_explicit(&rill__device_watch, rill__leaks_watch, memory_order_relaxed);
}

rill_status rill_device_count(int32_t *count) {
  RILL_ENTER();
  prepare_search();
  if (count != NULL) *count = 0;
  RILL_REQUIRE(count != NULL, RILL_ERROR_INVALID_ARGUMENT, "count is NULL");
  rill__leave(&self);
  const uint32_t all = rill__device_count();
  if (all == 0) return rill__fail_without_cpu();
  *count = (int32_t)all;
  return RILL_OK;
}

rill_status rill_device_get(int32_t index, rill_device *out) {
  RILL_ENTER();
  prepare_search();
  if (out != NULL) *out = RILL_NULL_DEVICE;
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  rill__leave(&self);
  uint64_t left = (uint64_t)index;
  const struct rill__device *device = index < 0 ? NULL : rill__device_nth(&left, false);
  if (device == NULL) {
    const uint32_t all = rill__device_count();
    if (all == 0) return rill__fail_without_cpu();
    return rill__fail(RILL_ERROR_NOT_FOUND, "there is no device %d: devices are 0 to %u", (int)index, all - 1);
  }
  out->id = device->base.id;
  return RILL_OK;
}

rill_status rill_device_open(const char *name, rill_device *out) {
  RILL_ENTER();
  prepare_search();
  if (out != NULL) *out = RILL_NULL_DEVICE;
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  rill__leave(&self);
  struct rill__device *device = NULL;
  const char *origin = "";
  if (name == NULL) {
    name = getenv("RILL_DEVICE");
    origin = "RILL_DEVICE=";
  }
  if (name == NULL || (name[0] == '\0' && origin[0] != '\0')) {
    uint64_t first = 0; /* the first GPU, or the CPU if there is none */
    device = rill__device_nth(&first, false);
    if (device == NULL) return rill__fail_without_cpu();
  } else {
    RILL_TRY(rill__device_open(name, origin, &device));
  }
  out->id = device->base.id;
  return RILL_OK;
}

rill_status rill_device_of_native_stream(uint32_t backend, uintptr_t native, rill_device *out) {
  RILL_ENTER();
  prepare_search();
  size_t i = 0;
  if (out != NULL) *out = RILL_NULL_DEVICE;
  RILL_TRY(rill__backend_find(backend, &i));
  RILL_REQUIRE(native > 2, RILL_ERROR_INVALID_ARGUMENT,
               "native is %u, a default stream, which belongs to whichever device is current" RILL_HINT
               "open the device by its name instead",
               (unsigned)native);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  rill__leave(&self);
  const struct rill__search *search = rill__backend_search(i);
  const struct rill__backend *const found = search->backend;
  RILL_REQUIRE(search->count > 0, RILL_ERROR_NO_DEVICE, "%s: %s", found->name, search->why);
  RILL_REQUIRE(found->device->of_native_stream != NULL, RILL_ERROR_UNSUPPORTED, "%s has no native streams",
               found->name);
  uint32_t ordinal = 0;
  RILL_TRY(RILL_DISPATCH(search->devices[0], device, of_native_stream, native, &ordinal));
  RILL_REQUIRE(ordinal < search->count, RILL_ERROR_NOT_FOUND,
               "native stream 0x%llx belongs to %s:%u, which rill did not find", (unsigned long long)native,
               found->name, ordinal);
  out->id = search->devices[ordinal]->base.id;
  return RILL_OK;
}

/* ---- one device ---- */

/* Threads that call this at the same time get the same result. */
static void read_clocks(struct rill__device *device, rill_device_info *info) {
  if (!atomic_load_explicit(&rill__core(device)->clocks_known, memory_order_acquire)) {
    uint32_t core = 0, memory = 0;
    RILL_ASK(device, device, clocks, device, &core, &memory);
    atomic_store_explicit(&rill__core(device)->core_clock_khz, core, memory_order_relaxed);
    atomic_store_explicit(&rill__core(device)->memory_clock_khz, memory, memory_order_relaxed);
    atomic_store_explicit(&rill__core(device)->clocks_known, true, memory_order_release);
  }
  info->core_clock_khz = atomic_load_explicit(&rill__core(device)->core_clock_khz, memory_order_relaxed);
  info->memory_clock_khz = atomic_load_explicit(&rill__core(device)->memory_clock_khz, memory_order_relaxed);
}

rill_status rill_device_get_info(rill_device device, rill_device_info *info) {
  RILL_ENTER();
  const rill_device_info none = RILL_DEVICE_INFO_INIT;
  const bool writable = info != NULL && info->struct_size >= sizeof(size_t);
  if (writable) rill__options_write(info, &none, sizeof none);
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_TRY(rill__options_check_output(info, "info"));
  rill_device_info result = d->info;
  read_clocks(d, &result);
  rill__options_write(info, &result, sizeof result);
  return RILL_OK;
}

bool rill_device_supports(rill_device device, uint32_t feature, const char **why) {
  const char *reason = "";
  bool answer = false;
  struct rill__thread *const self __attribute__((cleanup(rill__leave_and_reclaim))) = rill__enter(__func__);
  struct rill__device *d = self == NULL ? NULL : rill__find(device.id, RILL__DEVICE);
  if (d == NULL) {
    reason = "the handle is not a device";
  } else if (feature < RILL_FEATURE_PEER || feature >= RILL_FEATURE_END_) {
    reason = "the number is not a feature";
  } else {
    answer = RILL_ASK(d, device, supports, d, feature, &reason);
  }
  if (why != NULL) *why = reason;
  return answer;
}

rill_status rill_device_default_stream(rill_device device, rill_stream *out) {
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_STREAM;
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  struct rill__stream *stream = NULL;
  RILL_TRY(rill__device_default_stream(d, &stream));
  out->id = stream->base.id;
  return RILL_OK;
}

rill_status rill_device_synchronize(rill_device device) {
  RILL_ENTER_TO_BLOCK();
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_TRY(rill__device_activate(d));
  RILL_TRY(rill__capture_check(d, true));
  rill__leave(&self); /* devices live until the process ends */
  struct rill__observed wait;
  RILL_TRY(rill__host_wait_begin(&wait, RILL__OBSERVED_DEVICE_WAIT, &d->base));
  rill__held_wait_for_device(d);
  RILL_TRY(rill__host_wait_end(&wait, RILL_DISPATCH(d, device, synchronize, d)));
  RILL__NOTE_ORDER(seen_device, d, false);
  rill__staging_release(d, true);
  const rill_status found = rill__memory_synchronized(d, true);
  rill__reclaim_all();
  return found;
}

rill_status rill_device_get_memory(rill_device device, uint64_t *free_bytes, uint64_t *total_bytes) {
  RILL_ENTER();
  if (free_bytes != NULL) *free_bytes = 0;
  if (total_bytes != NULL) *total_bytes = 0;
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(free_bytes != NULL && total_bytes != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL",
               free_bytes == NULL ? "free" : "total");
  RILL_TRY(rill__device_activate(d));
  return RILL_DISPATCH(d, device, get_memory, d, free_bytes, total_bytes);
}

enum { WORKERS_MAX = 1024 };

static rill_status check_has_workers(const struct rill__device *device) {
  RILL_REQUIRE(device->backend->device->get_workers != NULL, RILL_ERROR_UNSUPPORTED,
               "%s does not run its work on threads of this process", device->name);
  return RILL_OK;
}

rill_status rill_device_set_workers(rill_device device, uint32_t count) {
  RILL_ENTER();
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(count <= WORKERS_MAX, RILL_ERROR_OUT_OF_RANGE, "%u workers, but the limit is %d", count, WORKERS_MAX);
  RILL_TRY(check_has_workers(d));
  RILL_ASK(d, device, set_workers, d, count);
  return RILL_OK;
}

rill_status rill_device_get_workers(rill_device device, uint32_t *out) {
  RILL_ENTER();
  if (out != NULL) *out = 0;
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  RILL_TRY(check_has_workers(d));
  *out = RILL_ASK(d, device, get_workers, d);
  return RILL_OK;
}

/* ---- peer access ---- */

bool rill_device_can_access_peer(rill_device device, rill_device memory_of, const char **why) {
  const char *reason = "the handle is not a device";
  bool answer = false;
  struct rill__thread *const self __attribute__((cleanup(rill__leave_and_reclaim))) = rill__enter(__func__);
  struct rill__device *d = self == NULL ? NULL : rill__find(device.id, RILL__DEVICE);
  struct rill__device *m = self == NULL ? NULL : rill__find(memory_of.id, RILL__DEVICE);
  if (d != NULL && m != NULL) answer = rill__peer_can_access(d, m, &reason);
  if (why != NULL) *why = reason;
  return answer;
}

rill_status rill_device_enable_peer(rill_device device, rill_device memory_of) {
  RILL_ENTER();
  struct rill__device *d, *m;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_RESOLVE(RILL__DEVICE, memory_of, "memory_of", &m);
  RILL_TRY(rill__check_same_backend(&d->base, &m->base));
  if (d == m) return RILL_OK;
  const char *why = "";
  RILL_REQUIRE(rill__peer_can_access(d, m, &why), RILL_ERROR_UNSUPPORTED,
               "memory_of: %s cannot access the memory of %s: %s" RILL_HINT "copies between them still work", d->name,
               m->name, why);
  rill__leave(&self);
  return rill__peer_set(d, m, true);
}

rill_status rill_device_disable_peer(rill_device device, rill_device memory_of) {
  RILL_ENTER();
  struct rill__device *d, *m;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_RESOLVE(RILL__DEVICE, memory_of, "memory_of", &m);
  RILL_TRY(rill__check_same_backend(&d->base, &m->base));
  const char *why = "";
  if (d == m || !rill__peer_can_access(d, m, &why)) return RILL_OK; /* access cannot be enabled */
  rill__leave(&self);
  return rill__peer_set(d, m, false);
}

rill_status rill_device_is_peer_enabled(rill_device device, rill_device memory_of, bool *out) {
  RILL_ENTER();
  if (out != NULL) *out = false;
  struct rill__device *d, *m;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_RESOLVE(RILL__DEVICE, memory_of, "memory_of", &m);
  RILL_TRY(rill__check_same_backend(&d->base, &m->base));
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  *out = d == m || rill__peer_is_enabled(d, m);
  return RILL_OK;
}
