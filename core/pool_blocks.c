#include "core/pool_blocks.h"

#include <rill/memory.h>
#include <stdlib.h>

/* ---- bins ---- */

/* Sizes below 8 granules have a bin each; above, every power of two has four.  A bin holds blocks of its least size and
 * more, up to the next bin's. */
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
  block->state = RILL__BLOCK_FREE;
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

/* The first bin at or behind `bin` that is not empty, or RILL__BINS. */
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
  struct rill__block *block = heap->spare;
  if (block == NULL) return calloc(1, sizeof *block);
  heap->spare = block->next;
  return block;
}

static void free_block(struct rill__heap *heap, struct rill__block *block) {
  block->next = heap->spare;
  heap->spare = block;
}

void rill__heap_end(struct rill__heap *heap) {
  while (heap->spare != NULL) {
    struct rill__block *block = heap->spare;
    heap->spare = block->next;
    free(block);
  }
}

/* ---- segments ---- */

static size_t granule_bytes(unsigned shift) { return (size_t)1 << shift; }

bool rill__wish_round(struct rill__wish *wish) {
  const size_t extra = wish->alignment > RILL__LEAST_ALIGNMENT ? wish->alignment - RILL__LEAST_ALIGNMENT : 0;
  const size_t size = wish->size > SIZE_MAX - extra ? SIZE_MAX : wish->size + extra;
  wish->large = size > RILL__SMALL_MAX;
  const size_t granule = granule_bytes(wish->large ? RILL__LARGE_SHIFT : RILL__SMALL_SHIFT);
  wish->rounded = size > SIZE_MAX - granule ? 0 : (size + granule - 1) / granule * granule;
  return wish->rounded != 0 && wish->rounded >> RILL__LARGE_SHIFT <= UINT32_MAX / 2;
}

static void destroy_segment(struct rill__object *object) {
  struct rill__segment *segment = (struct rill__segment *)object;
  free(segment->whole);
  free(segment->block);
  free((void *)segment->live);
  free((void *)segment->begins);
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
  segment->whole = calloc(1, sizeof *segment->whole);
  segment->block = calloc(segment->granules, sizeof *segment->block);
  segment->live = calloc(segment->granules, sizeof *segment->live);
  segment->begins = calloc(segment->granules / 64 + 1, sizeof *segment->begins);
  if (segment->whole != NULL && segment->block != NULL && segment->live != NULL && segment->begins != NULL) {
    return segment;
  }
  rill__segment_free(segment);
  return NULL;
}

void rill__segment_free(struct rill__segment *segment) { rill__drop(&segment->allocation.base); }

void rill__heap_add(struct rill__heap *heap, struct rill__segment *segment, uint64_t freed) {
  struct rill__block *block = segment->whole;
  block->segment = segment;
  block->first = 0;
  block->count = segment->granules;
  block->freed = freed;
  segment->heap = heap;
  segment->next = heap->segments;
  segment->link = &heap->segments;
  if (segment->next != NULL) segment->next->link = &segment->next;
  heap->segments = segment;
  put_in_bin(heap, block);
}

bool rill__segment_is_free(const struct rill__segment *segment) {
  return segment->whole->state == RILL__BLOCK_FREE && segment->whole->count == segment->granules;
}

void rill__heap_remove(struct rill__segment *segment) {
  take_from_bin(atomic_load(&segment->heap), segment->whole);
  *segment->link = segment->next;
  if (segment->next != NULL) segment->next->link = segment->link;
}

/* ---- taking and giving ---- */

/* What is behind the first `count` granules of a block that is in no bin becomes another one, in no bin either; NULL
 * without a struct for it. */
static struct rill__block *split(struct rill__heap *heap, struct rill__block *block, uint32_t count) {
  struct rill__block *rest = new_block(heap);
  if (rest == NULL) return NULL;
  *rest = (struct rill__block){ .segment = block->segment,
                                .left = block,
                                .right = block->right,
                                .first = block->first + count,
                                .count = block->count - count,
                                .freed = block->freed };
  if (rest->right != NULL) rest->right->left = rest;
  block->right = rest;
  block->count = count;
  return rest;
}

/* Gives what is behind the first `count` granules back to the bins; if that cannot be, the block stays too large. */
static void cut(struct rill__heap *heap, struct rill__block *block, uint32_t count) {
  if (block->count == count) return;
  struct rill__block *rest = split(heap, block, count);
  if (rest != NULL) put_in_bin(heap, rest);
}

static uintptr_t begin_of(const struct rill__block *block) {
  return block->segment->allocation.begin + ((uintptr_t)block->first << block->segment->shift);
}

/* How far behind the begin of a block an allocation begins in it. */
static size_t offset_in(const struct rill__block *block, const struct rill__wish *wish) {
  return wish->alignment <= RILL__LEAST_ALIGNMENT ? 0 : (size_t)(-begin_of(block) & (wish->alignment - 1));
}

/* Gives the granules in front of where the allocation will begin back, and those behind its end; the block in between.
 * Without structs for that it stays as it is. */
static struct rill__block *cut_aligned(struct rill__heap *heap, struct rill__block *block,
                                       const struct rill__wish *wish) {
  const unsigned shift = block->segment->shift;
  const uint32_t front = (uint32_t)(offset_in(block, wish) >> shift);
  if (front > 0) {
    struct rill__block *rest = split(heap, block, front);
    if (rest == NULL) return block;
    put_in_bin(heap, block);
    block = rest;
  }
  cut(heap, block, (uint32_t)((offset_in(block, wish) + wish->size + granule_bytes(shift) - 1) >> shift));
  return block;
}

/* The bin of `count` itself has blocks that are too small beside those that fit; its first few are looked at for a
 * good fit.  From the next bin on all fit. */
static struct rill__block *find(struct rill__heap *heap, unsigned shift, uint32_t count) {
  enum { LOOKS = 8 };
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
  for (struct rill__block *block = bins->first[bin]; block != NULL; block = block->next) {
    if (block->count >= count) return block;
  }
  return NULL;
}

static struct rill__block *find_until(struct rill__heap *heap, unsigned shift, uint32_t count, uint64_t until) {
  const struct rill__bins *bins = bins_of(heap, shift);
  for (unsigned bin = next_bin(bins, bin_of(count)); bin < RILL__BINS; bin = next_bin(bins, bin + 1)) {
    for (struct rill__block *block = bins->first[bin]; block != NULL; block = block->next) {
      if (block->count >= count && block->freed <= until) return block;
    }
  }
  return NULL;
}

struct rill__block *rill__heap_take(struct rill__heap *heap, const struct rill__wish *wish, uint64_t until) {
  const unsigned shift = wish->large ? RILL__LARGE_SHIFT : RILL__SMALL_SHIFT;
  const uint32_t count = (uint32_t)(wish->rounded >> shift);
  struct rill__block *block = until == UINT64_MAX ? find(heap, shift, count) : find_until(heap, shift, count, until);
  if (block == NULL) return NULL;
  take_from_bin(heap, block);
  if (RILL__UNLIKELY(wish->alignment > RILL__LEAST_ALIGNMENT)) {
    block = cut_aligned(heap, block, wish);
  } else {
    cut(heap, block, count);
  }
  block->state = RILL__BLOCK_TAKEN;
  block->uses = NULL;
  return block;
}

/* Joins a block with the one to its right, whose struct goes. */
static void join(struct rill__heap *heap, struct rill__block *block, struct rill__block *right) {
  block->count += right->count;
  block->right = right->right;
  if (right->right != NULL) right->right->left = block;
  if (block->freed < right->freed) block->freed = right->freed;
  free_block(heap, right);
}

void rill__heap_give(struct rill__heap *heap, struct rill__block *block, uint64_t freed) {
  struct rill__block *left = block->left, *right = block->right;
  block->freed = freed;
  block->uses = NULL;
  if (right != NULL && right->state == RILL__BLOCK_FREE) {
    take_from_bin(heap, right);
    join(heap, block, right);
  }
  if (left != NULL && left->state == RILL__BLOCK_FREE) {
    take_from_bin(heap, left);
    join(heap, left, block);
    block = left;
  }
  put_in_bin(heap, block);
}

/* ---- addresses ---- */

static uint64_t bit_of(uint32_t granule) { return UINT64_C(1) << granule % 64; }

/* `live`: the size below, the offset in least alignments above. */
enum { LIVE_SIZE_BITS = 56 };

static size_t live_size(uint64_t live) { return (size_t)(live & ((UINT64_C(1) << LIVE_SIZE_BITS) - 1)); }
static size_t live_offset(uint64_t live) { return (size_t)(live >> LIVE_SIZE_BITS) * RILL__LEAST_ALIGNMENT; }

static uintptr_t live_begin(const struct rill__segment *segment, uint32_t granule, uint64_t live) {
  return segment->allocation.begin + ((uintptr_t)granule << segment->shift) + live_offset(live);
}

void *rill__block_begin(struct rill__block *block, const struct rill__wish *wish) {
  struct rill__segment *segment = block->segment;
  const size_t offset = offset_in(block, wish), inside = offset & (granule_bytes(segment->shift) - 1);
  const uint64_t live = wish->size | (uint64_t)(inside / RILL__LEAST_ALIGNMENT) << LIVE_SIZE_BITS;
  block->at = block->first + (uint32_t)(offset >> segment->shift);
  _Atomic uint64_t *begins = &segment->begins[block->at / 64];
  segment->block[block->at] = block;
  atomic_store_explicit(&segment->live[block->at], live, memory_order_release);
  atomic_store_explicit(begins, atomic_load_explicit(begins, memory_order_relaxed) | bit_of(block->at),
                        memory_order_release);
  return (void *)live_begin(segment, block->at, live);
}

void rill__block_end(struct rill__block *block) {
  _Atomic uint64_t *begins = &block->segment->begins[block->at / 64];
  atomic_store_explicit(begins, atomic_load_explicit(begins, memory_order_relaxed) & ~bit_of(block->at),
                        memory_order_release);
}

bool rill__segment_find(const struct rill__segment *segment, const void *p, uintptr_t *begin, size_t *size) {
  const uintptr_t offset = (uintptr_t)p - segment->allocation.begin;
  const uint32_t granule = (uint32_t)(offset >> segment->shift);
  uint64_t mask = bit_of(granule) | (bit_of(granule) - 1);
  for (uint32_t word = granule / 64 + 1; word-- > 0; mask = ~UINT64_C(0)) {
    const uint64_t bits = atomic_load_explicit(&segment->begins[word], memory_order_acquire) & mask;
    if (bits == 0) continue;
    const uint32_t first = word * 64 + 63 - (uint32_t)__builtin_clzll(bits);
    const uint64_t live = atomic_load_explicit(&segment->live[first], memory_order_acquire);
    *begin = live_begin(segment, first, live);
    *size = live_size(live);
    return (uintptr_t)p - *begin < *size;
  }
  return false;
}

uint64_t rill__segment_claim(struct rill__segment *segment, uintptr_t begin, struct rill__block **block) {
  const uint32_t granule = (uint32_t)((begin - segment->allocation.begin) >> segment->shift);
  uint64_t live = atomic_load(&segment->live[granule]);
  *block = NULL;
  if (live == 0 || live_begin(segment, granule, live) != begin) return 0;
  if (!atomic_compare_exchange_strong(&segment->live[granule], &live, 0)) return 0;
  *block = segment->block[granule];
  return live;
}

void rill__segment_unclaim(struct rill__segment *segment, struct rill__block *block, uint64_t live) {
  atomic_store(&segment->live[block->at], live);
}
