/* rill_pool_reset_peaks */
#include "support/testing.h"

static rill_status call_with_pool(uint64_t id) { return rill_pool_reset_peaks((rill_pool){ id }); }

static void refuses_bad_handles(void) { refuses_bad_pools("rill_pool_reset_peaks", call_with_pool); }

static rill_pool_info look(rill_pool pool) {
  rill_pool_info info = RILL_POOL_INFO_INIT;
  assert_ok(rill_pool_get_info(pool, &info));
  return info;
}

/* C5.2 */
static void restarts_from_current_use(void) {
  const rill_stream stream = new_stream("stream");
  rill_pool pool;
  void *p, *q;
  assert_ok(rill_pool_create(dut.device, NULL, &pool));
  assert_ok(rill_pool_alloc_async(pool, stream, 3 << 20, &p));
  assert_ok(rill_pool_alloc_async(pool, stream, 90 << 20, &q));
  const rill_pool_info most = look(pool);
  assert_int_equal(most.used_peak, most.used);
  assert_ok(rill_free_async(stream, q));
  assert_completes(stream);
  assert_ok(rill_pool_trim(pool, 0));
  const rill_pool_info before = look(pool);
  assert_int_equal(before.used_peak, most.used_peak);
  assert_int_equal(before.reserved_peak, most.reserved_peak);
  assert_ok(rill_pool_reset_peaks(pool));
  const rill_pool_info after = look(pool);
  assert_int_equal(after.used, before.used);
  assert_int_equal(after.used_peak, after.used);
  assert_int_equal(after.reserved_peak, after.reserved);
  assert_true(after.used_peak < most.used_peak && after.reserved_peak < most.reserved_peak);
  assert_ok(rill_pool_alloc_async(pool, stream, 30 << 20, &q));
  const rill_pool_info again = look(pool);
  assert_int_equal(again.used_peak, again.used);
  assert_true(again.reserved_peak >= again.used_peak);
  assert_ok(rill_free_async(stream, q));
  assert_ok(rill_free_async(stream, p));
  assert_ok(rill_pool_release(pool));
}

TESTS_ON_EACH_DEVICE("rill_pool_reset_peaks", TEST(refuses_bad_handles), TEST(restarts_from_current_use))
