/* core/ranges.h: the map of allocations, against a plain list. */
#include "core/ranges.h"

#include "support/testing.h"

enum { PLACES = 64 };

static struct rill__allocation allocations[PLACES];
static bool is_in[PLACES];

/* Addresses are only numbers here; nothing is at them. */
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

/* Every size from a byte to terabytes, one behind the other, each grain and span boundary somewhere. */
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

static void neighbours_are_told_apart(void) {
  const uintptr_t begin = UINT64_C(0x10000);
  for (unsigned i = 0; i < PLACES; i++) {
    allocations[i] = (struct rill__allocation){ .begin = begin + i * 256, .size = i % 2 == 0 ? 256 : 100 };
    put_in(i);
  }
  for (uintptr_t a = begin - 300; a < begin + PLACES * 256 + 300; a++) assert_ptr_equal(find(a), expected(a));
  for (unsigned i = 0; i < PLACES; i++) take_out(i);
}

static void there_is_nothing_elsewhere(void) {
  const uintptr_t addresses[] = { 0, 1, 255, UINT64_C(1) << 47, UINT64_C(1) << 48, UINTPTR_MAX - 1, UINTPTR_MAX };
  for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) assert_null(find(addresses[i]));
}

/* The same address again and again, with other sizes. */
static void an_address_is_used_again(void) {
  for (unsigned i = 0; i < 200; i++) {
    allocations[0] = (struct rill__allocation){ .begin = UINT64_C(0x600000000), .size = (size_t)1 << (i % 30) };
    put_in(0);
    take_out(0);
  }
}

/* Random places in a space that does not overlap, random order. */
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
  }
  for (unsigned i = 0; i < PLACES; i++) {
    if (is_in[i]) take_out(i);
  }
}

int main(void) {
  static const struct test tests[] = {
    TEST(finds_every_size),         TEST(neighbours_are_told_apart), TEST(there_is_nothing_elsewhere),
    TEST(an_address_is_used_again), TEST(agrees_with_a_list),
  };
  return RUN_ONCE("core/ranges.h", tests);
}
