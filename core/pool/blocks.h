/* The blocks of a pool: how large pieces of memory from the driver (segments) are cut up and joined again.  No stream,
 * no event and no lock in here; a pool's lock guards all of its heaps (core/pool/cache.h).
 *
 * Invariants
 * - The blocks of a segment, in the order of their addresses, cover it without gaps or overlaps, in whole granules.
 * - A FREE block is in one heap.  Two FREE blocks of one heap are neighbours only if one of them was freed before the
 *   heap's `joins_from`: what is freed is joined at once with all that completes no earlier.
 * - `live` of a granule is not 0 exactly if an allocation starts there: the bytes asked for, and in its upper bits how
 *   far after the granule's start, as alignment wanted it.  Whoever exchanges it for 0 has freed the allocation, and
 *   nobody else has.  That needs no lock.
 * - The `starts` bit of a granule is set while `live` of it may be other than 0; both are written under the lock but
 *   for that exchange.  Between the start of an allocation and any byte of it no other bit is set, so that readers, who
 *   have no lock, find the allocation of an address at the nearest bit at or before it. */
#ifndef RILL_CORE_POOL_BLOCKS_H
#define RILL_CORE_POOL_BLOCKS_H

#include "core/tracking/ranges.h"

struct rill__heap;
struct rill__last_use;
struct rill__pool;

struct rill__block {
  struct rill__segment *segment;
  struct rill__block *left, *right; /* its neighbours, by address */
  uint32_t first, count;            /* granules */
  uint32_t start;                   /* TAKEN: the granule in which its allocation starts */
  enum { RILL__BLOCK_FREE, RILL__BLOCK_TAKEN, RILL__BLOCK_WAITING } state;
  struct rill__heap *heap;           /* FREE: that it is in; else core/pool/cache.h */
  uint64_t freed;                    /* the number of its last free there */
  struct rill__block *next, **link;  /* FREE: of its bin; WAITING: of the pool's list */
  struct rill__block *older, *newer; /* FREE: of its heap, by `freed` */
  uint64_t stream;                   /* TAKEN: the number of the stream that it was allocated on; or RILL__OF_GRAPH */
  struct rill__last_use *last_uses;  /* TAKEN and WAITING: core/pool/uses.h */
  uint32_t uses, most_uses;          /* in that list; and how many there are when it is next made shorter */
  bool unqueued;                     /* TAKEN: its uses are in no queue */
  uint32_t zones;                    /* TAKEN: granules that it has only for the zones of a guard */
  struct rill__guard *guard;         /* TAKEN: of its allocation, with RILL_CHECK=memory; else NULL */
};

/* The memory is a graph's, which frees it. */
#define RILL__OF_GRAPH UINT64_MAX

/* Memory of one call of the driver.  It starts with what core/tracking/ranges.h knows of it. */
struct rill__segment {
  struct rill__allocation allocation;
  struct rill__pool *pool;
  struct rill__segment *next, **link; /* of a heap, while it is one FREE block */
  struct rill__segment *other, **at;  /* of the pool's list of all its segments */
  struct rill__block *leftmost;       /* block */
  uint32_t granules;
  unsigned shift;             /* of a granule */
  bool of_graph;              /* it came from the driver for a graph's memory, and goes back when that is dropped */
  struct rill__block **block; /* by granule: the block whose allocation starts there; valid while `live` is */
  _Atomic uint64_t *live, *starts;
};

/* Granules: small ones waste little of a small allocation, large ones keep the tables of large segments short. */
enum { RILL__SMALL_SHIFT = 9, RILL__LARGE_SHIFT = 15, RILL__SMALL_MAX = 256 << 10 };
enum { RILL__BINS = 128 };

struct rill__heap {
  struct rill__bins {
    struct rill__block *first[RILL__BINS];
    uint64_t map[RILL__BINS / 64]; /* which are not empty */
  } bins[2];                       /* of small and of large segments */
  struct rill__block *oldest, *newest;
  struct rill__segment *segments; /* that are one FREE block */
  size_t count;                   /* of its blocks */
  uint64_t bytes;                 /* of them */
  uint64_t joins_from;            /* blocks freed from this number on are joined */
  struct rill__block **spares;    /* block structs to use again: the pool's */
};

/* What an allocation asks for, and what that takes of a heap. */
struct rill__request {
  size_t size, alignment; /* a power of two */
  size_t zone;            /* bytes after it that belong to nothing: core/tracking/frees.h */
  size_t front;           /* and before it, a multiple of the least alignment: core/tracking/guards.h */
  bool large;             /* of which bins */
  bool of_graph;          /* for all launches of a graph */
  size_t rounded;         /* bytes that are enough, wherever a block of them starts */
};
enum { RILL__LEAST_ALIGNMENT = 256 }; /* of all that drivers and pools give */

/* Fills in the rest from size, alignment and zones; false if that overflows. */
bool rill__request_round(struct rill__request *request);

/* A segment that is in no heap yet, without memory; NULL if there is no host memory.  `size` is a multiple of its
 * granule. */
struct rill__segment *rill__segment_new(struct rill__device *device, size_t size, bool large, uint32_t kind);
void rill__segment_free(struct rill__segment *segment); /* never registered in core/tracking/ranges.h */

/* Puts a segment, whose memory starts at allocation.begin, into a heap as one FREE block, and takes one that is one out
 * of its heap. */
void rill__heap_add(struct rill__heap *heap, struct rill__segment *segment);
void rill__heap_remove(struct rill__segment *segment);

/* A FREE block that is large enough, or NULL.  The usual look is a short one, which may pass over a block among many
 * that are nearly large enough; `thorough`: it does not. */
struct rill__block *rill__heap_find(struct rill__heap *heap, const struct rill__request *request, bool thorough);

/* Takes that block out, cut to size.  Its heap stays the one that it names. */
struct rill__block *rill__block_take(struct rill__block *block, const struct rill__request *request);

/* Makes a block that is not FREE so, in this heap, by its age, and joins it with the neighbours that were freed from
 * joins_from on; and takes a FREE block as it is out of its heap. */
void rill__heap_put(struct rill__heap *heap, struct rill__block *block, uint64_t freed);
void rill__heap_detach(struct rill__block *block);

/* Where a block starts that was taken without alignment. */
void *rill__block_address(const struct rill__block *block);

/* A block that was taken for a request becomes an allocation, at the address that is returned. */
void *rill__block_begin(struct rill__block *block, const struct rill__request *request);

/* Its bit goes, when it has been claimed and before it becomes part of another block. */
void rill__block_end(struct rill__block *block);

/* Frees the structs kept for use again. */
void rill__spares_free(struct rill__block **spares);

static inline size_t rill__block_size(const struct rill__block *block) {
  return (size_t)block->count << block->segment->shift;
}

/* What an allocation counts as in use: without the zones of a guard. */
static inline size_t rill__block_used(const struct rill__block *block) {
  return (size_t)(block->count - block->zones) << block->segment->shift;
}

/* Whether a block serves a request as it is. */
static inline bool rill__block_fits(const struct rill__block *block, const struct rill__request *request) {
  return (block->segment->shift == RILL__LARGE_SHIFT) == request->large && rill__block_size(block) >= request->rounded;
}

/* The allocation that `p`, an address in the segment, lies in.  Inside an epoch or while the allocation cannot be
 * freed; false if the memory there is free. */
bool rill__segment_find(const struct rill__segment *segment, const void *p, uintptr_t *begin, size_t *size);

/* The allocation in the segment that `p`, any address, lies in or is nearest to; false if there is none. */
bool rill__segment_nearest(const struct rill__segment *segment, uintptr_t p, uintptr_t *begin, size_t *size);

/* The block whose allocation starts there, or NULL.  Under the lock. */
struct rill__block *rill__segment_block(const struct rill__segment *segment, uintptr_t begin);

/* Ends an allocation by its first address: exactly one caller gets what `live` was, the others 0; and undoes that. */
uint64_t rill__segment_claim(struct rill__segment *segment, uintptr_t begin, struct rill__block **block);
void rill__segment_unclaim(struct rill__segment *segment, struct rill__block *block, uint64_t live);

#endif
