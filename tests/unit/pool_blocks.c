/* core/pool/blocks.h: splitting and merging blocks, compared with a list of allocations. */
#include "core/pool/blocks.h"

#include "support/testing.h"

#include <rill/memory.h>

enum { PLACES = 48, GRANULES = 512 };

static struct rill__heap heap;
static struct rill__block *spares;
static struct rill__segment *segment;
static struct {
  uintptr_t begin;
  size_t size;
} allocations[PLACES];

static uintptr_t skew; /* offset of the segment's address */

static void open_heap(bool large) {
  memset(&heap, 0, sizeof heap);
  heap.spares = &spares;
  const size_t size = (size_t)GRANULES << (large ? RILL__LARGE_SHIFT : RILL__SMALL_SHIFT);
  segment = rill__segment_new(NULL, size, large, RILL_MEMORY_DEVICE);
  assert_non_null(segment);
  segment->allocation.begin = UINT64_C(0x7f0000000000) + skew; /* only a number; no memory is mapped there */
  rill__heap_add(&heap, segment);
  assert_ptr_equal(heap.segments, segment);
}

static void close_heap(void) {
  assert_ptr_equal(heap.segments, segment);
  assert_int_equal(heap.count, 1);
  rill__heap_remove(segment);
  assert_null(heap.segments);
  assert_null(heap.oldest);
  assert_null(heap.newest);
  assert_int_equal(heap.count, 0);
  rill__segment_free(segment);
  rill__spares_free(&spares);
}

static uintptr_t take(size_t size, size_t alignment) {
  struct rill__request request = { .size = size, .alignment = alignment };
  assert_true(rill__request_round(&request));
  request.large = segment->shift == RILL__LARGE_SHIFT;
  const size_t granule = (size_t)1 << segment->shift;
  request.rounded = (request.rounded + granule - 1) / granule * granule;
  struct rill__block *block = rill__heap_find(&heap, &request, false);
  return block == NULL ? 0 : (uintptr_t)rill__block_begin(rill__block_take(block, &request), &request);
}

static void give(uintptr_t begin, size_t size) {
  struct rill__block *block = NULL, *none = NULL;
  assert_int_equal(rill__segment_claim(segment, begin + 1, &none), 0);
  const uint64_t live = rill__segment_claim(segment, begin, &block);
  assert_int_equal(live & UINT64_C(0xffffffffffffff), size);
  assert_int_equal(rill__segment_claim(segment, begin, &none), 0);
  rill__segment_unclaim(segment, block, live);
  assert_int_equal(rill__segment_claim(segment, begin, &block), live);
  rill__block_end(block);
  rill__heap_put(&heap, block, 0);
}

/* Checks that the blocks cover the segment, and that no two free blocks are adjacent. */
static void check_order(void) {
  uint32_t at = 0;
  bool free_before = false;
  const struct rill__block *left = NULL;
  for (const struct rill__block *block = segment->leftmost; block != NULL; left = block, block = block->right) {
    assert_int_equal(block->first, at);
    assert_ptr_equal(block->left, left);
    assert_true(block->count > 0);
    const bool free = block->state == RILL__BLOCK_FREE;
    assert_false(free && free_before);
    free_before = free;
    at += block->count;
  }
  assert_int_equal(at, segment->granules);
}

static void check_address(uintptr_t address) {
  uintptr_t begin = 0;
  size_t size = 0;
  const bool found = rill__segment_find(segment, (void *)address, &begin, &size);
  for (unsigned i = 0; i < PLACES; i++) {
    if (allocations[i].size == 0 || address - allocations[i].begin >= allocations[i].size) continue;
    assert_true(found && begin == allocations[i].begin && size == allocations[i].size);
    return;
  }
  assert_false(found);
}

static void agrees_with_a_list(bool large) {
  unsigned random = 4711;
  open_heap(large);
  memset(allocations, 0, sizeof allocations);
  for (unsigned round = 0; round < scaled(20000); round++) {
    random = random * 1664525 + 1013904223;
    const unsigned place = (random >> 8) % PLACES;
    const size_t size = ((size_t)1 + (random >> 14) % (40u << 9)) << (large ? RILL__LARGE_SHIFT - 9 : 0);
    if (allocations[place].size != 0) {
      give(allocations[place].begin, allocations[place].size);
      allocations[place].size = 0;
    } else if ((!large && size <= RILL__SMALL_MAX) || (large && size > RILL__SMALL_MAX)) {
      const size_t alignment = round % 3 == 0 ? (size_t)1 << (random >> 9) % (large ? 21 : 16) : 1;
      const uintptr_t begin = take(size, alignment);
      if (begin == 0) continue;
      assert_int_equal(begin % alignment, 0);
      for (unsigned i = 0; i < PLACES; i++) {
        assert_true(allocations[i].size == 0 || begin + size <= allocations[i].begin ||
                    allocations[i].begin + allocations[i].size <= begin);
      }
      allocations[place].begin = begin;
      allocations[place].size = size;
      if (begin > segment->allocation.begin) check_address(begin - 1);
      check_address(begin);
      check_address(begin + size - 1);
      check_address(begin + size);
      check_address(begin + size / 2);
    }
    if (round % 64 == 0) check_order();
  }
  for (unsigned i = 0; i < PLACES; i++) {
    if (allocations[i].size != 0) give(allocations[i].begin, allocations[i].size);
    allocations[i].size = 0;
  }
  check_order();
  close_heap();
}

static void small_blocks_agree_with_a_list(void) { agrees_with_a_list(false); }
static void large_blocks_agree_with_a_list(void) { agrees_with_a_list(true); }

/* Drivers guarantee an alignment of 256 bytes, which is less than a granule. */
static void segments_may_begin_anywhere(void) {
  for (skew = RILL__LEAST_ALIGNMENT; skew < 40000; skew += 3 * RILL__LEAST_ALIGNMENT + 8192) {
    agrees_with_a_list(false);
    agrees_with_a_list(true);
  }
  skew = 0;
}

static void sizes_that_overflow_are_refused(void) {
  const size_t sizes[] = { SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2 };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    assert_false(rill__request_round(&(struct rill__request){ .size = sizes[i], .alignment = 1 }));
    assert_false(rill__request_round(&(struct rill__request){ .size = 1, .alignment = sizes[i] / 2 + 1 }));
    assert_false(rill__request_round(&(struct rill__request){ .size = sizes[i], .alignment = 4096 }));
    assert_false(rill__request_round(&(struct rill__request){ .size = sizes[i], .alignment = 1, .zone = 128 }));
  }
  struct rill__request request = { .size = 1, .alignment = 256 };
  assert_true(rill__request_round(&request));
  assert_true(!request.large && request.rounded == 512);
  request.size = RILL__SMALL_MAX + 1;
  assert_true(rill__request_round(&request));
  assert_true(request.large && request.rounded == RILL__SMALL_MAX + (1 << RILL__LARGE_SHIFT));
}

/* An allocation with a red zone ends that many bytes before the next one begins, and has the requested size. */
static void zones_lie_between(void) {
  enum { ZONE = 128 };
  open_heap(false);
  const size_t sizes[] = { 512, 384, 385, 1, 1024 };
  uintptr_t begins[5], begin = 0;
  size_t size = 0;
  for (int i = 0; i < 5; i++) {
    struct rill__request request = { .size = sizes[i], .alignment = i == 4 ? 1024 : 1, .zone = ZONE };
    assert_true(rill__request_round(&request));
    assert_true(request.rounded >= sizes[i] + ZONE);
    struct rill__block *block = rill__heap_find(&heap, &request, false);
    begins[i] = (uintptr_t)rill__block_begin(rill__block_take(block, &request), &request);
    if (i > 0) assert_true(begins[i] - begins[i - 1] >= sizes[i - 1] + ZONE);
    assert_false(rill__segment_find(segment, (void *)(begins[i] + sizes[i]), &begin, &size));
    assert_true(rill__segment_nearest(segment, begins[i] + sizes[i] + 3, &begin, &size));
    assert_true(begin == begins[i] && size == sizes[i]);
  }
  assert_true(rill__segment_nearest(segment, begins[1] - 1, &begin, &size));
  assert_int_equal(begin, begins[1]);
  for (int i = 0; i < 5; i++) give(begins[i], sizes[i]);
  assert_false(rill__segment_nearest(segment, begins[1], &begin, &size));
  close_heap();
}

static struct rill__block *take_block(struct rill__heap *from, size_t granules, bool thorough) {
  const struct rill__request request = { .size = granules * 512, .alignment = 1, .rounded = granules * 512 };
  struct rill__block *block = rill__heap_find(from, &request, thorough);
  return block == NULL ? NULL : rill__block_take(block, &request);
}

/* Blocks merge only with blocks of their own heap, and a merged block is as old as the most recently freed of its
 * parts. */
static void heaps_stay_separate(void) {
  struct rill__heap other = { .spares = &spares };
  open_heap(false);
  struct rill__block *blocks[4];
  for (int i = 0; i < 3; i++) blocks[i] = take_block(&heap, 4, false);
  blocks[3] = take_block(&heap, GRANULES - 12, false);
  assert_null(heap.oldest);
  rill__heap_put(&other, blocks[0], 5);
  rill__heap_put(&heap, blocks[1], 0);
  rill__heap_put(&other, blocks[3], 6);
  assert_int_equal(other.count, 2);
  assert_int_equal(heap.count, 1);
  assert_ptr_equal(other.oldest, blocks[0]);
  assert_ptr_equal(other.newest, blocks[3]);
  assert_null(take_block(&heap, 5, false));
  assert_ptr_equal(take_block(&heap, 4, false), blocks[1]);
  rill__heap_put(&other, blocks[1], 7); /* merges with block 0 on its left */
  assert_int_equal(other.count, 2);
  assert_ptr_equal(other.oldest, blocks[3]);
  assert_int_equal(other.newest->count, 8);
  assert_int_equal(other.newest->freed, 7);
  rill__heap_put(&other, blocks[2], 8); /* merges all of them */
  assert_int_equal(other.count, 1);
  assert_ptr_equal(other.segments, segment);
  rill__heap_detach(segment->leftmost);
  assert_null(other.segments);
  rill__heap_put(&heap, segment->leftmost, 0);
  close_heap();
}

/* A part that is split off a block has the age of the block: the order by age is kept. */
static void parts_keep_their_age(void) {
  open_heap(false);
  struct rill__block *first = take_block(&heap, 8, false), *between = take_block(&heap, 1, false);
  struct rill__block *second = take_block(&heap, 100, false), *rest = take_block(&heap, GRANULES - 109, false);
  rill__heap_put(&heap, second, 1);
  rill__heap_put(&heap, first, 2);
  assert_ptr_equal(take_block(&heap, 60, false), second);
  assert_int_equal(heap.oldest->count, 40);
  assert_int_equal(heap.oldest->freed, 1);
  assert_ptr_equal(heap.newest, first);
  rill__heap_put(&heap, second, 3);
  rill__heap_put(&heap, rest, 4);
  rill__heap_put(&heap, between, 5);
  close_heap();
}

/* Among many blocks that are slightly too small, a block that is large enough may be skipped, but not forever. */
static void a_thorough_search_finds_any_block(void) {
  enum { PAIRS = 10 };
  struct rill__block *blocks[PAIRS], *between[PAIRS];
  open_heap(false);
  for (unsigned i = 0; i < PAIRS; i++) {
    blocks[i] = take_block(&heap, i == 0 ? 19 : 16, false);
    between[i] = take_block(&heap, 1, false);
  }
  struct rill__block *rest = take_block(&heap, GRANULES - 17 * PAIRS - 3, false);
  for (unsigned i = 0; i < PAIRS; i++) rill__heap_put(&heap, blocks[i], i);
  assert_null(take_block(&heap, 19, false));
  assert_ptr_equal(take_block(&heap, 19, true), blocks[0]);
  rill__heap_put(&heap, blocks[0], 0);
  rill__heap_put(&heap, rest, 0);
  for (unsigned i = 0; i < PAIRS; i++) rill__heap_put(&heap, between[i], 0);
  close_heap();
}

/* The memory before and after an aligned allocation can be allocated. */
static void alignment_wastes_less_than_a_granule(void) {
  open_heap(false);
  const uintptr_t first = take(512, 1), aligned = take(512, 65536), between = take(65536 - 512, 1);
  assert_int_equal(aligned % 65536, 0);
  assert_true(between > first && between + 65536 - 512 == aligned);
  give(first, 512);
  give(between, 65536 - 512);
  give(aligned, 512);
  close_heap();
}

TESTS_ONCE("core/pool/blocks.h", TEST(small_blocks_agree_with_a_list), TEST(large_blocks_agree_with_a_list),
           TEST(segments_may_begin_anywhere), TEST(sizes_that_overflow_are_refused), TEST(zones_lie_between),
           TEST(heaps_stay_separate), TEST(parts_keep_their_age), TEST(a_thorough_search_finds_any_block),
           TEST(alignment_wastes_less_than_a_granule))
