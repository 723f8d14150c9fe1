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
static void fills_older_and_newer_structs(void) {
  assert_ok(rill_pool_create(dut.device, NULL, &sample));
  fills_grown_structs("rill_pool_get_info", call_with_info, sizeof(rill_pool_info));
  assert_ok(rill_pool_release(sample));
}

/* M12, M13: peaks only increase, and used <= used peak <= reserved peak. */
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

static rill_pool_info info_of(rill_pool pool) {
  rill_pool_info info = RILL_POOL_INFO_INIT;
  assert_ok(rill_pool_get_info(pool, &info));
  assert_int_equal(info.used + info.waiting + info.cached, info.reserved);
  return info;
}

/* C5.2: freed memory is counted as waiting until the work before its free and its recorded uses are complete, then as
 * cached. */
static void distinguishes_waiting_from_cached(void) {
  needs_plain_memory();
  enum { SIZE = 1 << 19 };
  rill_pool pool;
  rill_stream first = new_stream("first"), second = new_stream("second");
  void *p = NULL, *q = NULL;
  assert_ok(rill_pool_create(dut.device, NULL, &pool));
  assert_int_equal(info_of(pool).waiting, 0);
  assert_ok(rill_pool_alloc_async(pool, first, SIZE, &p));
  assert_ok(rill_pool_alloc_async(pool, first, SIZE, &q));
  assert_int_equal(info_of(pool).used, 2 * SIZE);
  assert_int_equal(info_of(pool).waiting, 0);

  struct gate *gate = gate_close(second);
  assert_ok(rill_memory_record_use(q, second));
  assert_ok(rill_free_async(second, p)); /* a free after the gate */
  assert_ok(rill_free_async(first, q));  /* a use after the gate */
  assert_int_equal(info_of(pool).used, 0);
  assert_int_equal(info_of(pool).waiting, 2 * SIZE);
  gate_open(gate);
  assert_completes(second);
  assert_int_equal(info_of(pool).waiting, 0);
  assert_int_equal(info_of(pool).cached, info_of(pool).reserved);

  assert_ok(rill_pool_trim(pool, 0));
  assert_int_equal(info_of(pool).reserved, 0);
  assert_ok(rill_pool_release(pool));
}

/* A free that is deferred while work is held counts as waiting. */
static void counts_deferred_frees_as_waiting(void) {
  needs_plain_memory();
  enum { SIZE = 1 << 19 };
  rill_pool pool;
  rill_stream stream = new_stream("stream"), held = new_stream("held");
  rill_event never = new_event("never");
  void *p = NULL;
  assert_ok(rill_pool_create(dut.device, NULL, &pool));
  assert_ok(rill_pool_alloc_async(pool, stream, SIZE, &p));
  assert_ok(rill_stream_synchronize(stream));
  assert_ok(rill_stream_wait_event(held, never, 0));
  assert_ok(rill_fill_async(held, p, &(uint32_t){ 1 }, 4, 1));
  assert_ok(rill_free(p));
  assert_int_equal(info_of(pool).used, 0);
  assert_int_equal(info_of(pool).waiting, SIZE);
  assert_ok(rill_stream_record_event(stream, never, 0));
  assert_completes(held);
  assert_ok(rill_pool_trim(pool, 0));
  assert_int_equal(info_of(pool).reserved, 0);
  assert_ok(rill_pool_release(pool));
}

TESTS_ON_EACH_DEVICE("rill_pool_get_info", TEST(refuses_bad_handles), TEST(fills_older_and_newer_structs),
                     TEST(counts_and_keeps_peaks), TEST(distinguishes_waiting_from_cached),
                     TEST(counts_deferred_frees_as_waiting))
