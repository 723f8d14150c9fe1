/* The map from addresses to allocations: asked on every copy and fill, without a lock and without the driver.
 *
 * A tree over 48 bits of address, of four levels of 1024 entries.  An entry of the upper three is empty, or the only
 * allocation that lies in its span, be it wholly or in part, or a node of the level below: so an allocation that has a
 * span for itself costs one entry, and only neighbours are distinguished further down.  A leaf, of 256 KiB in grains of
 * 256 bytes, notes where allocations begin: in a bit for each grain, and for a grain with its bit set the list of those
 * that begin in it, the last one first.  The allocation that an address may lie in is the last one that begins at
 * or before it, or else the one that reaches into the leaf from below.  So putting an allocation in and taking it out
 * costs a handful of stores, whatever its size up to hundreds of MiB, and lookup looks at no more than one entry a
 * level.
 *
 * An allocation may begin anywhere and have any size; none overlaps another, except those whose memory went without
 * rill's knowledge, which may be found for their address or not.
 *
 * Nodes are never freed.  Readers are inside an epoch; writers hold a lock of their own; an allocation that was taken
 * out is freed with rill__object_defer.  A reader that looks for an address in an allocation that is there all the
 * while finds it: what others change meanwhile lies elsewhere, and what is found is checked against its own bounds. */
#ifndef RILL_CORE_TRACKING_RANGES_H
#define RILL_CORE_TRACKING_RANGES_H

#include "core/object/handle.h"

struct rill__last_use;
struct rill__deferred_free;
struct rill__guard;

/* False if that cannot be now: it is tried again later. */
typedef bool rill__end_free_fn(struct rill__deferred_free *deferred);

/* Of a free that was made while work is held: core/tracking/deferred_free.h. */
struct rill__deferred_free {
  struct rill__deferred_free *next;
  uint64_t serial, bytes;
  rill__end_free_fn *end;
};

/* By the number of the stream: lists in a table whose size is a power of two (core/tracking/last_use.h). */
struct rill__last_uses {
  struct rill__last_use **by_stream;
  uint32_t count, room;
};

struct rill__allocation {
  struct rill__object base; /* never published: no id */
  uintptr_t begin;
  size_t size;
  uint32_t kind;                           /* RILL_MEMORY_* */
  _Atomic uint32_t holders;                /* core/memory/alloc.c: calls that go on with it outside epochs */
  bool pooled;                             /* a segment of a pool: core/pool/blocks.h knows what of it is allocated */
  bool variable;                           /* of a module: not to be freed */
  _Atomic bool exported;                   /* other processes may use it */
  _Atomic(struct rill__allocation *) next; /* that begins in the same grain, before it; of the map */
  /* Of another process: what an import gave.  A driver may give one address several times; the map has one of these,
   * from which the others are linked. */
  bool imported;
  uintptr_t pointer;
  struct rill__allocation *same;
  /* What the driver gave: the same range, or a larger one around it for the sake of alignment. */
  uintptr_t native;
  size_t native_size;               /* without a red zone */
  struct rill__last_uses last_uses; /* not of pools: what goes before rill_free; while it is in the map under the
                                     * writers' lock */
  struct rill__guard *guard;        /* RILL_CHECK=memory; else NULL */
  uint32_t held_uses;               /* registered: held operations that name it (core/held/queue.h) */
  struct rill__deferred_free deferred;
};

/* The allocation that `p` lies in, or NULL.  Only inside an epoch. */
struct rill__allocation *rill__ranges_find(const void *p);

/* All under the writers' lock.  `insert` returns false if memory ran out or the range is none of 48 bits, and has
 * then changed nothing. */
bool rill__ranges_insert(struct rill__allocation *allocation);
void rill__ranges_remove(struct rill__allocation *allocation);

/* Puts another allocation of the very same range in place of one; readers find one or the other. */
void rill__ranges_replace(struct rill__allocation *allocation, struct rill__allocation *by);

/* The last allocation before `p` and the first from there on, which lies in none; NULL if there is none. */
struct rill__allocation *rill__ranges_before(uintptr_t p);
struct rill__allocation *rill__ranges_after(uintptr_t p);

/* From a range to an address after its end or before it: 0 from its end on, and inside. */
static inline uintptr_t rill__range_distance(uintptr_t begin, size_t size, uintptr_t p) {
  if (p < begin) return begin - p;
  return p - begin < size ? 0 : p - begin - size;
}

/* An allocation that has bytes in common with the `size` > 0 at `begin`, or NULL. */
struct rill__allocation *rill__ranges_overlapping(uintptr_t begin, size_t size);

#endif
