/* rill_pool_retain */
#include "support/testing.h"

static rill_status call_with_pool(uint64_t id) { return rill_pool_retain((rill_pool){ id }); }

static void refuses_bad_handles(void) { refuses_bad_pools("rill_pool_retain", call_with_pool); }

/* C1.3 */
static void counts(void) {
  rill_pool pool;
  assert_ok(rill_pool_create(dut.device, NULL, &pool));
  assert_ok(rill_pool_retain(pool));
  assert_ok(rill_pool_release(pool));
  assert_ok(rill_pool_trim(pool, 0));
  assert_ok(rill_pool_release(pool));
  assert_fails(rill_pool_retain(pool), RILL_ERROR_STALE_HANDLE);
}

TESTS_ON_EACH_DEVICE("rill_pool_retain", TEST(refuses_bad_handles), TEST(counts))
