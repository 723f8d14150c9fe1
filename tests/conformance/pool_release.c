/* rill_pool_release */
#include "support/testing.h"

/* C1.3 */
static void does_nothing_for_zero(void) {
  spoil_last_error();
  assert_ok(rill_pool_release(RILL_NULL_POOL));
  assert_says("rill_device_count");
}

static void refuses_invalid_handles(void) {
  const uint64_t none[] = { 1, UINT64_MAX, dut.device.id, new_stream("stream").id };
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    assert_fails(rill_pool_release((rill_pool){ none[i] }), RILL_ERROR_INVALID_HANDLE);
  }
}

static void leaves_a_stale_handle(void) {
  rill_pool pool;
  void *out = &out;
  assert_ok(rill_pool_create(dut.device, NULL, &pool));
  assert_ok(rill_pool_release(pool));
  assert_fails(rill_pool_release(pool), RILL_ERROR_STALE_HANDLE);
  assert_fails(rill_pool_alloc_async(pool, new_stream("stream"), 1, &out), RILL_ERROR_STALE_HANDLE);
  assert_null(out);
}

/* M14: allocations outlive the handle. */
static void allocations_stay_valid(void) {
  rill_pool pool;
  rill_stream stream = new_stream("stream");
  uint32_t *p, *q;
  const uint32_t value = 11;
  assert_ok(rill_pool_create(dut.device, NULL, &pool));
  assert_ok(rill_pool_alloc_async(pool, stream, 4096, (void **)&p));
  assert_ok(rill_pool_alloc_async(pool, stream, 4096, (void **)&q));
  assert_ok(rill_pool_release(pool));
  assert_ok(rill_fill_async(stream, p, &value, 4, 1024));
  assert_ok(rill_copy_async(stream, dut.host, p + 1023, 4));
  assert_ok(rill_free_async(stream, p));
  assert_completes(stream);
  assert_int_equal(dut.host[0], value);
  assert_ok(rill_free(q));
  assert_fails(rill_free(q), RILL_ERROR_NOT_FOUND);
}

/* C1.3: the release does not wait for work before a free. */
static void does_not_wait_for_work(void) {
  rill_pool pool;
  rill_stream stream = new_stream("stream");
  void *p;
  assert_ok(rill_pool_create(dut.device, NULL, &pool));
  assert_ok(rill_pool_alloc_async(pool, stream, 4096, &p));
  struct gate *gate = gate_close(stream);
  assert_ok(rill_free_async(stream, p));
  assert_ok(rill_pool_release(pool));
  assert_false(is_complete(stream));
  gate_open(gate);
}

static void many_are_created_and_released(void) {
  rill_stream stream = new_stream("stream");
  for (unsigned i = 0; i < scaled(100); i++) {
    rill_pool pool;
    void *p;
    assert_ok(rill_pool_create(dut.device, RILL_POOL_OPTIONS(.label = "one of many"), &pool));
    assert_ok(rill_pool_alloc_async(pool, stream, 1000 * i + 1, &p));
    assert_ok(rill_pool_release(pool));
    assert_ok(rill_free_async(stream, p));
    if (i % 10 == 0) assert_completes(stream);
  }
}

TESTS_ON_EACH_DEVICE("rill_pool_release", TEST(does_nothing_for_zero), TEST(refuses_invalid_handles),
                     TEST(leaves_a_stale_handle), TEST(allocations_stay_valid), TEST(does_not_wait_for_work),
                     TEST(many_are_created_and_released))
