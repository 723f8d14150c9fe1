/* rill_pool_kind, and the memory of pools of each kind */
#include "support/testing.h"

static rill_pool live;
GETTER_TESTS(pool, rill_pool_kind, uint32_t, live)

static void begins(void) { assert_ok(rill_pool_default(dut.device, &live)); }

static const uint32_t kinds[] = { RILL_MEMORY_DEVICE, RILL_MEMORY_PINNED, RILL_MEMORY_MANAGED };

static bool has_kind(uint32_t kind) {
  return kind != RILL_MEMORY_MANAGED || rill_device_supports(dut.device, RILL_FEATURE_MANAGED, NULL);
}

static rill_pool new_pool(uint32_t kind) {
  rill_pool pool;
  assert_ok(rill_pool_create(dut.device, RILL_POOL_OPTIONS(.kind = kind, .label = "of a kind"), &pool));
  return pool;
}

/* 0 is device memory, like that of the default pool. */
static void returns_what_was_requested(void) {
  uint32_t out = 0;
  assert_ok(rill_pool_kind(live, &out));
  assert_int_equal(out, RILL_MEMORY_DEVICE);
  for (size_t i = 0; i < 3; i++) {
    if (!has_kind(kinds[i])) continue;
    rill_pool pool = new_pool(kinds[i]);
    assert_ok(rill_pool_kind(pool, &out));
    assert_int_equal(out, kinds[i]);
    assert_ok(rill_pool_release(pool));
  }
  rill_pool pool = new_pool(RILL_MEMORY_UNKNOWN);
  assert_ok(rill_pool_kind(pool, &out));
  assert_int_equal(out, RILL_MEMORY_DEVICE);
  assert_ok(rill_pool_release(pool));
}

/* R8, C1.8: unknown kinds, and kinds that the device lacks. */
static void refuses_unknown_kinds(void) {
  const uint32_t bad[] = { RILL_MEMORY_REGISTERED, 5, UINT32_MAX };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    rill_pool pool = { 1 };
    assert_fails(rill_pool_create(dut.device, RILL_POOL_OPTIONS(.kind = bad[i]), &pool), RILL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(pool.id, 0);
  }
  if (has_kind(RILL_MEMORY_MANAGED)) return;
  rill_pool pool = { 1 };
  assert_fails(rill_pool_create(dut.device, RILL_POOL_OPTIONS(.kind = RILL_MEMORY_MANAGED), &pool),
               RILL_ERROR_UNSUPPORTED);
  assert_int_equal(pool.id, 0);
  assert_says(dut.name);
}

/* C5.2, M15, M17: the memory has the pool's kind, and the host can access it if this kind allows it. */
static void allocates_memory_of_its_kind(void) {
  enum { WORDS = 100000 };
  for (size_t i = 0; i < 3; i++) {
    if (!has_kind(kinds[i])) continue;
    rill_pool pool = new_pool(kinds[i]), of;
    rill_stream stream = new_stream("stream");
    rill_memory_info info = RILL_MEMORY_INFO_INIT;
    uint32_t *p = NULL;
    const uint32_t value = 77;
    assert_ok(rill_pool_alloc_async(pool, stream, WORDS * sizeof *p, (void **)&p));
    assert_ok(rill_memory_get_info(p + WORDS - 1, &info));
    assert_int_equal(info.kind, kinds[i]);
    assert_ptr_equal(info.base, p);
    assert_int_equal(info.size, WORDS * sizeof *p);
    assert_true(rill_device_equal(info.device, dut.device));
    assert_ok(rill_memory_pool(p, &of));
    assert_true(rill_pool_equal(pool, of));
    assert_ok(rill_fill_async(stream, p, &value, sizeof value, WORDS));
    assert_ok(rill_copy_async(stream, dut.host, p + WORDS - 1, sizeof value));
    assert_completes(stream);
    assert_int_equal(dut.host[0], value);
    if (kinds[i] != RILL_MEMORY_DEVICE) {
      assert_int_equal(p[0], value);
      p[1] = 5;
      assert_ok(rill_copy_async(stream, dut.host, p + 1, sizeof value));
      assert_completes(stream);
      assert_int_equal(dut.host[0], 5);
    }
    assert_fails(rill_copy_async(stream, dut.host, p + WORDS - 1, 8), RILL_ERROR_OUT_OF_RANGE);
    assert_ok(i == 1 ? rill_free(p) : rill_free_async(stream, p));
    assert_fails(rill_free(p), RILL_ERROR_NOT_FOUND);
    assert_completes(stream);
    assert_ok(rill_pool_trim(pool, 0));
    rill_pool_info now = RILL_POOL_INFO_INIT;
    assert_ok(rill_pool_get_info(pool, &now));
    assert_int_equal(now.reserved, 0);
    assert_ok(rill_pool_release(pool));
  }
}

/* M11: the order of streams is the same for every kind. */
static void memory_passes_between_streams(void) {
  needs_plain_memory();
  enum { BYTES = 1 << 20 };
  for (size_t i = 0; i < 3; i++) {
    if (!has_kind(kinds[i])) continue;
    rill_pool pool = new_pool(kinds[i]);
    rill_stream first = new_stream("first"), second = new_stream("second");
    void *p, *q, *r;
    assert_ok(rill_pool_alloc_async(pool, first, BYTES, &p));
    struct gate *gate = gate_close(first);
    assert_ok(rill_free_async(first, p));
    assert_ok(rill_pool_alloc_async(pool, second, BYTES, &q));
    assert_ptr_not_equal(p, q);
    assert_ok(rill_pool_alloc_async(pool, first, BYTES, &r));
    assert_ptr_equal(p, r);
    gate_open(gate);
    assert_ok(rill_free_async(first, r));
    assert_ok(rill_free_async(second, q));
    assert_ok(rill_pool_release(pool));
  }
}

/* C5.4, M24: prefetches and advice for managed pool memory apply to one allocation, not to the whole segment. */
static void managed_memory_accepts_advice(void) {
  if (!has_kind(RILL_MEMORY_MANAGED)) {
    rill_pool pool;
    assert_fails(rill_pool_create(dut.device, RILL_POOL_OPTIONS(.kind = RILL_MEMORY_MANAGED), &pool),
                 RILL_ERROR_UNSUPPORTED);
    return;
  }
  rill_pool pool = new_pool(RILL_MEMORY_MANAGED);
  rill_stream stream = new_stream("stream");
  char *p;
  assert_ok(rill_pool_alloc_async(pool, stream, 100000, (void **)&p));
  const rill_status status = rill_memory_prefetch_async(stream, p + 1, 99999);
  assert_true(status == RILL_OK || status == RILL_ERROR_UNSUPPORTED);
  assert_fails(rill_memory_prefetch_async(stream, p, 100001), RILL_ERROR_OUT_OF_RANGE);
  assert_fails(rill_memory_advise(p + 1, 100000, dut.device, RILL_ADVICE_READ_MOSTLY), RILL_ERROR_OUT_OF_RANGE);
  assert_ok(rill_free_async(stream, p));
  assert_fails(rill_memory_prefetch_async(stream, p, 1), RILL_ERROR_NOT_FOUND);
  assert_ok(rill_pool_release(pool));
}

TESTS_ON_EACH_DEVICE("rill_pool_kind", TEST(begins), TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(returns_what_was_requested), TEST(refuses_unknown_kinds), TEST(allocates_memory_of_its_kind),
                     TEST(memory_passes_between_streams), TEST(managed_memory_accepts_advice))
