/* rill_pool_get_info */
#include "support/testing.h"

static rill_status call_with_pool(uint64_t id) {
  rill_pool_info info;
  memset(&info, 1, sizeof info);
  info.struct_size = sizeof info;
  const rill_status status = rill_pool_get_info((rill_pool){ id }, &info);
  const rill_pool_info none = RILL_POOL_INFO_INIT;
  assert_memory_equal(&info, &none, sizeof info);
  return status;
}

static void refuses_bad_handles(void) { refuses_bad_pools("rill_pool_get_info", call_with_pool); }

static rill_pool sample;

static rill_status call_with_info(void *info) { return rill_pool_get_info(sample, info); }

/* C1.4 */
static void fills_grown_infos(void) {
  assert_ok(rill_pool_create(dut.device, NULL, &sample));
  fills_grown_structs("rill_pool_get_info", call_with_info, sizeof(rill_pool_info));
  assert_ok(rill_pool_release(sample));
}

/* M12, M13: peaks only rise, and used <= its peak <= the peak of what is reserved. */
static void counts_and_keeps_peaks(void) {
  rill_pool pool;
  rill_stream stream = new_stream("stream");
  rill_pool_info now = RILL_POOL_INFO_INIT, before = RILL_POOL_INFO_INIT;
  void *pointers[20];
  size_t asked = 0;
  assert_ok(rill_pool_create(dut.device, NULL, &pool));
  for (unsigned i = 0; i < 40; i++) {
    if (i < 20) {
      assert_ok(rill_pool_alloc_async(pool, stream, 100 + 50000 * i, &pointers[i]));
      asked += 100 + 50000 * i;
    } else {
      assert_ok(rill_free_async(stream, pointers[i - 20]));
      asked -= 100 + 50000 * (i - 20);
    }
    assert_ok(rill_pool_get_info(pool, &now));
    assert_true(now.used >= asked && now.used <= now.reserved);
    assert_true(now.used <= now.used_peak && now.used_peak <= now.reserved_peak && now.reserved <= now.reserved_peak);
    assert_true(now.used_peak >= before.used_peak && now.reserved_peak >= before.reserved_peak);
    before = now;
  }
  assert_int_equal(now.used, 0);
  assert_ok(rill_pool_release(pool));
}

TESTS_ON_EACH_DEVICE("rill_pool_get_info", TEST(refuses_bad_handles), TEST(fills_grown_infos),
                     TEST(counts_and_keeps_peaks))
