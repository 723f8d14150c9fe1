/* rill_memory_pool */
#include "support/testing.h"

static void refuses_null(void) {
  rill_pool out = { 1 };
  assert_fails(rill_memory_pool(NULL, &out), RILL_ERROR_INVALID_ARGUMENT);
  assert_int_equal(out.id, 0);
  assert_fails(rill_memory_pool(dut.memory, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

/* M15 */
static void finds_the_pool_of_every_byte(void) {
  rill_pool pool, out = { 1 };
  rill_stream stream = new_stream("stream");
  char *p;
  int local = 0;
  assert_ok(rill_pool_create(dut.device, NULL, &pool));
  assert_ok(rill_pool_alloc_async(pool, stream, 1000, (void **)&p));
  assert_ok(rill_memory_pool(p, &out));
  assert_true(rill_pool_equal(pool, out));
  assert_ok(rill_memory_pool(p + 999, &out));
  assert_true(rill_pool_equal(pool, out));
  assert_fails(rill_memory_pool(p + 1000, &out), RILL_ERROR_NOT_FOUND);
  assert_int_equal(out.id, 0);
  assert_fails(rill_memory_pool(&local, &out), RILL_ERROR_NOT_FOUND);
  assert_ok(rill_memory_pool(dut.memory, &out));
  assert_int_equal(out.id, 0);
  assert_ok(rill_free_async(stream, p));
  assert_fails(rill_memory_pool(p, &out), RILL_ERROR_NOT_FOUND);
  assert_ok(rill_pool_release(pool));
}

TESTS_ON_EACH_DEVICE("rill_memory_pool", TEST(refuses_null), TEST(finds_the_pool_of_every_byte))
