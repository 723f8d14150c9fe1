/* rill_pool_default */
#include "support/testing.h"

GETTER_TESTS(device, rill_pool_default, rill_pool, dut.device)

/* C2.4: it is always the same, like the default stream, and borrowed (C1.3). */
static void is_always_the_same(void) {
  rill_pool first, second;
  assert_ok(rill_pool_default(dut.device, &first));
  assert_ok(rill_pool_release(first));
  assert_ok(rill_pool_default(dut.device, &second));
  assert_true(rill_pool_equal(first, second));
}

static void rill_alloc_async_takes_from_it(void) {
  rill_pool pool, of;
  void *p;
  rill_stream stream = new_stream("stream");
  assert_ok(rill_alloc_async(stream, 1000, &p));
  assert_ok(rill_pool_default(dut.device, &pool));
  assert_ok(rill_memory_pool(p, &of));
  assert_true(rill_pool_equal(pool, of));
  assert_ok(rill_free_async(stream, p));
}

TESTS_ON_EACH_DEVICE("rill_pool_default", TEST(refuses_bad_handles), TEST(refuses_null_out), TEST(is_always_the_same),
                     TEST(rill_alloc_async_takes_from_it))
