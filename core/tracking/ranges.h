/* The map from addresses to allocations, which is searched on every copy and fill without a lock and without the
 * driver.
 *
 * It is a tree over 48 bits of address, with four levels of 1024 entries.  An entry of the upper three levels is empty,
 * or the only allocation in its span (which it may fill entirely or partly), or a node of the level below.  So an
 * allocation that has a span to itself costs one entry, and only neighbours are distinguished at lower levels.  A leaf
 * covers 256 KiB in grains of 256 bytes and records where allocations begin: one bit for each grain and, if the bit is
 * set, the list of allocations that begin in the grain, the last one first.  The allocation that may contain an address
 * is the last one that begins at or before it, or otherwise the one that reaches into the leaf from below.  So adding
 * or removing an allocation costs a handful of stores, whatever its size up to hundreds of MiB, and a search reads at
 * most one entry per level.
 *
 * An allocation may begin anywhere and have any size.  Allocations do not overlap, except with allocations whose memory
 * was freed without rill's knowledge; a search for an address in such an allocation may or may not find it.
 *
 * Nodes are never freed.  Readers are inside an epoch, writers hold a lock of their own, and an allocation that was
 * removed is freed with rill__object_defer.  A reader that searches for an address in an allocation that exists
 * throughout the search finds it: concurrent changes affect other places, and the result is checked against its own
 * bounds.
 */
#ifndef RILL_CORE_TRACKING_RANGES_H
#define RILL_CORE_TRACKING_RANGES_H

#include "core/object/handle.h"

struct rill__last_use;
struct rill__deferred_free;
struct rill__guard;

/* Finishes a free; returns false if that is not possible now, and is then called again later. */
typedef bool rill__end_free_fn(struct rill__deferred_free *deferred);

/* A free that was made while work was held (core/tracking/deferred_free.h). */
struct rill__deferred_free {
  struct rill__deferred_free *next;
  uint64_t serial, bytes;
  rill__end_free_fn *end;
};

/* Lists of last uses in a hash table indexed by the number of the stream; its size is a power of two
 * (core/tracking/last_use.h). */
struct rill__last_uses {
  struct rill__last_use **by_stream;
  uint32_t count, room;
};

struct rill__allocation {
  struct rill__object base; /* never published, so it has no id */
  uintptr_t begin;
  size_t size;
  uint32_t kind;                           /* RILL_MEMORY_* */
  _Atomic uint32_t holders;                /* calls that use the allocation outside epochs (core/memory/alloc.c) */
  bool pooled;                             /* a segment of a pool; core/pool/blocks.h knows which parts are allocated */
  bool variable;                           /* a variable of a module; must not be freed */
  _Atomic bool exported;                   /* other processes may use the memory */
  _Atomic(struct rill__allocation *) next; /* the allocation before it in the same grain; used by the map */
  /* Memory of another process; `pointer` is what the import returned.  A driver may return one address several times;
   * the map contains one of these imports, and the others are linked from it. */
  bool imported;
  uintptr_t pointer;
  struct rill__allocation *same;
  /* The range that the driver allocated, which is the same or a larger one because of alignment. */
  uintptr_t native;
  size_t native_size; /* without a red zone */
  /* work that has to end before rill_free frees the memory; not used for pools; guarded by the writers' lock while the
   * allocation is in the map */
  struct rill__last_uses last_uses;
  struct rill__guard *guard; /* used with RILL_CHECK=memory; else NULL */
  uint32_t held_uses;        /* for registered memory: number of held operations that name it (core/held/queue.h) */
  struct rill__deferred_free deferred;
};

/* Returns the allocation that contains `p`, or NULL.  Call it only inside an epoch. */
struct rill__allocation *rill__ranges_find(const void *p);

/* Call these and the functions below under the writers' lock.  `insert` returns false, having changed nothing, if
 * memory ran out or the range is not within 48 bits. */
bool rill__ranges_insert(struct rill__allocation *allocation);
void rill__ranges_remove(struct rill__allocation *allocation);

/* Replaces an allocation by another one of exactly the same range; readers find one or the other. */
void rill__ranges_replace(struct rill__allocation *allocation, struct rill__allocation *by);

/* Return the last allocation before `p` and the first one after it, for a `p` that lies in none; NULL if there is
 * none. */
struct rill__allocation *rill__ranges_before(uintptr_t p);
struct rill__allocation *rill__ranges_after(uintptr_t p);

/* Returns the distance from a range to an address outside it; 0 inside the range and at its end. */
static inline uintptr_t rill__range_distance(uintptr_t begin, size_t size, uintptr_t p) {
  if (p < begin) return begin - p;
  return p - begin < size ? 0 : p - begin - size;
}

/* Returns an allocation that overlaps the `size` > 0 bytes at `begin`, or NULL. */
struct rill__allocation *rill__ranges_overlapping(uintptr_t begin, size_t size);

#endif
