/* rill_device_enable_peer */
#include "peers.h"

#include "launch.rill.h"

static rill_status call_with_first(uint64_t id) { return rill_device_enable_peer((rill_device){ id }, dut.device); }
static rill_status call_with_second(uint64_t id) { return rill_device_enable_peer(dut.device, (rill_device){ id }); }

/* P3 */
static void refuses_bad_handles(void) {
  refuses_bad_devices("rill_device_enable_peer", call_with_first);
  refuses_bad_devices("rill_device_enable_peer", call_with_second);
}

/* C5.4, P1, P7 */
static void accepts_the_device_itself(void) {
  assert_ok(rill_device_enable_peer(dut.device, dut.device));
  assert_ok(rill_device_enable_peer(dut.device, dut.device));
  assert_true(peer_is_enabled(dut.device, dut.device));
}

/* P4 */
static void refuses_another_backend(void) {
  needs_foreign_device();
  assert_fails(rill_device_enable_peer(dut.device, dut.foreign), RILL_ERROR_WRONG_BACKEND);
  assert_says(dut.name);
}

/* C5.4: each direction is enabled separately, any number of times. P2, P6: enabled, disabled, enabled again. */
static void is_directed_and_idempotent(void) {
  needs_peer();
  assert_ok(rill_device_disable_peer(dut.device, dut.second));
  assert_ok(rill_device_disable_peer(dut.second, dut.device));
  for (int i = 0; i < 3; i++) {
    assert_ok(rill_device_enable_peer(dut.device, dut.second));
    assert_ok(rill_device_enable_peer(dut.device, dut.second));
    assert_true(peer_is_enabled(dut.device, dut.second));
    assert_false(peer_is_enabled(dut.second, dut.device));
    assert_ok(rill_device_disable_peer(dut.device, dut.second));
    assert_false(peer_is_enabled(dut.device, dut.second));
  }
}

/* P5, C1.8 */
static void says_why_a_pair_is_refused(void) {
  needs_second_device();
  const char *why = NULL;
  if (rill_device_can_access_peer(dut.device, dut.second, &why)) return;
  assert_fails(rill_device_enable_peer(dut.device, dut.second), RILL_ERROR_UNSUPPORTED);
  assert_says(why);
  assert_ok(rill_device_disable_peer(dut.device, dut.second));
}

/* P8: copies work with and without peer access; C17 of the edge cases. */
static void copies_work_with_and_without_access(void) {
  needs_second_device();
  assert_ok(rill_device_disable_peer(dut.device, dut.second));
  assert_ok(rill_device_disable_peer(dut.second, dut.device));
  check_copies_between_devices();
  needs_peer();
  assert_ok(rill_device_enable_peer(dut.device, dut.second));
  check_copies_between_devices();
  assert_ok(rill_device_enable_peer(dut.second, dut.device));
  check_copies_between_devices();
  assert_ok(rill_device_disable_peer(dut.device, dut.second));
  assert_ok(rill_device_disable_peer(dut.second, dut.device));
  check_copies_between_devices();
}

/* Launches a kernel on this device that writes and reads memory of the other device. */
static void check_kernels_reach(rill_stream stream, unsigned *far, unsigned value) {
  rill_kernel store = new_kernel(&launch_bundle, "store"), increment = new_kernel(sample_bundle(), "increment");
  const rill_launch one = rill_launch_1d(1, 1);
  assert_ok(rill_stream_launch(stream, store, &one, RILL_ARGS(value, far)));
  assert_ok(rill_stream_launch(stream, increment, &one, RILL_ARGS(far)));
  assert_ok(rill_copy_async(stream, dut.host, far, sizeof *far));
  assert_completes(stream);
  assert_int_equal(dut.host[0], value + 1);
}

/* P6: kernels can access memory of the other device that was allocated before or after the call, by rill_alloc, from
 * its default pool or from another pool. */
static void kernels_reach_older_and_newer_memory(void) {
  needs_peer();
  rill_stream here = new_stream("here"), there = new_stream_on(dut.second, "there");
  rill_pool pool;
  assert_ok(rill_device_disable_peer(dut.device, dut.second));
  assert_ok(rill_pool_create(dut.second, NULL, &pool));
  unsigned *memory[6] = { NULL };
  for (unsigned i = 0; i < 6; i += 3) {
    assert_ok(RILL_NEW(dut.second, RILL_MEMORY_DEVICE, CELLS, &memory[i]));
    /* large enough for a segment of its own */
    assert_ok(rill_alloc_async(there, (size_t)(1 << 20) << i, (void **)&memory[i + 1]));
    assert_ok(rill_pool_alloc_async(pool, there, (size_t)(1 << 20) << i, (void **)&memory[i + 2]));
    assert_completes(there);
    if (i == 0) assert_ok(rill_device_enable_peer(dut.device, dut.second));
    for (unsigned k = 0; k < i + 3; k++) check_kernels_reach(here, memory[k], 10 * i + k);
  }
  for (unsigned i = 0; i < 6; i++) assert_ok(rill_free(memory[i]));
  assert_ok(rill_pool_release(pool));
  assert_ok(rill_device_disable_peer(dut.device, dut.second));
}

static const char *enables(unsigned index, void *shared) {
  (void)shared;
  for (unsigned i = 0; i < 20; i++) {
    const bool there = (index + i) % 2 == 0;
    REQUIRE_OK(rill_device_enable_peer(there ? dut.device : dut.second, there ? dut.second : dut.device));
  }
  return NULL;
}

/* C1.7: many threads enable the same access concurrently. */
static void serves_many_threads(void) {
  needs_peer();
  run_threads(8, enables, NULL);
  assert_true(peer_is_enabled(dut.device, dut.second));
  assert_true(peer_is_enabled(dut.second, dut.device));
  assert_ok(rill_device_disable_peer(dut.device, dut.second));
  assert_ok(rill_device_disable_peer(dut.second, dut.device));
}

TESTS_ON_EACH_DEVICE("rill_device_enable_peer", TEST(refuses_bad_handles), TEST(accepts_the_device_itself),
                     TEST(refuses_another_backend), TEST(is_directed_and_idempotent), TEST(says_why_a_pair_is_refused),
                     TEST(copies_work_with_and_without_access), TEST(kernels_reach_older_and_newer_memory),
                     TEST(serves_many_threads))
