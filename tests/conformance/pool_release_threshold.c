/* rill_pool_release_threshold */
#include "support/testing.h"

static rill_pool new_pool(void) {
  rill_pool pool;
  assert_ok(rill_pool_create(dut.device, RILL_POOL_OPTIONS(.release_threshold = 12345678), &pool));
  return pool;
}

static rill_pool live;
GETTER_TESTS(pool, rill_pool_release_threshold, uint64_t, live)

static void returns_what_was_requested(void) {
  uint64_t out = 1;
  rill_pool standard, pool = new_pool();
  assert_ok(rill_pool_release_threshold(pool, &out));
  assert_int_equal(out, 12345678);
  assert_ok(rill_pool_release(pool));
  assert_ok(rill_pool_default(dut.device, &standard));
  assert_ok(rill_pool_release_threshold(standard, &out));
  assert_int_equal(out, 0);
}

static void begins(void) { assert_ok(rill_pool_default(dut.device, &live)); }

TESTS_ON_EACH_DEVICE("rill_pool_release_threshold", TEST(begins), TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(returns_what_was_requested))
