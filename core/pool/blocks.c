#include "core/pool/blocks.h"

#include "core/pool/check.h"

#include <rill/memory.h>
#include <stdlib.h>

/* ---- bins ---- */

/* Returns the bin of a size.  Each size below 8 granules has a bin; above, each power of two has four.  A bin holds
 * blocks from its least size up to that of the next bin. */
static unsigned bin_of(uint32_t count) {
  if (count < 8) return count;
  const unsigned log = 31u - (unsigned)__builtin_clz(count);
  return 8 + (log - 3) * 4 + (count >> (log - 2) & 3u);
}

static struct rill__bins *bins_of(struct rill__heap *heap, unsigned shift) {
  return &heap->bins[shift == RILL__LARGE_SHIFT];
}

static void put_in_bin(struct rill__heap *heap, struct rill__block *block) {
  struct rill__bins *bins = bins_of(heap, block->segment->shift);
  const unsigned bin = bin_of(block->count);
  block->next = bins->first[bin];
  block->link = &bins->first[bin];
  if (block->next != NULL) block->next->link = &block->next;
  bins->first[bin] = block;
  bins->map[bin / 64] |= UINT64_C(1) << bin % 64;
}

static void take_from_bin(struct rill__heap *heap, struct rill__block *block) {
  struct rill__bins *bins = bins_of(heap, block->segment->shift);
  const unsigned bin = bin_of(block->count);
  *block->link = block->next;
  if (block->next != NULL) block->next->link = block->link;
  if (bins->first[bin] == NULL) bins->map[bin / 64] &= ~(UINT64_C(1) << bin % 64);
}

/* Puts a block into a heap, directly after `older` in age; NULL: the block is the oldest. */
static void attach(struct rill__heap *heap, struct rill__block *block, struct rill__block *older) {
  block->state = RILL__BLOCK_FREE;
  block->heap = heap;
  put_in_bin(heap, block);
  struct rill__block **const after = older != NULL ? &older->newer : &heap->oldest;
  block->older = older;
  block->newer = *after;
  *after = block;
  if (block->newer != NULL) {
    block->newer->older = block;
  } else {
    heap->newest = block;
  }
  heap->count++;
  heap->bytes += rill__block_size(block);
  struct rill__segment *segment = block->segment;
  if (RILL__LIKELY(block->count != segment->granules)) return;
  segment->next = heap->segments;
  segment->link = &heap->segments;
  if (segment->next != NULL) segment->next->link = &segment->next;
  heap->segments = segment;
}

void rill__heap_detach(struct rill__block *block) {
  struct rill__heap *heap = block->heap;
  take_from_bin(heap, block);
  *(block->older != NULL ? &block->older->newer : &heap->oldest) = block->newer;
  *(block->newer != NULL ? &block->newer->older : &heap->newest) = block->older;
  heap->count--;
  heap->bytes -= rill__block_size(block);
  block->state = RILL__BLOCK_TAKEN;
  struct rill__segment *segment = block->segment;
  if (RILL__LIKELY(block->count != segment->granules)) return;
  *segment->link = segment->next;
  if (segment->next != NULL) segment->next->link = segment->link;
}

/* Returns the first bin at or after `bin` that is not empty, or RILL__BINS. */
static unsigned next_bin(const struct rill__bins *bins, unsigned bin) {
  for (unsigned word = bin / 64; word < RILL__BINS / 64; word++) {
    uint64_t bits = bins->map[word];
    if (word == bin / 64) bits &= ~UINT64_C(0) << bin % 64;
    if (bits != 0) return word * 64 + (unsigned)__builtin_ctzll(bits);
  }
  return RILL__BINS;
}

/* ---- block structs ---- */

static struct rill__block *new_block(struct rill__heap *heap) {
  struct rill__block *block = *heap->spares;
  if (block == NULL) return calloc(1, sizeof *block);
  *heap->spares = block->next;
  return block;
}

static void free_block(struct rill__heap *heap, struct rill__block *block) {
  block->next = *heap->spares;
  *heap->spares = block;
}

void rill__spares_free(struct rill__block **spares) {
  while (*spares != NULL) {
    struct rill__block *block = *spares;
    *spares = block->next;
    free(block);
  }
}

/* ---- segments ---- */

static size_t granule_bytes(unsigned shift) { return (size_t)1 << shift; }

/* A block's start is only known to be a multiple of the least alignment, so a stricter alignment may cost up to the
 * difference at the front. */
bool rill__request_round(struct rill__request *request) {
  const size_t before = request->alignment > RILL__LEAST_ALIGNMENT ? request->alignment - RILL__LEAST_ALIGNMENT : 0;
  const size_t extra = before + request->front + request->zone;
  const size_t size = request->size > SIZE_MAX - extra ? SIZE_MAX : request->size + extra;
  request->large = size > RILL__SMALL_MAX;
  const size_t granule = granule_bytes(request->large ? RILL__LARGE_SHIFT : RILL__SMALL_SHIFT);
  request->rounded = size > SIZE_MAX - granule ? 0 : (size + granule - 1) / granule * granule;
  return request->rounded != 0 && request->rounded >> RILL__LARGE_SHIFT <= UINT32_MAX / 2;
}

static void destroy_segment(struct rill__object *object) {
  struct rill__segment *segment = (struct rill__segment *)object;
  free(segment->leftmost);
  free(segment->block);
  free((void *)segment->live);
  free((void *)segment->starts);
  rill__object_free(object);
}

struct rill__segment *rill__segment_new(struct rill__device *device, size_t size, bool large, uint32_t kind) {
  struct rill__segment *segment = NULL;
  if (rill__object_new(sizeof *segment, device, NULL, destroy_segment, &segment) != RILL_OK) return NULL;
  segment->shift = large ? RILL__LARGE_SHIFT : RILL__SMALL_SHIFT;
  segment->granules = (uint32_t)(size >> segment->shift);
  segment->allocation.size = size;
  segment->allocation.kind = kind;
  segment->allocation.pooled = true;
  segment->leftmost = calloc(1, sizeof *segment->leftmost);
  segment->block = calloc(segment->granules, sizeof *segment->block);
  segment->live = calloc(segment->granules, sizeof *segment->live);
  segment->starts = calloc(segment->granules / 64 + 1, sizeof *segment->starts);
  if (segment->leftmost != NULL && segment->block != NULL && segment->live != NULL && segment->starts != NULL) {
    return segment;
  }
  rill__segment_free(segment);
  return NULL;
}

void rill__segment_free(struct rill__segment *segment) { rill__unref(&segment->allocation.base); }

void rill__heap_add(struct rill__heap *heap, struct rill__segment *segment) {
  struct rill__block *block = segment->leftmost;
  block->segment = segment;
  block->count = segment->granules;
  attach(heap, block, heap->newest);
}

void rill__heap_remove(struct rill__segment *segment) { rill__heap_detach(segment->leftmost); }

/* ---- taking and returning ---- */

/* Splits off everything after the first `count` granules as another block; neither block is in a heap.  Returns NULL if
 * there is no struct for the new block. */
static struct rill__block *split(struct rill__heap *heap, struct rill__block *block, uint32_t count) {
  struct rill__block *rest = new_block(heap);
  if (rest == NULL) return NULL;
  *rest = (struct rill__block){ .segment = block->segment,
                                .left = block,
                                .right = block->right,
                                .first = block->first + count,
                                .count = block->count - count,
                                .state = RILL__BLOCK_TAKEN,
                                .heap = heap,
                                .freed = block->freed };
  if (rest->right != NULL) rest->right->left = rest;
  block->right = rest;
  block->count = count;
  return rest;
}

static uintptr_t begin_of(const struct rill__block *block) {
  return block->segment->allocation.begin + ((uintptr_t)block->first << block->segment->shift);
}

void *rill__block_address(const struct rill__block *block) { return (void *)begin_of(block); }

/* Returns the offset of the allocation from the start of the block. */
static size_t offset_in(const struct rill__block *block, const struct rill__request *request) {
  if (request->alignment <= RILL__LEAST_ALIGNMENT) return request->front;
  return request->front + (size_t)(-(begin_of(block) + request->front) & (request->alignment - 1));
}

/* The parts before the start and after the end of the allocation stay in the heap.  If there are no structs for these
 * parts, they stay with the block. */
struct rill__block *rill__block_take(struct rill__block *block, const struct rill__request *request) {
  const unsigned shift = block->segment->shift;
  struct rill__heap *const heap = block->heap;
  /* The parts have the age of the block, so they take its place in the order of frees. */
  struct rill__block *const older = block->older;
  struct rill__block *rest = NULL;
  rill__heap_detach(block);
  const uint32_t front = (uint32_t)((offset_in(block, request) - request->front) >> shift);
  if (RILL__UNLIKELY(front > 0) && (rest = split(heap, block, front)) != NULL) {
    attach(heap, block, older);
    block = rest;
  }
  const size_t bytes = offset_in(block, request) + request->size + request->zone;
  const uint32_t count = (uint32_t)((bytes + granule_bytes(shift) - 1) >> shift);
  if (block->count > count && (rest = split(heap, block, count)) != NULL) attach(heap, rest, older);
#if RILL_CHECKS
  rill__block_check(block);
#endif
  return block;
}

/* The bin of `count` contains blocks that fit and blocks that are too small, so its first few are searched for a good
 * fit.  All blocks of later bins fit. */
struct rill__block *rill__heap_find(struct rill__heap *heap, const struct rill__request *request, bool thorough) {
  enum { LOOKS = 8 };
  const unsigned shift = request->large ? RILL__LARGE_SHIFT : RILL__SMALL_SHIFT;
  const uint32_t count = (uint32_t)(request->rounded >> shift);
  const struct rill__bins *bins = bins_of(heap, shift);
  const unsigned bin = bin_of(count);
  struct rill__block *best = NULL;
  int looks = 0;
  for (struct rill__block *block = bins->first[bin]; block != NULL && looks < LOOKS; block = block->next, looks++) {
    if (block->count >= count && (best == NULL || block->count < best->count)) best = block;
    if (block->count == count) break;
  }
  if (best != NULL) return best;
  const unsigned next = next_bin(bins, bin + 1);
  if (next < RILL__BINS) return bins->first[next];
  for (struct rill__block *block = bins->first[bin]; block != NULL && thorough; block = block->next) {
    if (block->count >= count) return block;
  }
  return NULL;
}

/* Joins a block with its right neighbour, whose struct is freed; neither is in a heap. */
static void join(struct rill__heap *heap, struct rill__block *block, struct rill__block *right) {
  block->count += right->count;
  block->right = right->right;
  if (right->right != NULL) right->right->left = block;
  free_block(heap, right);
}

/* Returns true if the block may be joined.  Blocks that were freed into a cache before its last batch become complete
 * before later blocks, and must not wait for these. */
static bool may_join(const struct rill__block *block, const struct rill__heap *heap) {
  return block != NULL && block->state == RILL__BLOCK_FREE && block->heap == heap && block->freed >= heap->joins_from;
}

void rill__heap_put(struct rill__heap *heap, struct rill__block *block, uint64_t freed) {
  struct rill__block *const left = block->left, *const right = block->right;
  const bool joins = freed >= heap->joins_from;
  enum { PLACES = 16 };
  if (joins && may_join(right, heap)) {
    /* The joined block completes when its later part does. */
    freed = right->freed > freed ? right->freed : freed;
    rill__heap_detach(right);
    join(heap, block, right);
  }
  if (joins && may_join(left, heap)) {
    freed = left->freed > freed ? left->freed : freed;
    rill__heap_detach(left);
    join(heap, left, block);
    block = left;
  }
  /* A free is rarely much older than the newest one, so the search for its place is short.  If the search takes too
   * long, the block gets the number of the newest free.  It is then only found complete later, but it may now have to
   * be joined with its neighbours, so this function starts again. */
  struct rill__block *older = heap->newest;
  for (int steps = 0; RILL__UNLIKELY(older != NULL && older->freed > freed); older = older->older) {
    if (++steps <= PLACES) continue;
    rill__heap_put(heap, block, heap->newest->freed);
    return;
  }
  block->freed = freed;
  attach(heap, block, older);
#if RILL_CHECKS
  rill__block_check(block);
#endif
}

/* ---- addresses ---- */

static uint64_t size_class_bit(uint32_t granule) { return UINT64_C(1) << granule % 64; }

/* `live`: the size in the lower bits, the offset in units of the least alignment above. */
enum { LIVE_SIZE_BITS = 56 };

static size_t live_size(uint64_t live) { return (size_t)(live & ((UINT64_C(1) << LIVE_SIZE_BITS) - 1)); }
static size_t live_offset(uint64_t live) { return (size_t)(live >> LIVE_SIZE_BITS) * RILL__LEAST_ALIGNMENT; }

static uintptr_t live_begin(const struct rill__segment *segment, uint32_t granule, uint64_t live) {
  return segment->allocation.begin + ((uintptr_t)granule << segment->shift) + live_offset(live);
}

/* Returns the number of granules that the block has only because of zones. */
static uint32_t zones_in(const struct rill__block *block, const struct rill__request *request) {
  struct rill__request bare = { .size = request->size, .alignment = request->alignment };
  (void)rill__request_round(&bare);
  const uint32_t count = (uint32_t)((bare.rounded + granule_bytes(block->segment->shift) - 1) >> block->segment->shift);
  return block->count > count ? block->count - count : 0;
}

void *rill__block_begin(struct rill__block *block, const struct rill__request *request) {
  struct rill__segment *segment = block->segment;
  const size_t offset = offset_in(block, request), inside = offset & (granule_bytes(segment->shift) - 1);
  const uint64_t live = request->size | (uint64_t)(inside / RILL__LEAST_ALIGNMENT) << LIVE_SIZE_BITS;
  block->start = block->first + (uint32_t)(offset >> segment->shift);
  block->zones = RILL__LIKELY(request->front == 0) ? 0 : zones_in(block, request);
  _Atomic uint64_t *starts = &segment->starts[block->start / 64];
  segment->block[block->start] = block;
  /* `live` is stored before its bit, so that a reader that sees the bit also sees the allocation. */
  atomic_store_explicit(&segment->live[block->start], live, memory_order_release);
  atomic_store_explicit(starts, atomic_load_explicit(starts, memory_order_relaxed) | size_class_bit(block->start),
                        memory_order_release);
  return (void *)live_begin(segment, block->start, live);
}

void rill__block_end(struct rill__block *block) {
  _Atomic uint64_t *starts = &block->segment->starts[block->start / 64];
  atomic_store_explicit(starts, atomic_load_explicit(starts, memory_order_relaxed) & ~size_class_bit(block->start),
                        memory_order_release);
}

/* Reads no block: blocks change under the lock, which this function does not take. */
bool rill__segment_find(const struct rill__segment *segment, const void *p, uintptr_t *begin, size_t *size) {
  const uintptr_t offset = (uintptr_t)p - segment->allocation.begin;
  const uint32_t granule = (uint32_t)(offset >> segment->shift);
  uint64_t mask = size_class_bit(granule) | (size_class_bit(granule) - 1);
  for (uint32_t word = granule / 64 + 1; word-- > 0; mask = ~UINT64_C(0)) {
    const uint64_t bits = atomic_load_explicit(&segment->starts[word], memory_order_acquire) & mask;
    if (bits == 0) continue;
    const uint32_t first = word * 64 + 63 - (uint32_t)__builtin_clzll(bits);
    const uint64_t live = atomic_load_explicit(&segment->live[first], memory_order_acquire);
    *begin = live_begin(segment, first, live);
    *size = live_size(live);
    return (uintptr_t)p - *begin < *size;
  }
  return false;
}

bool rill__segment_nearest(const struct rill__segment *segment, uintptr_t p, uintptr_t *begin, size_t *size) {
  uintptr_t least = UINTPTR_MAX;
  for (uint32_t i = 0; i < segment->granules && least > 0; i++) {
    const uint64_t live = atomic_load_explicit(&segment->live[i], memory_order_acquire);
    if (live == 0) continue;
    const uintptr_t start = live_begin(segment, i, live);
    const uintptr_t distance = rill__range_distance(start, live_size(live), p);
    if (distance >= least) continue;
    least = distance;
    *begin = start;
    *size = live_size(live);
  }
  return least != UINTPTR_MAX;
}

struct rill__block *rill__segment_block(const struct rill__segment *segment, uintptr_t begin) {
  const uint32_t granule = (uint32_t)((begin - segment->allocation.begin) >> segment->shift);
  const uint64_t live = atomic_load(&segment->live[granule]);
  return live != 0 && live_begin(segment, granule, live) == begin ? segment->block[granule] : NULL;
}

uint64_t rill__segment_claim(struct rill__segment *segment, uintptr_t begin, struct rill__block **block) {
  const uint32_t granule = (uint32_t)((begin - segment->allocation.begin) >> segment->shift);
  uint64_t live = atomic_load(&segment->live[granule]);
  *block = NULL;
  if (live == 0 || live_begin(segment, granule, live) != begin) return 0;
  /* The winner may read `block` without the lock: it stays valid until that thread ends the block. */
  if (!atomic_compare_exchange_strong(&segment->live[granule], &live, 0)) return 0;
  *block = segment->block[granule];
  return live;
}

void rill__segment_unclaim(struct rill__segment *segment, struct rill__block *block, uint64_t live) {
  atomic_store(&segment->live[block->start], live);
}
