/* rill_pool_create */
#include "support/testing.h"

static rill_status call_with_device(uint64_t id) {
  rill_pool out = { 1 };
  const rill_status status = rill_pool_create((rill_device){ id }, NULL, &out);
  assert_int_equal(out.id, 0);
  return status;
}

static void refuses_bad_handles(void) { refuses_bad_devices("rill_pool_create", call_with_device); }

static void refuses_null_out(void) {
  assert_fails(rill_pool_create(dut.device, NULL, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

static rill_status call_with_pool_options(const void *options) {
  rill_pool pool;
  const rill_status status = rill_pool_create(dut.device, options, &pool);
  if (status == RILL_OK) assert_ok(rill_pool_release(pool));
  return status;
}

/* C1.4 */
static void accepts_older_and_newer_options(void) {
  const rill_pool_options options = { .struct_size = sizeof options, .max_size = 1 << 20 };
  takes_grown_options("rill_pool_create", call_with_pool_options, &options, sizeof options,
                      offsetof(rill_pool_options, max_size));
}

/* Each call creates a new, empty pool. */
static void pools_are_independent(void) {
  rill_pool first, second;
  rill_pool_info info = RILL_POOL_INFO_INIT;
  rill_stream stream = new_stream("stream");
  void *p;
  assert_ok(rill_pool_create(dut.device, RILL_POOL_OPTIONS(.label = "first"), &first));
  assert_ok(rill_pool_create(dut.device, NULL, &second));
  assert_false(rill_pool_equal(first, second));
  assert_ok(rill_pool_alloc_async(first, stream, 1000, &p));
  assert_ok(rill_pool_get_info(second, &info));
  assert_true(info.reserved == 0 && info.used == 0 && info.reserved_peak == 0 && info.used_peak == 0);
  assert_ok(rill_free_async(stream, p));
  assert_ok(rill_pool_release(first));
  assert_ok(rill_pool_release(second));
}

TESTS_ON_EACH_DEVICE("rill_pool_create", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(accepts_older_and_newer_options), TEST(pools_are_independent))
