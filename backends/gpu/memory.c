#include "backends/gpu/gpu.h"

#include <stdlib.h>

/* ---- allocation ---- */

static rill_status alloc(struct rill__device *device, size_t size, uint32_t kind, void **out) {
  gpu_result result;
  gpu_pointer pointer = GPU_POINTER(NULL);
  const char *symbol;
  *out = NULL;
  if (kind == RILL_MEMORY_PINNED) {
    symbol = gpu_symbols.host_alloc;
    GPU_RUN_INSIDE(result, device, host_alloc, (out, size, GPU_HOST_ALLOC_PORTABLE | GPU_HOST_ALLOC_MAPPED));
    pointer = GPU_POINTER(*out);
  } else if (kind == RILL_MEMORY_MANAGED) {
    const char *why = "";
    RILL_REQUIRE(gpu_device_table.supports(device, RILL_FEATURE_MANAGED, &why), RILL_ERROR_UNSUPPORTED,
                 "RILL_MEMORY_MANAGED on %s: %s", device->name, why);
    symbol = gpu_symbols.managed_alloc;
    GPU_RUN_INSIDE(result, device, managed_alloc, (&pointer, size, GPU_MANAGED_GLOBAL));
  } else {
    symbol = gpu_symbols.memory_alloc;
    GPU_RUN_INSIDE(result, device, memory_alloc, (&pointer, size));
  }
  if (RILL__LIKELY(result == GPU_SUCCESS)) {
    *out = (void *)(uintptr_t)pointer;
    return RILL_OK;
  }
  *out = NULL;
  /* The drivers report an invalid value if the size overflows when it is rounded up. */
  if (result == GPU_OUT_OF_MEMORY) return RILL_ERROR_OUT_OF_MEMORY;
  if (result == GPU_INVALID_VALUE && size > device->info.memory_total) return RILL_ERROR_OUT_OF_MEMORY;
  return gpu_fail(device, result, symbol);
}

/* Waits for all devices: host and managed memory may be in use on every device of the vendor, and no vendor documents
 * that freeing it waits for them. */
rill_status gpu_wait_for_all(void) {
  for (uint32_t i = 0; i < gpu_device_count; i++) {
    struct rill__device *device = gpu_devices[i];
    if (device == NULL || !atomic_load_explicit(&device->active, memory_order_acquire)) continue;
    RILL_TRY(gpu_device_table.synchronize(device));
  }
  return RILL_OK;
}

/* Frees memory.  Device memory is freed once the device is idle; both vendors' functions wait for that. */
static rill_status gpu_memory_free(struct rill__device *device, void *p, uint32_t kind) {
  if (gpu_forked) return rill__fail_lost(device);
  gpu_result result;
  if (kind == RILL_MEMORY_PINNED) {
    RILL_TRY(gpu_wait_for_all());
    GPU_RUN_INSIDE(result, device, host_free, (p));
    return result == GPU_SUCCESS ? RILL_OK : GPU_FAIL(device, result, host_free);
  }
  if (kind == RILL_MEMORY_MANAGED) RILL_TRY(gpu_wait_for_all());
  GPU_RUN_INSIDE(result, device, memory_free, (GPU_POINTER(p)));
  return result == GPU_SUCCESS ? RILL_OK : GPU_FAIL(device, result, memory_free);
}

/* ---- memory of other code ---- */

static rill_status gpu_memory_host_register(struct rill__device *device, void *p, size_t size) {
  gpu_result result;
  RILL_REQUIRE(gpu_api.host_register != NULL && gpu_api.host_unregister != NULL, RILL_ERROR_UNSUPPORTED,
               "the driver of %s does not have %s", device->name, gpu_symbols.host_register);
  GPU_RUN_INSIDE(result, device, host_register, (p, size, GPU_HOST_REGISTER_PORTABLE | GPU_HOST_REGISTER_MAPPED));
  return result == GPU_SUCCESS ? RILL_OK : GPU_FAIL(device, result, host_register);
}

static rill_status gpu_memory_host_unregister(struct rill__device *device, void *p) {
  if (gpu_forked) return rill__fail_lost(device);
  gpu_result result;
  RILL_TRY(gpu_wait_for_all());
  GPU_RUN_INSIDE(result, device, host_unregister, (p));
  return result == GPU_SUCCESS ? RILL_OK : GPU_FAIL(device, result, host_unregister);
}

static rill_status is_known(struct rill__device *device, const void *p, bool *out) {
  struct gpu_scope scope;
  gpu_result result = gpu_enter(device, &scope);
  if (result == GPU_SUCCESS) {
    result = gpu_vendor_is_known(p, out);
    gpu_leave(&scope);
  }
  return result == GPU_SUCCESS ? RILL_OK : gpu_fail(device, result, GPU_IS_KNOWN_TEXT);
}

/* ---- managed memory ---- */

_Static_assert((int)GPU_ADVICE_READ_MOSTLY == RILL_ADVICE_READ_MOSTLY &&
                   (int)GPU_ADVICE_NOT_READ_MOSTLY == RILL_ADVICE_NOT_READ_MOSTLY &&
                   (int)GPU_ADVICE_PREFERRED_LOCATION == RILL_ADVICE_PREFERRED_LOCATION &&
                   (int)GPU_ADVICE_NO_PREFERRED_LOCATION == RILL_ADVICE_NO_PREFERRED_LOCATION &&
                   (int)GPU_ADVICE_ACCESSED_BY == RILL_ADVICE_ACCESSED_BY &&
                   (int)GPU_ADVICE_NOT_ACCESSED_BY == RILL_ADVICE_NOT_ACCESSED_BY,
               "advice has the vendors' numbers");

/* Refuses prefetches and advice if host and device cannot use managed memory concurrently: such a driver moves all
 * managed memory at each launch, and ignores prefetches and advice. */
static rill_status need_concurrent(struct rill__device *device, const char *symbol, bool there) {
  RILL_REQUIRE(there, RILL_ERROR_UNSUPPORTED, "the driver of %s does not have %s", device->name, symbol);
  int value = 0;
  const gpu_device_handle native = gpu_device_of(device)->native;
  RILL_REQUIRE(GPU_CALL(device_attribute, (&value, GPU_ATTRIBUTE_CONCURRENT_MANAGED, native)) == GPU_SUCCESS &&
                   value != 0,
               RILL_ERROR_UNSUPPORTED,
               "%s: the driver says that host and device cannot use managed memory concurrently", device->name);
  return RILL_OK;
}

static rill_status may_prefetch(struct rill__device *device) {
  return need_concurrent(device, gpu_symbols.prefetch, gpu_api.prefetch != NULL);
}

static rill_status gpu_memory_prefetch(struct rill__stream *stream, const void *p, size_t size) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  struct rill__device *device = stream->base.device;
  gpu_result result;
  RILL_TRY(may_prefetch(device));
  GPU_RUN(result, device, part->work_inside, prefetch,
          (GPU_CONST_POINTER(p), size, gpu_device_of(device)->native, part->native));
  return result == GPU_SUCCESS ? RILL_OK : GPU_FAIL(device, result, prefetch);
}

static rill_status gpu_memory_advise(struct rill__device *device, const void *p, size_t size, struct rill__device *at,
                                     uint32_t advice) {
  gpu_result result;
  RILL_TRY(need_concurrent(at != NULL ? at : device, gpu_symbols.advise, gpu_api.advise != NULL));
  GPU_RUN_INSIDE(
      result, device, advise,
      (GPU_CONST_POINTER(p), size, (gpu_advice)advice, at != NULL ? gpu_device_of(at)->native : GPU_HOST_AS_DEVICE));
  return result == GPU_SUCCESS ? RILL_OK : GPU_FAIL(device, result, advise);
}

/* ---- copy ---- */

struct host_copy {
  void *dst;
  const void *src;
  size_t n;
};

static void copy_on_host(void *user, rill_status stream_status) {
  const struct host_copy copy = *(struct host_copy *)user;
  free(user);
  if (stream_status == RILL_OK) memmove(copy.dst, copy.src, copy.n);
}

/* Copies between pinned memory on the host, in stream order, because the vendors' copy would block the caller until the
 * stream is done.  `done` is false in a capture, where the vendors' copy is an ordinary node. */
static rill_status try_host_copy(struct rill__stream *stream, void *dst, const void *src, size_t n, bool *done) {
  bool capturing = false;
  RILL_TRY(gpu_stream_table.is_capturing(stream, &capturing));
  *done = !capturing;
  if (capturing) return RILL_OK;
  struct host_copy *copy = malloc(sizeof *copy);
  RILL_REQUIRE(copy != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a copy between pinned memory");
  *copy = (struct host_copy){ dst, src, n };
  const rill_status status = gpu_host_call(stream, copy_on_host, copy);
  if (status != RILL_OK) free(copy);
  return status;
}

static rill_status gpu_memory_copy(struct rill__stream *stream, void *dst, uint32_t dst_kind, const void *src,
                                   uint32_t src_kind, size_t n) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  struct rill__device *device = stream->base.device;
  if (RILL__UNLIKELY(dst_kind == RILL_MEMORY_PINNED && src_kind == RILL_MEMORY_PINNED)) {
    bool done = false;
    RILL_TRY(try_host_copy(stream, dst, src, n, &done));
    if (done) return RILL_OK;
  }
  if (RILL__UNLIKELY(src_kind == RILL_MEMORY_UNKNOWN && gpu_has_host_calls(part))) {
    RILL_TRY(gpu_wait_for_host_calls(stream, src));
  }
  gpu_result result = GPU_INVALID_CONTEXT;
  const char *symbol = gpu_symbols.copy;
  if (RILL__LIKELY(!part->work_inside))
    result = gpu_vendor_copy(dst, dst_kind, src, src_kind, n, part->native, &symbol);
  if (RILL__UNLIKELY(result == GPU_INVALID_CONTEXT)) { /* like GPU_RUN */
    struct gpu_scope scope;
    result = gpu_enter(device, &scope);
    if (result == GPU_SUCCESS) {
      result = gpu_vendor_copy(dst, dst_kind, src, src_kind, n, part->native, &symbol);
      gpu_leave(&scope);
    }
  }
  return RILL__LIKELY(result == GPU_SUCCESS) ? RILL_OK : gpu_fail(device, result, symbol);
}

const struct rill__memory_table gpu_memory_table = {
  .alloc = alloc,
  .free = gpu_memory_free,
  .host_register = gpu_memory_host_register,
  .host_unregister = gpu_memory_host_unregister,
  .copy = gpu_memory_copy,
  .copy_3d = gpu_copy_3d,
  .prefetch = gpu_memory_prefetch,
  .may_prefetch = may_prefetch,
  .advise = gpu_memory_advise,
  .fill = gpu_fill,
  .fill_2d = gpu_fill_2d,
  .is_known = is_known,
  .ipc_export = gpu_ipc_export_memory,
  .ipc_import = gpu_ipc_import_memory,
  .ipc_close = gpu_ipc_close,
};
