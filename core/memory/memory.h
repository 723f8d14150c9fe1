/* Memory that calls allocate, copy, fill, register and share.  The map of it is core/tracking/map.h. */
#ifndef RILL_CORE_MEMORY_MEMORY_H
#define RILL_CORE_MEMORY_MEMORY_H

#include "core/diagnose/observe.h"
#include "core/diagnose/order_notes.h"
#include "core/pool/pool.h"
#include "core/tracking/deferred_free.h"
#include "core/tracking/guards.h"
#include "core/tracking/ranges.h"

#include <rill/diagnose.h>

/* ---- core/memory/alloc.c; outside epochs ---- */

rill_status rill__memory_alloc(struct rill__device *device, size_t size, size_t alignment, uint32_t kind, void **out);

/* Gives memory a guard (core/tracking/guards.h), which is in no list yet, and takes it away. */
void rill__memory_guard(struct rill__guard *guard, struct rill__allocation *allocation);
void rill__memory_unguard(struct rill__allocation *allocation);

/* Frees what was taken out of the map, or closes an import.  May block. */
rill_status rill__memory_free(struct rill__allocation *allocation);

/* For a call that goes on with an allocation outside its epoch: the memory stays until rill__memory_let_go, whoever
 * frees it meanwhile.  hold: false if it is being freed.  let_go: true if it was freed meanwhile, and is gone if nobody
 * else holds it. */
bool rill__memory_hold(struct rill__allocation *allocation);
bool rill__memory_let_go(struct rill__allocation *allocation);

/* Whether memory goes back when the host synchronizes, for want of something else in use or because its free is
 * deferred, or is checked then; and that, after it has, outside epochs.  `all`: with all of the device's work. */
static inline bool rill__memory_awaits_host(const struct rill__device *device) {
  return atomic_load_explicit(&rill__core(device)->pool_thresholds, memory_order_relaxed) ||
         rill__frees_are_deferred(device);
}
static inline rill_status rill__memory_synchronized(struct rill__device *device, bool all) {
  rill__deferred_frees_end_idle(device);
  rill__pools_synchronized(device);
  return rill__guards_check(device, all);
}

/* ---- core/memory/check.c ---- */

/* Looks at `n` bytes at `p` that a stream of `stream`'s device is to use.  Memory that rill does not know is left to
 * the driver: kind UNKNOWN.  Registered memory is pinned. */
rill_status rill__memory_check(const struct rill__stream *stream, const void *p, size_t n, const char *what,
                               uint32_t *kind);

/* Whether memory of a kind that rill__memory_check has found is pageable, so unknown to the driver as well.  Memory
 * that the driver knows is left to it, and may not even be the host's. */
rill_status rill__memory_is_pageable(struct rill__device *device, const void *p, uint32_t kind, bool *out);

/* The device of managed memory in which `size` bytes at `p` lie. */
rill_status rill__memory_find_managed(const void *p, size_t size, struct rill__device **owner);

/* Fills in the device and the memory of an observed free of `p`, inside an epoch; nothing if rill does not know it. */
void rill__memory_observe(void *p, struct rill__observed *what);

/* The size of a fill's pattern. */
rill_status rill__memory_check_pattern(size_t size);

/* ---- core/memory/copy.c, fill.c, held_copy.c, graph_copy.c ---- */

/* Check and submit; a copy and a fill have everything but the kinds. */
rill_status rill__copy_submit(struct rill__thread *self, struct rill__stream *stream, struct rill__copy_3d *copy);

/* The copy that a caller's struct describes. */
rill_status rill__copy_3d_read(struct rill__copy_3d *out, const rill_copy_3d *copy);
rill_status rill__fill_submit(struct rill__stream *stream, struct rill__fill_2d *fill);

/* The same of one row. */
rill_status rill__copy_line(struct rill__thread *self, struct rill__stream *stream, void *dst, const void *src,
                            size_t n);
rill_status rill__fill_line(struct rill__stream *stream, void *dst, const void *pattern, size_t pattern_size,
                            size_t count);

/* Splits a copy into one to `memory`, pinned, in which its rows are without gaps, and one from there. */
void rill__copy_split(const struct rill__copy_3d *copy, void *memory, struct rill__copy_3d *to_memory,
                      struct rill__copy_3d *from_memory);

/* rill__held_* of a copy, whose pageable ends are staged. */
rill_status rill__held_copy(struct rill__stream *stream, const struct rill__copy_3d *copy, bool *taken);

/* Replaces the operation of a step of an execution object, if it is a copy with a pageable end that the backend does
 * not make itself, by one that is staged.  Outside epochs. */
rill_status rill__graph_copy_stage(struct rill__operation **operation);

/* ---- core/memory/register.c ---- */

rill_status rill__memory_register(struct rill__device *device, void *p, size_t size);

/* Of a range that was taken out of the map; outside epochs. */
rill_status rill__memory_unregister(struct rill__allocation *range);

/* ---- core/memory/leaks.c ---- */

/* Begins to note what the user makes on a device, and has what is left written to standard error at exit. */
bool rill__leaks_watch(struct rill__device *device);

/* What is alive, at most as many as `*count`, which becomes how many there are; false if host memory ran out. */
bool rill__leaks_list(struct rill__device *device, rill_leak *leaks, size_t *count);

/* ---- core/memory/share.c ---- */

struct rill__ipc_bytes;
rill_status rill__memory_check_exportable(const struct rill__allocation *allocation, const void *p);
rill_status rill__memory_open_import(struct rill__device *device, const struct rill__ipc_bytes *content,
                                     struct rill__allocation *import, void **out);

#endif
