/* The blocks of a pool: how large pieces of memory from the driver (segments) are cut up and joined again.  No stream,
 * no event and no lock in here; a heap belongs to one lane (core/pool_lanes.h), whose lock guards it.
 *
 * Invariants
 * - The blocks of a segment, in the order of their addresses, cover it without gaps or overlaps, in whole granules.
 * - No two FREE blocks are neighbours: what is given back is joined at once.
 * - A block is in a bin exactly if it is FREE.
 * - `live` of a granule is not 0 exactly if an allocation begins there: the bytes asked for, and in its upper bits how
 *   far behind the granule's begin, as alignment wanted it.  Whoever exchanges it for 0 has freed the allocation, and
 *   nobody else has.  That needs no lock.
 * - The `begins` bit of a granule is set while `live` of it may be other than 0; both are written under the heap's lock
 *   but for that exchange.  Between the begin of an allocation and any byte of it no other bit is set, so that readers,
 *   who have no lock, find the allocation of an address at the nearest bit at or before it. */
#ifndef RILL_CORE_POOL_BLOCKS_H
#define RILL_CORE_POOL_BLOCKS_H

#include "core/ranges.h"

struct rill__segment;
struct rill__heap;

struct rill__use; /* core/use.h */

struct rill__block {
  struct rill__segment *segment;
  struct rill__block *left, *right; /* its neighbours, by address */
  uint32_t first, count;            /* granules */
  uint32_t at;                      /* TAKEN: the granule in which its allocation begins */
  enum { RILL__BLOCK_FREE, RILL__BLOCK_TAKEN, RILL__BLOCK_WAITING } state;
  struct rill__block *next, **link; /* of a bin; `next` alone of other lists */
  uint64_t freed;                   /* FREE: the number of its last free on the lane; 0: complete for all */
  uint64_t user;                    /* TAKEN: the number of the stream that it was allocated on; WAITING: freed on */
  bool elsewhere;                   /* WAITING: it was freed on another stream than the lane's; `uses` say where */
  struct rill__use *uses;           /* what has to be complete before it is FREE */
};

/* Memory of one call of the driver.  It begins with what core/ranges.h knows of it. */
struct rill__segment {
  struct rill__allocation allocation;
  _Atomic(struct rill__heap *) heap;  /* changes while nothing is allocated in it, under the old and the new lock */
  struct rill__segment *next, **link; /* of the heap */
  struct rill__block *whole;          /* the block at its begin */
  uint32_t granules;
  unsigned shift;             /* of a granule */
  struct rill__block **block; /* by granule: the block that begins there; meaning something while `live` does */
  _Atomic uint64_t *live, *begins;
};

/* Granules: small ones waste little of a small allocation, large ones keep the tables of large segments short. */
enum { RILL__SMALL_SHIFT = 9, RILL__LARGE_SHIFT = 15, RILL__SMALL_MAX = 256 << 10 };
enum { RILL__BINS = 128 };

struct rill__heap {
  struct rill__bins {
    struct rill__block *first[RILL__BINS];
    uint64_t map[RILL__BINS / 64]; /* which are not empty */
  } bins[2];                       /* of small and of large segments */
  struct rill__segment *segments;
  struct rill__block *spare; /* block structs to use again */
};

/* What an allocation asks for, and what that takes of a heap. */
struct rill__wish {
  size_t size, alignment; /* a power of two */
  bool large;             /* of which bins */
  size_t rounded;         /* bytes that are enough, wherever a block of them begins */
};
enum { RILL__LEAST_ALIGNMENT = 256 }; /* of all that drivers and pools give */

/* Fills in the rest from size and alignment; false if that overflows. */
bool rill__wish_round(struct rill__wish *wish);

/* A segment that is not in a heap yet, without memory; NULL if there is no host memory.  `size` is a multiple of its
 * granule. */
struct rill__segment *rill__segment_new(struct rill__device *device, size_t size, bool large, uint32_t kind);
void rill__segment_free(struct rill__segment *segment); /* never registered in core/ranges.h */

/* Puts a segment, whose memory begins at `begin`, into a heap as one FREE block; and takes one out that is one FREE
 * block. */
void rill__heap_add(struct rill__heap *heap, struct rill__segment *segment, uint64_t freed);
void rill__heap_remove(struct rill__segment *segment);
bool rill__segment_is_free(const struct rill__segment *segment);

/* Takes a FREE block that is large enough and was last freed at `until` or before, and cuts it to size; NULL if there
 * is none.  The caller makes it live, or gives it back. */
struct rill__block *rill__heap_take(struct rill__heap *heap, const struct rill__wish *wish, uint64_t until);

/* Makes a TAKEN or WAITING block FREE, and joins it with its neighbours. */
void rill__heap_give(struct rill__heap *heap, struct rill__block *block, uint64_t freed);

/* A block that was taken for a wish becomes an allocation, at the address given back. */
void *rill__block_begin(struct rill__block *block, const struct rill__wish *wish);

/* Its bit goes, when it has been claimed and before it becomes part of another block. */
void rill__block_end(struct rill__block *block);

/* Frees the heap's own structs; its segments are gone. */
void rill__heap_end(struct rill__heap *heap);

static inline size_t rill__block_size(const struct rill__block *block) {
  return (size_t)block->count << block->segment->shift;
}

/* Whether a block serves a wish as it is. */
static inline bool rill__block_fits(const struct rill__block *block, const struct rill__wish *wish) {
  return (block->segment->shift == RILL__LARGE_SHIFT) == wish->large && rill__block_size(block) >= wish->rounded;
}

/* The allocation that `p`, an address in the segment, lies in.  Inside an epoch or while the allocation cannot be
 * freed; false if the memory there is free. */
bool rill__segment_find(const struct rill__segment *segment, const void *p, uintptr_t *begin, size_t *size);

/* Ends an allocation by its first address: exactly one caller gets what `live` was, the others 0; and undoes that. */
uint64_t rill__segment_claim(struct rill__segment *segment, uintptr_t begin, struct rill__block **block);
void rill__segment_unclaim(struct rill__segment *segment, struct rill__block *block, uint64_t live);

#endif
