/* Memory that calls allocate, copy, fill, register and share. core/tracking/map.h has the map of this memory. */
#ifndef RILL_CORE_MEMORY_MEMORY_H
#define RILL_CORE_MEMORY_MEMORY_H

#include "core/diagnose/observe.h"
#include "core/diagnose/order_notes.h"
#include "core/pool/pool.h"
#include "core/tracking/deferred_free.h"
#include "core/tracking/guards.h"
#include "core/tracking/ranges.h"

#include <rill/diagnose.h>

/* ---- core/memory/alloc.c; call these outside epochs ---- */

rill_status rill__memory_alloc(struct rill__device *device, size_t size, size_t alignment, uint32_t kind, void **out);

/* Give memory a guard (core/tracking/guards.h) that is in no list yet, and remove the guard. */
void rill__memory_guard(struct rill__guard *guard, struct rill__allocation *allocation);
void rill__memory_unguard(struct rill__allocation *allocation);

/* Frees an allocation that was removed from the map, or closes an import.  May block. */
rill_status rill__memory_free(struct rill__allocation *allocation);

/* Keep an allocation for a call that uses it outside epochs: the memory stays until rill__memory_drop, even if it is
 * freed meanwhile.  rill__memory_hold returns false if the memory is being freed.  rill__memory_drop returns
 * true if it was freed meanwhile; the memory then exists only as long as another call holds it. */
bool rill__memory_hold(struct rill__allocation *allocation);
bool rill__memory_drop(struct rill__allocation *allocation);

/* Returns true if the end of a host synchronize releases memory (unused memory of pools, or deferred frees) or checks
 * it. */
static inline bool rill__memory_awaits_host(const struct rill__device *device) {
  return atomic_load_explicit(&rill__core(device)->pool_thresholds, memory_order_relaxed) ||
         rill__frees_are_deferred(device);
}
/* Releases and checks that memory after the host has synchronized.  `all`: the host has waited for all work of the
 * device.  Call it outside epochs. */
static inline rill_status rill__memory_synchronized(struct rill__device *device, bool all) {
  rill__deferred_frees_end_idle(device);
  rill__pools_synchronized(device);
  return rill__guards_check(device, all);
}

/* ---- core/memory/check.c ---- */

/* Checks `n` bytes at `p` that a stream of `stream`'s device is going to use, and finds their kind.  Memory that rill
 * does not know is left to the driver and has the kind UNKNOWN.  Registered memory is pinned. */
rill_status rill__memory_check(const struct rill__stream *stream, const void *p, size_t n, const char *what,
                               uint32_t *kind);

/* Does the same for frequent calls.  The usual case needs no function call: memory of the stream's own device that is
 * neither in a pool nor registered. */
static inline __attribute__((always_inline)) rill_status rill__memory_check_quickly(const struct rill__stream *stream,
                                                                                    const void *p, size_t n,
                                                                                    const char *what, uint32_t *kind) {
  const struct rill__allocation *const allocation = rill__ranges_find(p);
  if (RILL__LIKELY(allocation != NULL) && RILL__LIKELY(allocation->base.device == stream->base.device) &&
      RILL__LIKELY(!allocation->pooled) && RILL__LIKELY(allocation->kind != RILL_MEMORY_REGISTERED) &&
      RILL__LIKELY(n <= allocation->size - ((uintptr_t)p - allocation->begin))) {
    *kind = allocation->kind;
    return RILL_OK;
  }
  return rill__memory_check(stream, p, n, what, kind);
}

/* Finds out whether memory of a kind that rill__memory_check has found is pageable, which means that the driver does
 * not know it either.  Memory that the driver knows may not be host memory. */
rill_status rill__memory_is_pageable(struct rill__device *device, const void *p, uint32_t kind, bool *out);

/* Finds the device of the managed memory that contains `size` bytes at `p`. */
rill_status rill__memory_find_managed(const void *p, size_t size, struct rill__device **owner);

/* Fills in the device and the memory of an observed free of `p`.  Does nothing if rill does not know the memory.  Call
 * it inside an epoch. */
void rill__memory_observe(void *p, struct rill__observed *what);

/* Checks the size of a fill's pattern. */
rill_status rill__memory_check_pattern(size_t size);

/* ---- core/memory/copy.c, fill.c, held_copy.c, graph_copy.c ---- */

/* Check and submit a copy or fill; the caller has set everything but the kinds. */
rill_status rill__copy_submit(struct rill__thread *self, struct rill__stream *stream, struct rill__copy_3d *copy);

/* Converts a caller's struct to core's. */
rill_status rill__copy_3d_read(struct rill__copy_3d *out, const rill_copy_3d *copy);
rill_status rill__fill_submit(struct rill__stream *stream, struct rill__fill_2d *fill);

/* Do the same for one row. */
rill_status rill__copy_line(struct rill__thread *self, struct rill__stream *stream, void *dst, const void *src,
                            size_t n);
rill_status rill__fill_line(struct rill__stream *stream, void *dst, const void *pattern, size_t pattern_size,
                            size_t count);

/* Splits a copy into one to `memory`, which is pinned and receives the rows without gaps, and one from there. */
void rill__copy_split(const struct rill__copy_3d *copy, void *memory, struct rill__copy_3d *to_memory,
                      struct rill__copy_3d *from_memory);

/* Does the same as rill__held_* for a copy; pageable ends are staged. */
rill_status rill__held_copy(struct rill__stream *stream, const struct rill__copy_3d *copy, bool *taken);

/* Replaces the operation of a step of an execution object by a staged one, if it is a copy with a pageable end that the
 * backend does not handle itself.  Call it outside epochs. */
rill_status rill__graph_copy_stage(struct rill__operation **operation);

/* ---- core/memory/register.c ---- */

rill_status rill__memory_register(struct rill__device *device, void *p, size_t size);

/* Unregisters a range that was removed from the map.  Call it outside epochs. */
rill_status rill__memory_unregister(struct rill__allocation *range);

/* ---- core/memory/leaks.c ---- */

/* Starts to record what the user creates on a device, and lists what was not released on standard error at exit. */
bool rill__leaks_watch(struct rill__device *device);

/* Lists live objects and allocations, at most `*count` of them, and sets `*count` to their total number.  Returns false
 * if host memory ran out. */
bool rill__leaks_list(struct rill__device *device, rill_leak *leaks, size_t *count);

/* ---- core/memory/share.c ---- */

struct rill__ipc_bytes;
rill_status rill__memory_check_exportable(const struct rill__allocation *allocation, const void *p);
rill_status rill__memory_open_import(struct rill__device *device, const struct rill__ipc_bytes *content,
                                     struct rill__allocation *import, void **out);

#endif
