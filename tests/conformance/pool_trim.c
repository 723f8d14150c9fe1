/* rill_pool_trim */
#include "support/testing.h"

static rill_status call_with_pool(uint64_t id) { return rill_pool_trim((rill_pool){ id }, 0); }

static void refuses_bad_handles(void) { refuses_bad_pools("rill_pool_trim", call_with_pool); }

static uint64_t reserved(rill_pool pool) {
  rill_pool_info info = RILL_POOL_INFO_INIT;
  assert_ok(rill_pool_get_info(pool, &info));
  return info.reserved;
}

/* M12: trims to 0 and to a larger size; memory in use is kept. */
static void frees_unused_memory(void) {
  rill_pool pool;
  rill_stream stream = new_stream("stream");
  void *p, *q;
  assert_ok(rill_pool_create(dut.device, NULL, &pool));
  assert_ok(rill_pool_trim(pool, 0));
  assert_ok(rill_pool_alloc_async(pool, stream, 3 << 20, &p));
  assert_ok(rill_pool_alloc_async(pool, stream, 90 << 20, &q));
  const uint64_t both = reserved(pool);
  assert_ok(rill_pool_trim(pool, 0));
  assert_int_equal(reserved(pool), both);
  assert_ok(rill_free_async(stream, q));
  assert_completes(stream);
  assert_ok(rill_pool_trim(pool, both));
  assert_int_equal(reserved(pool), both);
  assert_ok(rill_pool_trim(pool, 0));
  assert_true(reserved(pool) < both && reserved(pool) >= 3 << 20);
  assert_ok(rill_free_async(stream, p));
  assert_completes(stream);
  assert_ok(rill_pool_trim(pool, 0));
  assert_int_equal(reserved(pool), 0);
  assert_ok(rill_pool_alloc_async(pool, stream, 3 << 20, &p));
  assert_ok(rill_free_async(stream, p));
  assert_ok(rill_pool_release(pool));
}

/* Memory that work may still use is kept, and the call does not wait for the work. */
static void keeps_memory_in_use(void) {
  rill_pool pool;
  rill_stream stream = new_stream("stream");
  void *p;
  assert_ok(rill_pool_create(dut.device, NULL, &pool));
  assert_ok(rill_pool_alloc_async(pool, stream, 3 << 20, &p));
  struct gate *gate = gate_close(stream);
  assert_ok(rill_free_async(stream, p));
  assert_ok(rill_pool_trim(pool, 0));
  assert_true(reserved(pool) >= 3 << 20);
  gate_open(gate);
  assert_completes(stream);
  assert_ok(rill_pool_trim(pool, 0));
  assert_int_equal(reserved(pool), 0);
  assert_ok(rill_pool_release(pool));
}

TESTS_ON_EACH_DEVICE("rill_pool_trim", TEST(refuses_bad_handles), TEST(frees_unused_memory), TEST(keeps_memory_in_use))
