#include "core/memory/memory.h"

#include "core/device/ipc.h"
#include "core/device/life.h"
#include "core/diagnose/waits.h"
#include "core/held/held.h"
#include "core/object/options.h"
#include "core/sync/submit.h"
#include "core/tracking/last_use.h"
#include "core/tracking/map.h"

#include <string.h>

/* ---- allocation ---- */

static rill_status allocate_checked(struct rill__thread *self, rill_device device, size_t size, size_t alignment,
                                    uint32_t kind, void **out) {
  struct rill__device *d;
  if (out != NULL) *out = NULL;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  RILL_REQUIRE(kind >= RILL_MEMORY_DEVICE && kind <= RILL_MEMORY_MANAGED, RILL_ERROR_INVALID_ARGUMENT,
               "kind is %u, but must be RILL_MEMORY_DEVICE, _PINNED or _MANAGED", kind);
  RILL_TRY(rill__check_alignment(alignment));
  RILL_TRY(rill__device_activate(d));
  if (size == 0) return RILL_OK;
  rill__leave(&self); /* devices live until the process ends */
  struct rill__observed what = { .kind = RILL__OBSERVED_ALLOC, .device = d, .memory = { NULL, size, kind } };
  RILL_TRY(rill__observe_start(&what));
  const rill_status status = rill__memory_alloc(d, size, alignment, kind, out);
  what.memory.p = *out;
  return rill__observe_end(&what, status);
}

rill_status rill_alloc(rill_device device, size_t size, uint32_t kind, void **out) {
  RILL_ENTER();
  return allocate_checked(self, device, size, 1, kind, out);
}

rill_status rill_alloc_aligned(rill_device device, size_t size, size_t alignment, uint32_t kind, void **out) {
  RILL_ENTER();
  return allocate_checked(self, device, size, alignment, kind, out);
}

static rill_status free_found(struct rill__thread *self, struct rill__allocation *allocation, void *p) {
  if (allocation != NULL && allocation->pooled) return rill__pool_free(self, allocation, p);
  RILL_TRY(rill__memory_take_out(p, false, &allocation));
  rill__leave(&self); /* no other thread can free the allocation */
  struct rill__device *const device = allocation->base.device;
  RILL_TRY(rill__memory_free(allocation));
  return rill__is_guarded(device) ? rill__guards_report(device) : RILL_OK;
}

rill_status rill_free(void *p) {
  if (p == NULL) return RILL_OK;
  RILL_ENTER_TO_BLOCK();
  struct rill__allocation *allocation = rill__ranges_find(p);
  if (allocation != NULL) RILL_TRY(rill__capture_check(allocation->base.device, false));
  struct rill__observed what = { .kind = RILL__OBSERVED_FREE };
  if (allocation != NULL && rill__is_observed()) {
    rill__memory_observe(p, &what);
    RILL_TRY(rill__observe_before(&what));
  }
  if (allocation != NULL) rill__host_free_begin(allocation->base.device, p);
  const rill_status status = free_found(self, allocation, p);
  rill__host_free_end();
  return rill__observe_end(&what, status);
}

rill_status rill_memory_get_info(const void *p, rill_memory_info *info) {
  RILL_ENTER();
  rill_memory_info found;
  memset(&found, 0, sizeof found); /* including the padding between its fields */
  found.struct_size = sizeof found;
  if (info != NULL && info->struct_size >= sizeof(size_t)) rill__options_write(info, &found, sizeof found);
  struct rill__allocation *allocation = rill__ranges_find(p);
  uintptr_t begin = allocation != NULL ? allocation->begin : 0;
  size_t size = allocation != NULL ? allocation->size : 0;
  const bool known = allocation != NULL && (!allocation->pooled || rill__pool_find(allocation, p, &begin, &size));
  RILL_REQUIRE(known, RILL_ERROR_NOT_FOUND, "%p is not a rill allocation, or has been freed", p);
  RILL_TRY(rill__options_check_output(info, "info"));
  found.kind = allocation->kind;
  found.device.id = allocation->base.device->base.id;
  found.base = (void *)begin;
  found.size = size;
  rill__options_write(info, &found, sizeof found);
  return RILL_OK;
}

/* ---- copies and fills ---- */

rill_status rill_copy_async(rill_stream stream, void *dst, const void *src, size_t n) {
  RILL_ENTER_TO_SUBMIT();
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  if (n == 0) return RILL_OK;
  RILL_REQUIRE(dst != NULL && src != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL", dst == NULL ? "dst" : "src");
  uint32_t dst_kind, src_kind;
  RILL_TRY(rill__memory_check_quickly(s, dst, n, "dst", &dst_kind));
  RILL_TRY(rill__memory_check_quickly(s, src, n, "src", &src_kind));
  RILL_TRY(rill__check_usable(s->base.device));
  const bool may_block = dst_kind == RILL_MEMORY_UNKNOWN || src_kind == RILL_MEMORY_UNKNOWN;
  if (rill__is_diverted(s)) {
    const struct rill__copy_3d line = rill__line(dst, dst_kind, src, src_kind, n);
    RILL_DIVERT(s, rill__held_copy, &line);
  }
  if (may_block) rill__ref_and_leave(self, &s->base);
  const rill_status status = rill__submit_line(s, dst, dst_kind, src, src_kind, n);
  if (may_block) rill__unref(&s->base);
  return status;
}

rill_status rill_copy_2d_async(rill_stream stream, void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                               size_t width, size_t height) {
  RILL_ENTER_TO_SUBMIT();
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  struct rill__copy_3d copy = {
    .dst = dst,
    .src = src,
    .width = width,
    .height = height,
    .depth = 1,
    .dst_pitch = dst_pitch,
    .src_pitch = src_pitch,
  };
  return rill__copy_submit(self, s, &copy);
}

rill_status rill_copy_3d_async(rill_stream stream, const rill_copy_3d *copy) {
  RILL_ENTER_TO_SUBMIT();
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  struct rill__copy_3d request;
  RILL_TRY(rill__copy_3d_read(&request, copy));
  return rill__copy_submit(self, s, &request);
}

rill_status rill_fill_async(rill_stream stream, void *dst, const void *pattern, size_t pattern_size, size_t count) {
  RILL_ENTER_TO_SUBMIT();
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_TRY(rill__memory_check_pattern(pattern_size));
  if (count == 0) return RILL_OK;
  RILL_REQUIRE(dst != NULL && pattern != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL",
               dst == NULL ? "dst" : "pattern");
  RILL_REQUIRE((uintptr_t)dst % pattern_size == 0, RILL_ERROR_INVALID_ARGUMENT,
               "dst %p is not aligned to the pattern's %zu bytes", dst, pattern_size);
  RILL_REQUIRE(count <= SIZE_MAX / pattern_size, RILL_ERROR_OUT_OF_RANGE, "%zu patterns of %zu bytes overflow", count,
               pattern_size);
  uint32_t kind;
  RILL_TRY(rill__memory_check_quickly(s, dst, count * pattern_size, "dst", &kind));
  RILL_TRY(rill__check_usable(s->base.device));
  if (rill__is_diverted(s)) {
    const struct rill__fill_2d row = rill__row(dst, kind, pattern, pattern_size, count);
    RILL_DIVERT(s, rill__held_fill, &row);
  }
  return rill__submit_pattern(s, dst, kind, pattern, pattern_size, count);
}

rill_status rill_fill_2d_async(rill_stream stream, void *dst, size_t dst_pitch, const void *pattern,
                               size_t pattern_size, size_t width, size_t height) {
  RILL_ENTER_TO_SUBMIT();
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  struct rill__fill_2d fill = {
    .dst = dst,
    .pitch = dst_pitch,
    .width = width,
    .height = height,
    .pattern = pattern,
    .pattern_size = pattern_size,
  };
  return rill__fill_submit(s, &fill);
}

/* ---- registered and managed memory ---- */

rill_status rill_host_register(rill_device device, void *p, size_t size) {
  RILL_ENTER();
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(p != NULL, RILL_ERROR_INVALID_ARGUMENT, "p is NULL");
  RILL_REQUIRE(size != 0, RILL_ERROR_INVALID_ARGUMENT, "size is 0: there is nothing to register");
  RILL_REQUIRE((uintptr_t)p <= UINTPTR_MAX - size, RILL_ERROR_OUT_OF_RANGE,
               "%zu bytes at %p extend past the end of the address space", size, p);
  RILL_REQUIRE(d->backend->memory->host_register != NULL, RILL_ERROR_UNSUPPORTED, "%s cannot register memory", d->name);
  RILL_TRY(rill__device_activate(d));
  return rill__memory_register(d, p, size);
}

rill_status rill_host_unregister(void *p) {
  RILL_ENTER_TO_BLOCK();
  struct rill__allocation *range = NULL;
  const struct rill__allocation *const known = rill__ranges_find(p);
  if (known != NULL) RILL_TRY(rill__capture_check(known->base.device, false));
  RILL_TRY(rill__memory_take_out(p, true, &range));
  rill__leave(&self); /* no other thread can unregister the range */
  struct rill__device *const device = range->base.device;
  const rill_status status = rill__memory_unregister(range);
  if (status == RILL_OK) RILL__NOTE_ORDER(seen_device, device, true);
  return status;
}

rill_status rill_memory_prefetch_async(rill_stream stream, const void *p, size_t size) {
  RILL_ENTER_TO_SUBMIT();
  struct rill__stream *s;
  struct rill__device *owner = NULL;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  if (size == 0) return RILL_OK;
  RILL_TRY(rill__memory_find_managed(p, size, &owner));
  RILL_TRY(rill__check_same_backend(&s->base, &owner->base));
  RILL_TRY(rill__check_usable(s->base.device));
  RILL_REQUIRE(s->base.device->backend->memory->prefetch != NULL, RILL_ERROR_UNSUPPORTED,
               "%s does not support prefetches", s->base.device->name);
  if (rill__is_diverted(s)) {
    struct rill__device *device = s->base.device;
    if (device->backend->memory->may_prefetch != NULL) RILL_TRY(RILL_DISPATCH(device, memory, may_prefetch, device));
    RILL_DIVERT(s, rill__held_prefetch, p, size);
  }
  return rill__submit_prefetch(s, p, size);
}

rill_status rill_memory_advise(const void *p, size_t size, rill_device device, uint32_t advice) {
  RILL_ENTER();
  struct rill__device *d, *owner = NULL;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(advice >= RILL_ADVICE_READ_MOSTLY && advice <= RILL_ADVICE_NOT_ACCESSED_BY, RILL_ERROR_INVALID_ARGUMENT,
               "advice is %u, but must be one of RILL_ADVICE_*", advice);
  if (size == 0) return RILL_OK;
  RILL_TRY(rill__memory_find_managed(p, size, &owner));
  if (d->backend->gpu) RILL_TRY(rill__check_same_backend(&d->base, &owner->base));
  RILL_TRY(rill__check_usable(owner));
  RILL_REQUIRE(owner->backend->memory->advise != NULL, RILL_ERROR_UNSUPPORTED, "%s does not accept advice",
               owner->name);
  struct rill__device *at = d->backend == owner->backend ? d : NULL; /* the CPU device represents the host */
  if (at != NULL) RILL_TRY(rill__device_activate(at));
  return RILL_DISPATCH(owner, memory, advise, owner, p, size, at, advice);
}

/* ---- other processes ---- */

rill_status rill_memory_ipc_export(void *p, rill_ipc_handle *out) {
  RILL_ENTER_TO_BLOCK();
  if (out != NULL) memset(out, 0, sizeof *out);
  RILL_REQUIRE(out != NULL && p != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL", out == NULL ? "out" : "p");
  struct rill__allocation *allocation = rill__ranges_find(p);
  RILL_TRY(rill__memory_check_exportable(allocation, p));
  struct rill__device *device = allocation->base.device;
  RILL_TRY(rill__ipc_check_able(device, RILL_FEATURE_IPC));
  struct rill__ipc_bytes content = { .kind = RILL__IPC_MEMORY, .size = allocation->native_size };
  content.offset = (uintptr_t)p - allocation->native;
  if (rill__is_guarded(device)) content.lead = (uint32_t)(allocation->begin - allocation->native);
  RILL_REQUIRE(rill__memory_hold(allocation), RILL_ERROR_NOT_FOUND, "%p is being freed", p);
  atomic_store(&allocation->exported, true);
  rill__leave(&self);
  if (allocation->guard != NULL) rill__guard_suspend(allocation->guard);
  const rill_status status = RILL_DISPATCH(device, memory, ipc_export, device, (void *)allocation->native,
                                           allocation->native_size, &content.native);
  if (allocation->guard != NULL) rill__guard_resume(allocation->guard);
  const bool freed = rill__memory_drop(allocation);
  if (status != RILL_OK) return status;
  RILL_REQUIRE(!freed, RILL_ERROR_NOT_FOUND, "%p was freed by another thread meanwhile", p);
  rill__ipc_write(&content, device, out);
  return RILL_OK;
}

rill_status rill_memory_ipc_import(rill_device device, const rill_ipc_handle *handle, void **out) {
  RILL_ENTER();
  if (out != NULL) *out = NULL;
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(out != NULL && handle != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL",
               out == NULL ? "out" : "handle");
  RILL_TRY(rill__ipc_check_able(d, RILL_FEATURE_IPC));
  struct rill__ipc_bytes content;
  RILL_TRY(rill__ipc_read(handle, d, RILL__IPC_MEMORY, &content));
  RILL_TRY(rill__device_activate(d));
  struct rill__allocation *import = NULL;
  struct rill__guard *guard = NULL;
  RILL_TRY(rill__object_new(sizeof *import, d, NULL, rill__allocation_destroy, &import));
  rill_status status = rill__is_guarded(d) ? rill__guard_new(d, &guard) : RILL_OK;
  if (status == RILL_OK) status = rill__memory_open_import(d, &content, import, out);
  if (status == RILL_OK && guard != NULL) rill__memory_guard(guard, import);
  if (status != RILL_OK && guard != NULL) rill__guard_free(guard);
  if (status != RILL_OK) rill__unref(&import->base);
  return status;
}
