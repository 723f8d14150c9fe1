/* rill_pool_set_release_threshold */
#include "support/testing.h"

static rill_status call_with_pool(uint64_t id) { return rill_pool_set_release_threshold((rill_pool){ id }, 0); }

static void refuses_bad_handles(void) { refuses_bad_pools("rill_pool_set_release_threshold", call_with_pool); }

static uint64_t reserved(rill_pool pool) {
  rill_pool_info info = RILL_POOL_INFO_INIT;
  assert_ok(rill_pool_get_info(pool, &info));
  return info.reserved;
}

/* M12: free memory above the threshold is returned to the driver when the host synchronizes; without a threshold it is
 * kept. */
static void memory_above_the_threshold_is_freed(void) {
  rill_pool pool;
  rill_stream stream = new_stream("stream");
  void *p;
  uint64_t threshold = 0;
  assert_ok(rill_pool_create(dut.device, NULL, &pool));
  assert_ok(rill_pool_alloc_async(pool, stream, 100 << 20, &p));
  assert_ok(rill_free_async(stream, p));
  assert_completes(stream);
  assert_ok(rill_device_synchronize(dut.device));
  assert_true(reserved(pool) >= 100 << 20);
  assert_ok(rill_pool_set_release_threshold(pool, 1 << 20));
  assert_ok(rill_pool_release_threshold(pool, &threshold));
  assert_int_equal(threshold, 1 << 20);
  assert_ok(rill_device_synchronize(dut.device));
  assert_true(reserved(pool) <= 1 << 20);
  assert_ok(rill_pool_release(pool));
}

/* M12: every kind of host synchronization returns memory, even if the work was already complete; memory in use and the
 * peaks are kept. */
static void every_kind_of_synchronize_frees_memory(void) {
  enum { BYTES = 3 << 20 };
  for (int how = 0; how < 3; how++) {
    rill_pool pool;
    rill_stream stream = new_stream("stream");
    rill_event event = new_event("event");
    rill_pool_info info = RILL_POOL_INFO_INIT;
    void *p, *q;
    assert_ok(rill_pool_create(dut.device, RILL_POOL_OPTIONS(.release_threshold = 1), &pool));
    assert_ok(rill_pool_alloc_async(pool, stream, BYTES, &p));
    assert_ok(rill_pool_alloc_async(pool, stream, 64 * BYTES, &q));
    assert_ok(rill_stream_record_event(stream, event, 0));
    assert_completes(stream);
    assert_becomes_ready(event);
    const uint64_t both = reserved(pool);
    assert_ok(rill_free_async(stream, q));
    assert_int_equal(reserved(pool), both);
    assert_ok(how == 0   ? rill_stream_synchronize(stream)
              : how == 1 ? rill_event_synchronize(event)
                         : rill_device_synchronize(dut.device));
    assert_true(reserved(pool) >= BYTES && reserved(pool) < both);
    assert_ok(rill_pool_get_info(pool, &info));
    assert_int_equal(info.reserved_peak, both);
    assert_true(info.used >= BYTES && info.used_peak >= 65 * (uint64_t)BYTES && info.used_peak <= both);
    assert_ok(rill_free_async(stream, p));
    assert_ok(rill_stream_synchronize(stream));
    assert_int_equal(reserved(pool), 0);
    assert_ok(rill_pool_release(pool));
  }
}

/* M12: the threshold is not a lower bound: rill_pool_trim, and an allocation that needs the memory, return memory below
 * it. */
static void is_not_a_lower_bound(void) {
  needs_plain_memory();
  enum { MIB = 1 << 20 };
  rill_pool pool;
  rill_stream stream = new_stream("stream");
  void *p;
  assert_ok(rill_pool_create(dut.device, RILL_POOL_OPTIONS(.max_size = 8 * MIB, .release_threshold = 8 * MIB), &pool));
  assert_ok(rill_pool_alloc_async(pool, stream, 5 * MIB, &p));
  assert_ok(rill_free_async(stream, p));
  assert_completes(stream);
  assert_true(reserved(pool) >= 5 * MIB);
  assert_ok(rill_pool_alloc_async(pool, stream, 8 * MIB, &p));
  assert_int_equal(reserved(pool), 8 * MIB);
  assert_ok(rill_free_async(stream, p));
  assert_completes(stream);
  assert_int_equal(reserved(pool), 8 * MIB);
  assert_ok(rill_pool_trim(pool, 0));
  assert_int_equal(reserved(pool), 0);
  assert_ok(rill_pool_release(pool));
}

/* Returning memory does not make a synchronize wait for other streams. */
static void does_not_wait_for_other_streams(void) {
  rill_pool pool;
  rill_stream stream = new_stream("stream"), busy = new_stream("busy");
  void *p;
  assert_ok(rill_pool_create(dut.device, RILL_POOL_OPTIONS(.release_threshold = 1), &pool));
  assert_ok(rill_pool_alloc_async(pool, stream, 1 << 20, &p));
  assert_ok(rill_free_async(stream, p));
  struct gate *gate = gate_close(busy);
  write_cell(stream, 0, 1);
  assert_completes(stream);
  assert_false(is_complete(busy));
  gate_open(gate);
  assert_ok(rill_device_synchronize(dut.device));
  assert_int_equal(reserved(pool), 0);
  assert_ok(rill_pool_release(pool));
}

TESTS_ON_EACH_DEVICE("rill_pool_set_release_threshold", TEST(refuses_bad_handles),
                     TEST(memory_above_the_threshold_is_freed), TEST(every_kind_of_synchronize_frees_memory),
                     TEST(is_not_a_lower_bound), TEST(does_not_wait_for_other_streams))
