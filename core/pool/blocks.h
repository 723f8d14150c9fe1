/* The blocks of a pool: how large pieces of memory from the driver (segments) are split and joined.  This code knows no
 * streams, events or locks; a pool's lock guards all of its heaps (core/pool/cache.h).
 *
 * Invariants
 * - The blocks of a segment, in the order of their addresses, cover it without gaps or overlaps, in units of granules.
 * - A FREE block is in one heap.  Two neighbouring blocks are both FREE in the same heap only if one of them was freed
 *   before the heap's `joins_from`: a freed block is joined at once with every neighbour that does not complete before
 *   it.
 * - `live` of a granule is nonzero if and only if an allocation starts there.  It contains the size in bytes that was
 *   requested and, in the upper bits, the offset from the start of the granule that the alignment required.  The thread
 *   that exchanges it for 0 has freed the allocation, and no other thread has.  This needs no lock.
 * - The `starts` bit of a granule is set while its `live` may be nonzero.  Both are written under the lock, except for
 *   the exchange above.  No other bit is set between the start of an allocation and any byte of it, so a reader, which
 *   has no lock, finds the allocation that contains an address at the nearest bit at or before it.
 */
#ifndef RILL_CORE_POOL_BLOCKS_H
#define RILL_CORE_POOL_BLOCKS_H

#include "core/tracking/ranges.h"

struct rill__heap;
struct rill__last_use;
struct rill__pool;

struct rill__block {
  struct rill__segment *segment;
  struct rill__block *left, *right; /* neighbours by address */
  uint32_t first, count;            /* first granule and number of granules */
  uint32_t start;                   /* granule in which the allocation starts; valid when TAKEN */
  enum { RILL__BLOCK_FREE, RILL__BLOCK_TAKEN, RILL__BLOCK_WAITING } state;
  /* when FREE, the heap that contains the block; otherwise the heap that the block names (core/pool/cache.h) */
  struct rill__heap *heap;
  uint64_t freed;                    /* number of its last free in that heap */
  struct rill__block *next, **link;  /* neighbours in its bin when FREE, in the pool's list when WAITING */
  struct rill__block *older, *newer; /* neighbours in its heap in the order of `freed`; valid when FREE */
  uint64_t stream; /* number of the stream that it was allocated on, or RILL__OF_GRAPH; valid when TAKEN */
  struct rill__last_use *last_uses; /* valid when TAKEN or WAITING (core/pool/uses.h) */
  uint32_t uses, most_uses;         /* length of that list, and the length at which the list is next shortened */
  bool unqueued;                    /* true when TAKEN if its uses are in no queue */
  uint32_t zones;                   /* granules that only hold the zones of a guard; valid when TAKEN */
  struct rill__guard *guard;        /* guard of its allocation with RILL_CHECK=memory, else NULL; valid when TAKEN */
};

/* The memory belongs to a graph, which frees it. */
#define RILL__OF_GRAPH UINT64_MAX

/* Memory from one allocation by the driver.  The first member is its entry in the map of allocations
 * (core/tracking/ranges.h). */
struct rill__segment {
  struct rill__allocation allocation;
  struct rill__pool *pool;
  struct rill__segment *next, **link; /* list of the heap's segments; valid while the segment is one FREE block */
  struct rill__segment *other, **at;  /* list of all segments of the pool */
  struct rill__block *leftmost;       /* first block by address */
  uint32_t granules;
  unsigned shift; /* log2 of the granule in bytes */
  bool of_graph;  /* allocated for a graph's memory; returned to the driver when the graph drops that memory */
  /* for each granule, the block whose allocation starts there; valid while `live` is nonzero */
  struct rill__block **block;
  _Atomic uint64_t *live, *starts;
};

/* Granule sizes.  Small granules waste little memory in small allocations; large granules keep the tables of large
 * segments short. */
enum { RILL__SMALL_SHIFT = 9, RILL__LARGE_SHIFT = 15, RILL__SMALL_MAX = 256 << 10 };
enum { RILL__BINS = 128 };

struct rill__heap {
  struct rill__bins {
    struct rill__block *first[RILL__BINS];
    uint64_t map[RILL__BINS / 64]; /* bit set: the bin is not empty */
  } bins[2];                       /* for small and for large segments */
  struct rill__block *oldest, *newest;
  struct rill__segment *segments; /* segments that are one FREE block */
  size_t count;                   /* number of blocks */
  uint64_t bytes;                 /* bytes in those blocks */
  uint64_t joins_from;            /* blocks freed with this number or a later one are joined */
  struct rill__block **spares;    /* unused block structs; owned by the pool */
};

/* The size and placement of an allocation, and the bytes of a heap that it takes. */
struct rill__request {
  size_t size, alignment; /* alignment: a power of two */
  size_t zone;            /* unused bytes after the allocation (core/tracking/frees.h) */
  size_t front;           /* unused bytes before it, a multiple of RILL__LEAST_ALIGNMENT (core/tracking/guards.h) */
  bool large;             /* selects the bins */
  bool of_graph;          /* the memory is for all launches of a graph */
  size_t rounded;         /* bytes that suffice wherever a block of that size begins */
};
enum { RILL__LEAST_ALIGNMENT = 256 }; /* alignment of all memory that drivers and pools return */

/* Sets the other fields from size, alignment and zones.  Returns false on overflow. */
bool rill__request_round(struct rill__request *request);

/* Returns a segment that is in no heap and has no memory yet, or NULL if there is no host memory.  `size` is a multiple
 * of its granule. */
struct rill__segment *rill__segment_new(struct rill__device *device, size_t size, bool large, uint32_t kind);
/* frees a segment that was never registered in core/tracking/ranges.h */
void rill__segment_free(struct rill__segment *segment);

/* rill__heap_add adds a segment, whose memory starts at allocation.begin, to a heap as one FREE block;
 * rill__heap_remove removes a segment that is one FREE block from its heap. */
void rill__heap_add(struct rill__heap *heap, struct rill__segment *segment);
void rill__heap_remove(struct rill__segment *segment);

/* Returns a FREE block that is large enough, or NULL.  The usual search is short and may miss a block among many that
 * are slightly too small; a `thorough` search never misses one. */
struct rill__block *rill__heap_find(struct rill__heap *heap, const struct rill__request *request, bool thorough);

/* Removes a FREE block from its heap and cuts it to size.  The block keeps naming the heap. */
struct rill__block *rill__block_take(struct rill__block *block, const struct rill__request *request);

/* Makes a block FREE in the heap, at its age, and joins it with neighbours freed from joins_from on. */
void rill__heap_put(struct rill__heap *heap, struct rill__block *block, uint64_t freed);
/* Removes a FREE block from its heap, unchanged. */
void rill__heap_detach(struct rill__block *block);

/* Returns the address of a block that was taken without alignment. */
void *rill__block_address(const struct rill__block *block);

/* Makes a block that was taken for a request an allocation, and returns its address. */
void *rill__block_begin(struct rill__block *block, const struct rill__request *request);

/* Clears the allocation's `starts` bit, after the allocation has been claimed and before the memory becomes part of
 * another block. */
void rill__block_end(struct rill__block *block);

/* Frees the unused block structs. */
void rill__spares_free(struct rill__block **spares);

static inline size_t rill__block_size(const struct rill__block *block) {
  return (size_t)block->count << block->segment->shift;
}

/* Returns the bytes that an allocation counts as in use, without the zones of a guard. */
static inline size_t rill__block_used(const struct rill__block *block) {
  return (size_t)(block->count - block->zones) << block->segment->shift;
}

/* Returns true if the block serves the request without being split or joined. */
static inline bool rill__block_fits(const struct rill__block *block, const struct rill__request *request) {
  return (block->segment->shift == RILL__LARGE_SHIFT) == request->large && rill__block_size(block) >= request->rounded;
}

/* Finds the allocation that contains `p`, an address in the segment; returns false if the memory there is free.  Call
 * it inside an epoch, or while the allocation cannot be freed. */
bool rill__segment_find(const struct rill__segment *segment, const void *p, uintptr_t *begin, size_t *size);

/* Finds the allocation in the segment that contains `p` or is nearest to it; `p` may be any address.  Returns false if
 * there is no allocation. */
bool rill__segment_nearest(const struct rill__segment *segment, uintptr_t p, uintptr_t *begin, size_t *size);

/* Returns the block whose allocation starts at `begin`, or NULL.  Call it under the lock. */
struct rill__block *rill__segment_block(const struct rill__segment *segment, uintptr_t begin);

/* Frees an allocation by its first address: exactly one caller gets the former value of `live`, all others get 0.  The
 * second function undoes this. */
uint64_t rill__segment_claim(struct rill__segment *segment, uintptr_t begin, struct rill__block **block);
void rill__segment_unclaim(struct rill__segment *segment, struct rill__block *block, uint64_t live);

#endif
