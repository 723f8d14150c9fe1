#include "core/device/life.h"
#include "core/held/held.h"
#include "core/memory.h"
#include "core/object/options.h"
#include "core/pool/pool.h"
#include "core/pool/staging.h"
#include "core/stream.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>

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
