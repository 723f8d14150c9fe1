/* core/tracking/ranges.h: the map of allocations, compared with a plain list. */
#include "core/tracking/ranges.h"

#include "support/testing.h"

enum { PLACES = 64 };

static struct rill__allocation allocations[PLACES];
static bool is_in[PLACES];

/* Addresses are only numbers here; no memory is mapped. */
static void *at(uintptr_t address) { return (void *)address; }

static struct rill__allocation *find(uintptr_t address) {
  struct rill__thread *const self = rill__enter("find");
  struct rill__allocation *found = rill__ranges_find(at(address));
  rill__leave(&self);
  return found;
}

static struct rill__allocation *expected(uintptr_t address) {
  for (unsigned i = 0; i < PLACES; i++) {
    if (is_in[i] && address >= allocations[i].begin && address - allocations[i].begin < allocations[i].size) {
      return &allocations[i];
    }
  }
  return NULL;
}

static void check_around(const struct rill__allocation *allocation) {
  const uintptr_t begin = allocation->begin, end = begin + allocation->size;
  const uintptr_t addresses[] = { begin - 1,   begin,       begin + 1,
                                  begin + 255, begin + 256, begin + allocation->size / 2,
                                  end - 257,   end - 256,   end - 1,
                                  end,         end + 1,     end + 256 };
  for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
    assert_ptr_equal(find(addresses[i]), expected(addresses[i]));
  }
}

/* Checks the last range before an address that lies in no range, and the first one after it. */
static void check_neighbours(uintptr_t address) {
  struct rill__allocation *before = NULL, *after = NULL;
  if (expected(address) != NULL) return;
  for (unsigned i = 0; i < PLACES; i++) {
    struct rill__allocation *const other = &allocations[i];
    if (is_in[i] && other->begin < address && (before == NULL || before->begin < other->begin)) before = other;
    if (is_in[i] && other->begin > address && (after == NULL || after->begin > other->begin)) after = other;
  }
  assert_ptr_equal(rill__ranges_before(address), before);
  assert_ptr_equal(rill__ranges_after(address), after);
}

static void put_in(unsigned place) {
  assert_true(rill__ranges_insert(&allocations[place]));
  is_in[place] = true;
  check_around(&allocations[place]);
}

static void take_out(unsigned place) {
  rill__ranges_remove(&allocations[place]);
  is_in[place] = false;
  check_around(&allocations[place]);
}

/* Adds adjacent ranges of every size from a byte to terabytes, so that the borders of grains and spans fall at various
 * offsets. */
static void finds_every_size(void) {
  uintptr_t begin = UINT64_C(0x7f0000000000);
  unsigned place = 0;
  for (unsigned shift = 0; shift < 36; shift++, place++) {
    const size_t size = ((size_t)1 << shift) + (shift % 3 == 0 ? 0 : shift % 3 == 1 ? 1 : ((size_t)1 << shift) / 3);
    allocations[place] = (struct rill__allocation){ .begin = begin, .size = size };
    begin += (size + 511) / 256 * 256;
    put_in(place);
  }
  for (unsigned i = 0; i < place; i++) check_around(&allocations[i]);
  for (unsigned i = 0; i < place; i += 2) take_out(i);
  for (unsigned i = 0; i < place; i++) check_around(&allocations[i]);
  for (unsigned i = 1; i < place; i += 2) take_out(i);
}

static void neighbours_are_distinguished(void) {
  const uintptr_t begin = UINT64_C(0x10000);
  for (unsigned i = 0; i < PLACES; i++) {
    allocations[i] = (struct rill__allocation){ .begin = begin + i * 256, .size = i % 2 == 0 ? 256 : 100 };
    put_in(i);
  }
  for (uintptr_t a = begin - 300; a < begin + PLACES * 256 + 300; a++) assert_ptr_equal(find(a), expected(a));
  for (unsigned i = 0; i < PLACES; i++) take_out(i);
}

static void finds_nothing_elsewhere(void) {
  const uintptr_t addresses[] = { 0, 1, 255, UINT64_C(1) << 47, UINT64_C(1) << 48, UINTPTR_MAX - 1, UINTPTR_MAX };
  for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) assert_null(find(addresses[i]));
}

/* Adds ranges of different sizes at the same address, one after another. */
static void an_address_is_reused(void) {
  for (unsigned i = 0; i < 200; i++) {
    allocations[0] = (struct rill__allocation){ .begin = UINT64_C(0x600000000), .size = (size_t)1 << (i % 30) };
    put_in(0);
    take_out(0);
  }
}

/* Adds and removes disjoint ranges at random addresses, in random order. */
static void agrees_with_a_list(void) {
  unsigned random = 12345;
  for (unsigned i = 0; i < PLACES; i++) {
    allocations[i] = (struct rill__allocation){ .begin = (UINT64_C(1) << 40) + i * (UINT64_C(1) << 33), .size = 1 };
  }
  for (unsigned round = 0; round < scaled(3000); round++) {
    random = random * 1664525 + 1013904223;
    const unsigned place = (random >> 8) % PLACES;
    if (is_in[place]) {
      take_out(place);
    } else {
      allocations[place].size = 1 + (random >> 14) % (1u << (1 + (random >> 3) % 17)) * 64;
      put_in(place);
    }
    check_neighbours(allocations[(random >> 20) % PLACES].begin + (random >> 4) % (1 << 23) - (random >> 12) % 8);
  }
  for (unsigned i = 0; i < PLACES; i++) {
    if (is_in[i]) take_out(i);
  }
}

/* Registered ranges begin and end at any address, so several may share a grain. */
static void grains_are_shared(void) {
  const uintptr_t begin = UINT64_C(0x7fffdeadb001);
  static const size_t sizes[] = { 1, 2, 60, 100, 1, 254, 255, 256, 257, 300, 1, 1, 1000, 3, 70000, 5 };
  uintptr_t at = begin;
  unsigned count = 0;
  for (; count < PLACES; count++) {
    allocations[count] = (struct rill__allocation){ .begin = at, .size = sizes[count % 16] };
    at += sizes[count % 16] + (count % 5 == 0 ? 7 : 0);
  }
  /* added in an order that is neither ascending nor descending, and removed in another one */
  for (unsigned i = 0; i < count; i++) put_in(i * 29 % PLACES);
  for (uintptr_t a = begin - 300; a < begin + 4000; a++) {
    assert_ptr_equal(find(a), expected(a));
    check_neighbours(a);
  }
  const uintptr_t far[] = { 0, 1, 4095, UINT64_C(0xffffffffffff), UINT64_C(0x1000000000000), UINTPTR_MAX };
  for (size_t i = 0; i < sizeof far / sizeof *far; i++) check_neighbours(far[i]);
  for (unsigned i = 0; i < count; i++) {
    take_out(i * 43 % PLACES);
    for (uintptr_t a = begin - 3; a < begin + 3000; a += 5) assert_ptr_equal(find(a), expected(a));
  }
}

/* Adds adjacent allocations of 1 MiB and of 300 MiB that do not start at the border of a span. */
static void large_neighbours_are_distinguished(void) {
  const size_t sizes[] = { (size_t)1 << 20, (size_t)300 << 20 };
  for (int round = 0; round < 2; round++) {
    for (unsigned i = 0; i < 16; i++) {
      allocations[i] =
          (struct rill__allocation){ .begin = UINT64_C(0x7f0000001100) + i * sizes[round], .size = sizes[round] };
      put_in(i);
    }
    for (unsigned i = 0; i < 16; i++) check_around(&allocations[i]);
    for (unsigned i = 1; i < 16; i += 2) take_out(i);
    for (unsigned i = 0; i < 16; i++) check_around(&allocations[i]);
    for (unsigned i = 1; i < 16; i += 2) put_in(i);
    for (unsigned i = 0; i < 16; i++) take_out(i);
  }
}

static struct rill__allocation *overlapping_by_list(uintptr_t begin, size_t size) {
  for (unsigned i = 0; i < PLACES; i++) {
    if (is_in[i] && begin < allocations[i].begin + allocations[i].size && allocations[i].begin < begin + size) {
      return &allocations[i];
    }
  }
  return NULL;
}

/* Adds small ranges near the end of a leaf and large ranges, and looks for overlaps with ranges of every size. */
static void overlaps_are_found(void) {
  const uintptr_t begin = UINT64_C(0x55550003f000);
  unsigned random = 99;
  uintptr_t at = begin;
  for (unsigned i = 0; i < 40; i++) {
    random = random * 1664525 + 1013904223;
    at += (random >> 8) % 2000;
    allocations[i] = (struct rill__allocation){ .begin = at, .size = 1 + (random >> 12) % (i % 8 == 7 ? 900000 : 700) };
    at += allocations[i].size;
    put_in(i);
  }
  for (unsigned round = 0; round < scaled(20000); round++) {
    random = random * 1664525 + 1013904223;
    const uintptr_t from = begin - 5000 + (random >> 4) % (at - begin + 10000);
    random = random * 1664525 + 1013904223;
    const size_t size = 1 + (random >> 6) % (1u << (random >> 4) % 21);
    const struct rill__allocation *found = rill__ranges_overlapping(from, size);
    assert_int_equal(found != NULL, overlapping_by_list(from, size) != NULL);
    if (found != NULL) assert_true(from < found->begin + found->size && found->begin < from + size);
  }
  assert_null(rill__ranges_overlapping(UINTPTR_MAX, 1));
  assert_null(rill__ranges_overlapping(begin, SIZE_MAX));
  for (unsigned i = 0; i < 40; i++) take_out(i);
}

/* Ranges outside the map's addresses are refused. */
static void refuses_invalid_ranges(void) {
  const struct {
    uintptr_t begin;
    size_t size;
  } bad[] = {
    { 4096, 0 }, { UINT64_C(1) << 48, 1 }, { (UINT64_C(1) << 48) - 1, 2 }, { UINTPTR_MAX, 1 }, { 4096, SIZE_MAX }
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    allocations[0] = (struct rill__allocation){ .begin = bad[i].begin, .size = bad[i].size };
    assert_false(rill__ranges_insert(&allocations[0]));
  }
}

/* If memory was freed without notice and allocated again with other ranges, none of the old ranges remains. */
static void overlapping_ranges_leave_no_trace(void) {
  const struct {
    uintptr_t begin;
    size_t size;
  } pairs[][2] = {
    { { 0x700000100, 5000 }, { 0x700000100, 5000 } },       { { 0x700000100, 5000 }, { 0x700000050, 9000 } },
    { { 0x700000100, 5000000 }, { 0x700300000, 9000000 } }, { { 0x700000100, 50 }, { 0x700000120, 10 } },
    { { 0x700000000, 1 << 30 }, { 0x700000077, 100 } },
  };
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    for (unsigned first_out = 0; first_out < 2; first_out++) {
      for (unsigned j = 0; j < 2; j++) {
        allocations[j] = (struct rill__allocation){ .begin = pairs[i][j].begin, .size = pairs[i][j].size };
        assert_true(rill__ranges_insert(&allocations[j]));
      }
      rill__ranges_remove(&allocations[first_out]);
      rill__ranges_remove(&allocations[1 - first_out]);
      assert_null(rill__ranges_overlapping(0x700000000 - 1000, (size_t)2 << 30));
      for (uintptr_t a = 0x700000000; a < 0x700000000 + (1 << 24); a += 199) assert_null(find(a));
    }
  }
}

/* One range replaces another, as one of two imports of the same memory may replace the other, with any neighbours. */
static void one_range_replaces_another(void) {
  const size_t sizes[] = { 1, 300, 70000, (size_t)5 << 20 };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    const uintptr_t begin = UINT64_C(0x610000001000) - sizes[i] / 3;
    struct rill__allocation before = { .begin = begin - 50, .size = 50 },
                            after = { .begin = begin + sizes[i], .size = 9 };
    struct rill__allocation one = { .begin = begin, .size = sizes[i] }, other = one;
    for (int neighbours = 0; neighbours < 2; neighbours++) {
      assert_true(rill__ranges_insert(&one));
      if (neighbours == 1) assert_true(rill__ranges_insert(&before) && rill__ranges_insert(&after));
      rill__ranges_replace(&one, &other);
      assert_ptr_equal(find(begin), &other);
      assert_ptr_equal(find(begin + sizes[i] / 2), &other);
      assert_ptr_equal(find(begin + sizes[i] - 1), &other);
      assert_ptr_equal(find(begin - 1), neighbours == 1 ? &before : NULL);
      assert_ptr_equal(find(begin + sizes[i]), neighbours == 1 ? &after : NULL);
      rill__ranges_remove(&other);
      if (neighbours == 1) rill__ranges_remove(&before);
      if (neighbours == 1) rill__ranges_remove(&after);
      assert_null(rill__ranges_overlapping(begin - 1000, sizes[i] + 2000));
    }
  }
}

/* Neighbours are added and removed while other threads look up ranges that stay. */
static _Atomic bool going_on;

static const char *looks(unsigned index, void *shared) {
  (void)shared;
  if (index == 0) {
    for (unsigned round = 0; round < scaled(20000); round++) {
      const unsigned place = 1 + round * 7 % 31;
      if (is_in[place]) {
        rill__ranges_remove(&allocations[place]);
      } else {
        REQUIRE(rill__ranges_insert(&allocations[place]));
      }
      is_in[place] = !is_in[place];
    }
    for (unsigned i = 1; i < 32; i++) {
      if (is_in[i]) rill__ranges_remove(&allocations[i]);
      is_in[i] = false;
    }
    atomic_store(&going_on, false);
    return NULL;
  }
  while (atomic_load(&going_on)) {
    for (unsigned i = 0; i < 64; i += 32) {
      REQUIRE(find(allocations[i].begin) == &allocations[i]);
      REQUIRE(find(allocations[i].begin + allocations[i].size / 2) == &allocations[i]);
      REQUIRE(find(allocations[i].begin + allocations[i].size - 1) == &allocations[i]);
    }
  }
  return NULL;
}

static void remaining_ranges_are_always_found(void) {
  const size_t sizes[] = { 50, 300, 70000, (size_t)1 << 20 };
  for (size_t kind = 0; kind < sizeof sizes / sizeof *sizes; kind++) {
    for (unsigned i = 0; i < PLACES; i++) { /* adjacent; 0 and 32 are never removed */
      allocations[i] = (struct rill__allocation){
        .begin = UINT64_C(0x660000000033) + i % 32 * 2 * sizes[kind] + i / 32 * sizes[kind], .size = sizes[kind]
      };
    }
    assert_true(rill__ranges_insert(&allocations[0]));
    assert_true(rill__ranges_insert(&allocations[32]));
    atomic_store(&going_on, true);
    run_threads(3, looks, NULL);
    rill__ranges_remove(&allocations[0]);
    rill__ranges_remove(&allocations[32]);
  }
}

TESTS_ONCE("core/tracking/ranges.h", TEST(finds_every_size), TEST(neighbours_are_distinguished),
           TEST(finds_nothing_elsewhere), TEST(an_address_is_reused), TEST(agrees_with_a_list), TEST(grains_are_shared),
           TEST(large_neighbours_are_distinguished), TEST(overlaps_are_found), TEST(refuses_invalid_ranges),
           TEST(overlapping_ranges_leave_no_trace), TEST(one_range_replaces_another),
           TEST(remaining_ranges_are_always_found))
