/* rill_stream_launch_ref */
#include "support/testing.h"

#include "launch.rill.h"

static const rill_launch one_thread = {
  sizeof one_thread, { 1, 1, 1 }, { 1, 1, 1 }, { 0, 0, 0 }, 0, 0, NULL, 0, NULL, 0, NULL
};

static rill_status call_with_stream(uint64_t id) {
  uint32_t *out = dut.memory;
  return rill_stream_launch_ref((rill_stream){ id }, &rill_ref_store, &one_thread, RILL_ARGS(7u, out));
}

static void refuses_bad_handles(void) { refuses_bad_streams("rill_stream_launch_ref", call_with_stream); }

static void refuses_null(void) {
  rill_stream stream = new_stream("stream");
  uint32_t *out = dut.memory;
  rill_kernel_ref no_bundle = { NULL, "store", { 0, 0 } }, no_name = { &launch_bundle, NULL, { 0, 0 } };
  assert_fails(rill_stream_launch_ref(stream, NULL, &one_thread, RILL_ARGS(7u, out)), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_stream_launch_ref(stream, &no_bundle, &one_thread, RILL_ARGS(7u, out)),
               RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_stream_launch_ref(stream, &no_name, &one_thread, RILL_ARGS(7u, out)), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_stream_launch_ref(stream, &rill_ref_store, NULL, RILL_ARGS(7u, out)), RILL_ERROR_INVALID_ARGUMENT);
}

static void refuses_unknown_names(void) {
  rill_kernel_ref ref = { &launch_bundle, "no_such_kernel", { 0, 0 } };
  for (int i = 0; i < 2; i++) { /* also the second time */
    assert_fails(rill_stream_launch_ref(new_stream("stream"), &ref, &one_thread, NULL, 0), RILL_ERROR_NOT_FOUND);
    assert_says("no_such_kernel");
    assert_says("store");
  }
}

/* C6.5: the same checks as for a kernel. */
static void checks_arguments_and_shape(void) {
  rill_stream stream = new_stream("stream");
  uint32_t *out = dut.memory;
  assert_fails(rill_stream_launch_ref(stream, &rill_ref_store, &one_thread, RILL_ARGS(7u)),
               RILL_ERROR_INVALID_ARGUMENT);
  assert_says("kernel \"store\": 1 arguments passed, 2 expected");
  rill_launch empty = one_thread;
  empty.grid.x = 0;
  assert_fails(rill_stream_launch_ref(stream, &rill_ref_store, &empty, RILL_ARGS(7u, out)),
               RILL_ERROR_INVALID_ARGUMENT);
}

/* C6.6 */
static void launches_by_name(void) {
  rill_stream stream = new_stream("stream");
  rill_kernel_ref ref = { &launch_bundle, "store", { 0, 0 } };
  for (uint32_t i = 1; i <= 3; i++) {
    uint32_t *out = dut.memory;
    assert_ok(rill_stream_launch_ref(stream, &ref, &one_thread, RILL_ARGS(i, out)));
    read_cell(stream, 0);
    assert_completes(stream);
    assert_int_equal(dut.host[0], i);
  }
}

/* A cache that another instance of the library has filled, or that contains garbage, does no harm. */
static void survives_a_stale_cache(void) {
  rill_stream stream = new_stream("stream");
  rill_kernel_ref ref = { &launch_bundle, "store", { UINT64_MAX, stream.id } };
  uint32_t *out = dut.memory;
  assert_ok(rill_stream_launch_ref(stream, &ref, &one_thread, RILL_ARGS(4u, out)));
  read_cell(stream, 0);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 4);
}

static const char *launches(unsigned index, void *shared) {
  rill_kernel_ref *ref = shared;
  rill_stream stream;
  uint32_t *out = dut.memory + index;
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &stream));
  for (unsigned i = 0; i < 20; i++) {
    REQUIRE_OK(rill_stream_launch_ref(stream, ref, &one_thread, RILL_ARGS(index + 100, out)));
  }
  REQUIRE_OK(rill_copy_async(stream, dut.host + index, out, sizeof *out));
  REQUIRE_OK(rill_stream_synchronize(stream));
  REQUIRE_OK(rill_stream_release(stream));
  REQUIRE(dut.host[index] == index + 100);
  return NULL;
}

/* C1.7: many threads use one reference for the first time. */
static void serves_many_threads(void) {
  rill_kernel_ref ref = { &launch_bundle, "store", { 0, 0 } };
  run_threads(16, launches, &ref);
}

/* One reference can be used on every device. */
static void serves_several_devices(void) {
  needs_second_device();
  rill_kernel_ref ref = { &launch_bundle, "store", { 0, 0 } };
  rill_stream here = new_stream("here"), there = new_stream_on(dut.second, "there");
  for (uint32_t i = 0; i < 4; i++) {
    uint32_t *out = dut.host + i; /* pinned: both reach it */
    assert_ok(rill_stream_launch_ref(i % 2 == 0 ? here : there, &ref, &one_thread, RILL_ARGS(i + 1, out)));
  }
  assert_completes(here);
  assert_completes(there);
  for (uint32_t i = 0; i < 4; i++) assert_int_equal(dut.host[i], i + 1);
}

TESTS_ON_EACH_DEVICE("rill_stream_launch_ref", TEST(refuses_bad_handles), TEST(refuses_null),
                     TEST(refuses_unknown_names), TEST(checks_arguments_and_shape), TEST(launches_by_name),
                     TEST(survives_a_stale_cache), TEST(serves_many_threads), TEST(serves_several_devices))
