#include "core/call.h"
#include "core/held/held.h"
#include "core/memory.h"
#include "core/object/options.h"
#include "core/pool/pool.h"
#include "core/pool/staging.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>

/* The first to come writes the cause, then publishes it; the others wait for those few stores. */
static bool first_to_lose(struct rill__device *device) {
  if (!atomic_exchange(&device->losing, true)) return true;
  while (atomic_load_explicit(&device->lost, memory_order_acquire) == RILL_OK) (void)sched_yield();
  return false;
}

rill_status rill__device_lost(struct rill__device *device, int32_t code, const char *name, const char *format, ...) {
  if (first_to_lose(device)) {
    va_list list;
    va_start(list, format);
    (void)vsnprintf(device->cause.text, sizeof device->cause.text, format, list);
    va_end(list);
    device->cause.code = code;
    (void)snprintf(device->cause.name, sizeof device->cause.name, "%s", name);
    atomic_store_explicit(&device->lost, RILL_ERROR_DEVICE_LOST, memory_order_release);
  }
  if (atomic_load(&device->held_streams) != 0) rill__held_device_lost(device);
  return rill__fail_lost(device);
}

void rill__device_close(struct rill__device *device, rill_status status, const char *text) {
  if (!first_to_lose(device)) return;
  (void)snprintf(device->cause.text, sizeof device->cause.text, "%s", text);
  atomic_store_explicit(&device->lost, status, memory_order_release);
}

rill_status rill__fail_lost(struct rill__device *device) {
  const rill_status status = atomic_load_explicit(&device->lost, memory_order_acquire);
  if (status != RILL_ERROR_DEVICE_LOST) return rill__fail(status, "%s: %s", device->name, device->cause.text);
  return rill__fail_native(status, device->cause.code, device->cause.name,
                           "%s is lost: %s" RILL_HINT
                           "the process cannot use this device again; end it, or use another "
                           "device",
                           device->name, device->cause.text);
}

_Atomic bool rill__is_shared;

rill_status rill__device_activate(struct rill__device *device) {
  RILL_TRY(rill__check_usable(device));
  if (atomic_load_explicit(&device->active, memory_order_acquire)) return RILL_OK;
  rill_status status = RILL_OK;
  pthread_mutex_lock(&device->lock);
  if (!atomic_load(&device->active)) {
    status = RILL_DOOR(device, device, activate, device);
    if (status == RILL_OK) atomic_store_explicit(&device->active, true, memory_order_release);
  }
  pthread_mutex_unlock(&device->lock);
  return status;
}

rill_status rill__check_same_backend(const struct rill__object *a, const struct rill__object *b) {
  RILL_REQUIRE(a->device->backend == b->device->backend, RILL_ERROR_WRONG_BACKEND,
               "%s is of %s, %s of %s" RILL_HINT "order work across backends with host waits", rill__name_of(a).text,
               a->device->name, rill__name_of(b).text, b->device->name);
  return RILL_OK;
}

rill_status rill__fail_other_device(const struct rill__object *a, const struct rill__object *b) {
  RILL_TRY(rill__check_same_backend(a, b));
  return rill__fail(RILL_ERROR_WRONG_DEVICE, "%s is of %s, %s of %s", rill__name_of(a).text, a->device->name,
                    rill__name_of(b).text, b->device->name);
}

uint32_t rill_version(void) {
  return (uint32_t)RILL_VERSION_MAJOR << 16 | (uint32_t)RILL_VERSION_MINOR << 8 | (uint32_t)RILL_VERSION_PATCH;
}

/* Threads that ask at the same time are told the same. */
static void read_clocks(struct rill__device *device, rill_device_info *info) {
  if (!atomic_load_explicit(&device->clocks_known, memory_order_acquire)) {
    uint32_t core = 0, memory = 0;
    RILL_DOOR(device, device, clocks, device, &core, &memory);
    atomic_store_explicit(&device->core_clock_khz, core, memory_order_relaxed);
    atomic_store_explicit(&device->memory_clock_khz, memory, memory_order_relaxed);
    atomic_store_explicit(&device->clocks_known, true, memory_order_release);
  }
  info->core_clock_khz = atomic_load_explicit(&device->core_clock_khz, memory_order_relaxed);
  info->memory_clock_khz = atomic_load_explicit(&device->memory_clock_khz, memory_order_relaxed);
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
  struct rill__thread *const self __attribute__((cleanup(rill__leave))) = rill__enter(__func__);
  struct rill__device *d = self == NULL ? NULL : rill__find(device.id, RILL__DEVICE);
  if (d == NULL) {
    reason = "the handle is no device";
  } else if (feature < RILL_FEATURE_PEER || feature > RILL_FEATURE_EVENT_IPC) {
    reason = "the number is no feature";
  } else {
    answer = RILL_DOOR(d, device, supports, d, feature, &reason);
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
  rill__reclaim();
  RILL_ENTER_TO_BLOCK();
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_TRY(rill__device_activate(d));
  rill__leave(&self); /* devices live for ever */
  rill__held_wait_for_device(d);
  RILL_TRY(RILL_DOOR(d, device, synchronize, d));
  rill__staging_give_back(d, true);
  rill__memory_synchronized(d);
  return RILL_OK;
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
  return RILL_DOOR(d, device, get_memory, d, free_bytes, total_bytes);
}
