/* core/pool_blocks.h: cutting and joining, against the list of what is allocated. */
#include "core/pool_blocks.h"

#include "support/testing.h"

#include <rill/memory.h>

enum { PLACES = 48, GRANULES = 512 };

static struct rill__heap heap;
static struct rill__segment *segment;
static struct {
  uintptr_t begin;
  size_t size;
} allocations[PLACES];

static uintptr_t skew; /* of where the segment begins */

static void open_heap(bool large) {
  memset(&heap, 0, sizeof heap);
  const size_t size = (size_t)GRANULES << (large ? RILL__LARGE_SHIFT : RILL__SMALL_SHIFT);
  segment = rill__segment_new(NULL, size, large, RILL_MEMORY_DEVICE);
  assert_non_null(segment);
  segment->allocation.begin = UINT64_C(0x7f0000000000) + skew; /* nothing is there; only numbers */
  rill__heap_add(&heap, segment, 0);
}

static void close_heap(void) {
  assert_true(rill__segment_is_free(segment));
  rill__heap_remove(segment);
  assert_null(heap.segments);
  rill__segment_free(segment);
  rill__heap_end(&heap);
}

static uintptr_t take(size_t size, size_t alignment) {
  struct rill__wish wish = { .size = size, .alignment = alignment };
  assert_true(rill__wish_round(&wish));
  wish.large = segment->shift == RILL__LARGE_SHIFT;
  const size_t granule = (size_t)1 << segment->shift;
  wish.rounded = (wish.rounded + granule - 1) / granule * granule;
  struct rill__block *block = rill__heap_take(&heap, &wish, UINT64_MAX);
  return block == NULL ? 0 : (uintptr_t)rill__block_begin(block, &wish);
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
  rill__heap_give(&heap, block, 0);
}

/* The blocks cover the segment, and no two free ones are neighbours. */
static void check_order(void) {
  uint32_t at = 0;
  bool free_before = false;
  const struct rill__block *left = NULL;
  for (const struct rill__block *block = segment->whole; block != NULL; left = block, block = block->right) {
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

/* Drivers promise 256 bytes, fewer than a granule has. */
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
    assert_false(rill__wish_round(&(struct rill__wish){ .size = sizes[i], .alignment = 1 }));
    assert_false(rill__wish_round(&(struct rill__wish){ .size = 1, .alignment = sizes[i] / 2 + 1 }));
    assert_false(rill__wish_round(&(struct rill__wish){ .size = sizes[i], .alignment = 4096 }));
  }
  struct rill__wish wish = { .size = 1, .alignment = 256 };
  assert_true(rill__wish_round(&wish));
  assert_true(!wish.large && wish.rounded == 512);
  wish.size = RILL__SMALL_MAX + 1;
  assert_true(rill__wish_round(&wish));
  assert_true(wish.large && wish.rounded == RILL__SMALL_MAX + (1 << RILL__LARGE_SHIFT));
}

static struct rill__block *take_until(size_t size, uint64_t until) {
  const struct rill__wish wish = { .size = size, .alignment = 1, .rounded = size };
  return rill__heap_take(&heap, &wish, until);
}

/* A block is taken only if it was last freed early enough, and joined blocks are as old as the younger one. */
static void the_last_free_counts(void) {
  open_heap(false);
  struct rill__block *first = take_until(1024, UINT64_MAX);
  struct rill__block *second = take_until((GRANULES - 2) * 512, UINT64_MAX);
  assert_non_null(second);
  assert_null(take_until(512, UINT64_MAX));
  rill__heap_give(&heap, first, 5);
  assert_null(take_until(1024, 4));
  first = take_until(1024, 5);
  assert_non_null(first);
  rill__heap_give(&heap, second, 3);
  rill__heap_give(&heap, first, 7);
  assert_true(rill__segment_is_free(segment));
  assert_null(take_until(512, 6));
  close_heap();
}

/* What lies in front of an aligned allocation, and behind it, serves others. */
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

int main(void) {
  static const struct test tests[] = {
    TEST(small_blocks_agree_with_a_list), TEST(large_blocks_agree_with_a_list),
    TEST(segments_may_begin_anywhere),    TEST(sizes_that_overflow_are_refused),
    TEST(the_last_free_counts),           TEST(alignment_wastes_less_than_a_granule),
  };
  return RUN_ONCE("core/pool_blocks.h", tests);
}
