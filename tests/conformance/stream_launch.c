/* rill_stream_launch: launches that are refused. kernels.c tests the results of kernels. */
#include "support/testing.h"

#include "launch.rill.h"

#include <stdio.h>
#include <string.h>

static const rill_launch one_thread = {
  sizeof one_thread, { 1, 1, 1 }, { 1, 1, 1 }, { 0, 0, 0 }, 0, 0, NULL, 0, NULL, 0, NULL
};

/* Launches `store`, which writes 7 into the first cell. */
static rill_status launch_store(rill_stream stream, rill_kernel kernel, const rill_launch *launch) {
  uint32_t *out = dut.memory;
  return rill_stream_launch(stream, kernel, launch, RILL_ARGS(7u, out));
}

static rill_status call_with_stream(uint64_t id) {
  return launch_store((rill_stream){ id }, new_kernel(&launch_bundle, "store"), &one_thread);
}
static rill_status call_with_kernel(uint64_t id) {
  return launch_store(new_stream("stream"), (rill_kernel){ id }, &one_thread);
}

/* L4 */
static void refuses_bad_handles(void) {
  refuses_bad_streams("rill_stream_launch", call_with_stream);
  refuses_bad_kernels("rill_stream_launch", call_with_kernel);
}

/* C1.6: handles are checked first. */
static void checks_handles_first(void) {
  assert_fails(rill_stream_launch(RILL_NULL_STREAM, RILL_NULL_KERNEL, NULL, NULL, 99), RILL_ERROR_INVALID_HANDLE);
  assert_fails(rill_stream_launch(new_stream("stream"), RILL_NULL_KERNEL, NULL, NULL, 99), RILL_ERROR_INVALID_HANDLE);
}

/* K7 */
static void refuses_a_kernel_of_another_device(void) {
  needs_second_device();
  rill_kernel kernel = new_kernel_on(dut.second, &launch_bundle, "store");
  assert_fails_in("rill_stream_launch", launch_store(new_stream("here"), kernel, &one_thread), RILL_ERROR_WRONG_DEVICE);
}

static void refuses_a_kernel_of_another_backend(void) {
  needs_foreign_device();
  rill_kernel kernel = new_kernel_on(dut.foreign, &launch_bundle, "store");
  assert_fails_in("rill_stream_launch", launch_store(new_stream("here"), kernel, &one_thread),
                  RILL_ERROR_WRONG_BACKEND);
}

/* Common setup: one stream, one kernel, and a launch that differs from one_thread in one respect. */
static rill_stream stream;
static rill_kernel store;

static void set_scene(void) {
  stream = new_stream("stream");
  store = new_kernel(&launch_bundle, "store");
}

static void refuses_launch(rill_launch launch, rill_status status, const char *text) {
  assert_fails_in("rill_stream_launch", launch_store(stream, store, &launch), status);
  assert_says(text);
}

/* The failed calls launched nothing, and the stream accepts work. */
static void expect_unused_stream(void) {
  read_cell(stream, 0);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 0);
  assert_ok(launch_store(stream, store, &one_thread));
  read_cell(stream, 0);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 7);
}

/* C6.5, L7: count and sizes, with the kernel, the argument and the numbers in the text. */
static void checks_arguments(void) {
  set_scene();
  uint32_t *out = dut.memory;
  assert_fails(rill_stream_launch(stream, store, &one_thread, RILL_ARGS()), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("kernel \"store\": 0 arguments passed, 2 expected");
  assert_fails(rill_stream_launch(stream, store, &one_thread, RILL_ARGS(7u)), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_stream_launch(stream, store, &one_thread, RILL_ARGS(7u, out, 1)), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_stream_launch(stream, store, &one_thread, RILL_ARGS(7ull, out)), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("kernel \"store\": argument 1 (\"value\"): 8 bytes passed, 4 expected");
  assert_fails(rill_stream_launch(stream, store, &one_thread, RILL_ARGS(7u, 0)), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("argument 2 (\"out\"): 4 bytes passed, 8 expected");
  expect_unused_stream();
}

static void refuses_null(void) {
  set_scene();
  uint32_t *out = dut.memory;
  const rill_arg no_data[] = { { NULL, 4 }, { &out, sizeof out } };
  assert_fails(rill_stream_launch(stream, store, NULL, RILL_ARGS(7u, out)), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_stream_launch(stream, store, &one_thread, NULL, 2), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_stream_launch(stream, store, &one_thread, no_data, 2), RILL_ERROR_INVALID_ARGUMENT);
  expect_unused_stream();
}

static rill_status launch_with(const void *launch) { return launch_store(stream, store, launch); }

/* C1.4 */
static void accepts_older_and_newer_structs(void) {
  set_scene();
  takes_grown_options("rill_stream_launch", launch_with, &one_thread, sizeof one_thread,
                      offsetof(rill_launch, cluster));
  takes_grown_options("rill_stream_launch", launch_with, &one_thread, sizeof one_thread, offsetof(rill_launch, label));
}

/* kernel.h: errors of a launch contain its label, also if an older struct is passed. */
static void says_which_launch_it_refused(void) {
  set_scene();
  rill_launch launch = one_thread;
  launch.grid.x = 0;
  launch.label = "step 3";
  refuses_launch(launch, RILL_ERROR_INVALID_ARGUMENT, "launch \"step 3\": kernel \"store\": grid.x is 0");
  launch.struct_size = 0;
  assert_fails_in("rill_stream_launch", launch_store(stream, store, &launch), RILL_ERROR_INVALID_ARGUMENT);
  assert_null(strstr(rill_last_error_text(), "step 3"));
  expect_unused_stream();
}

/* C1.6 */
static void refuses_reserved_bits(void) {
  set_scene();
  rill_launch launch = one_thread;
  launch.reserved = 1;
  refuses_launch(launch, RILL_ERROR_INVALID_ARGUMENT, "reserved");
  expect_unused_stream();
}

/* L1: x must not be 0; y and z are 1 if they are 0. */
static void checks_for_empty_shapes(void) {
  set_scene();
  rill_launch launch = one_thread;
  launch.grid.x = 0;
  refuses_launch(launch, RILL_ERROR_INVALID_ARGUMENT, "grid");
  launch = one_thread;
  launch.block.x = 0;
  refuses_launch(launch, RILL_ERROR_INVALID_ARGUMENT, "block");
  expect_unused_stream();
  launch = one_thread;
  launch.grid.y = launch.grid.z = launch.block.y = launch.block.z = 0;
  assert_ok(launch_store(stream, store, &launch));
}

static void refuses_number(rill_launch launch, uint64_t number) {
  char text[32];
  (void)snprintf(text, sizeof text, "%llu", (unsigned long long)number);
  refuses_launch(launch, RILL_ERROR_OUT_OF_RANGE, text);
}

static uint32_t *dimension(rill_dim3 *size, int i) { return i == 0 ? &size->x : i == 1 ? &size->y : &size->z; }

/* C6.5, L2: each dimension has its limit, and the text contains it. */
static void checks_limits_of_dimensions(void) {
  set_scene();
  for (int i = 0; i < 3; i++) {
    const uint32_t values[] = { 1, UINT32_MAX };
    for (int v = 0; v < 2; v++) {
      const uint32_t grid = dut.info.max_grid_dim[i], block = dut.info.max_block_dim[i];
      rill_launch launch = one_thread;
      if (grid < UINT32_MAX) {
        *dimension(&launch.grid, i) = v == 0 ? grid + 1 : values[v];
        refuses_number(launch, grid);
      }
      launch = one_thread;
      if (block < UINT32_MAX) {
        *dimension(&launch.block, i) = v == 0 ? block + 1 : values[v];
        refuses_number(launch, block);
      }
    }
  }
  expect_unused_stream();
}

/* L2: the product is checked, and may exceed 32 bits. */
static void checks_the_number_of_threads(void) {
  set_scene();
  rill_kernel_info info = RILL_KERNEL_INFO_INIT;
  assert_ok(rill_kernel_get_info(store, &info));
  rill_launch launch = one_thread;
  launch.block = (rill_dim3){ info.max_threads, 2, 1 };
  if (info.max_threads <= dut.info.max_block_dim[0]) refuses_number(launch, info.max_threads);
  uint32_t root = 1;
  while (root * root * root <= info.max_threads) root++;
  launch.block = (rill_dim3){ root, root, root };
  if (root <= dut.info.max_block_dim[2]) refuses_number(launch, info.max_threads);
  expect_unused_stream();
  launch.block = (rill_dim3){ info.max_threads, 1, 1 };
  assert_ok(launch_store(stream, store, &launch));
  assert_completes(stream);
}

/* C6.4, L3, L18: above the default limit rill opts in to more; above the device's limit it refuses. */
static void checks_shared_memory(void) {
  set_scene();
  const uint64_t limit = dut.info.shared_per_block_optin;
  rill_launch launch = one_thread;
  launch.shared_mem_bytes = (uint32_t)limit + 1;
  refuses_number(launch, limit);
  launch.shared_mem_bytes = UINT32_MAX;
  refuses_number(launch, limit);
  expect_unused_stream();

  rill_kernel touch = new_kernel(&launch_bundle, "touch_shared");
  const uint32_t sizes[] = { 1, (uint32_t)dut.info.shared_per_block, (uint32_t)limit };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    uint32_t *out = dut.memory + 1;
    launch.shared_mem_bytes = sizes[i];
    write_cell(stream, 1, 0);
    assert_ok(rill_stream_launch(stream, touch, &launch, RILL_ARGS(sizes[i], out)));
    read_cell(stream, 1);
    assert_completes(stream);
    assert_int_equal(dut.host[1], 77);
  }
}

/* C1.8, L10: unsupported clusters are refused, not ignored. Every launch has at least a cluster of one block. */
static void clusters_work_if_supported(void) {
  set_scene();
  rill_launch launch = one_thread;
  launch.cluster = (rill_dim3){ 2, 1, 1 };
  launch.grid.x = 2;
  if (rill_device_supports(dut.device, RILL_FEATURE_CLUSTER, NULL)) {
    assert_ok(launch_store(stream, store, &launch));
    launch.cluster.x = 3;
    refuses_launch(launch, RILL_ERROR_INVALID_ARGUMENT, "not a multiple of the cluster's 3");
    launch.grid.x = launch.cluster.x = 16; /* not every device supports this size */
    spoil_last_error();
    if (launch_store(stream, store, &launch) != RILL_OK) assert_says("a cluster of 16 x 1 x 1 blocks, but the limit");
    launch.grid.x = launch.cluster.x = 1024;
    refuses_launch(launch, RILL_ERROR_OUT_OF_RANGE, "a cluster of 1024 x 1 x 1 blocks, but the limit of ");
    launch.grid = launch.cluster = (rill_dim3){ 65536, 32768, 32768 };
    launch.grid.y = launch.grid.z = 32768;
    refuses_launch(launch, RILL_ERROR_OUT_OF_RANGE, "limit");
    assert_completes(stream);
    return;
  }
  refuses_launch(launch, RILL_ERROR_UNSUPPORTED, "cluster");
  assert_says(dut.name);
  expect_unused_stream();
}

/* C1.6, L19 */
static void refuses_unknown_attributes(void) {
  set_scene();
  const uint32_t kinds[] = { 0, RILL_ATTR_END_, UINT32_MAX };
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    const rill_launch_attribute attribute = { kinds[i], 0, { 0 } };
    rill_launch launch = one_thread;
    launch.attributes = &attribute;
    launch.attribute_count = 1;
    refuses_launch(launch, RILL_ERROR_INVALID_ARGUMENT, "attribute");
  }
  rill_launch launch = one_thread;
  launch.attribute_count = 1;
  refuses_launch(launch, RILL_ERROR_INVALID_ARGUMENT, "attribute");
  expect_unused_stream();
}

/* C1.8: each attribute works or is refused as unsupported. */
static void attributes_work_or_say_why_not(void) {
  set_scene();
  for (uint32_t kind = RILL_ATTR_COOPERATIVE; kind < RILL_ATTR_END_; kind++) {
    const rill_launch_attribute attribute = { kind, 0, { 0 } };
    rill_launch launch = one_thread;
    launch.attributes = &attribute;
    launch.attribute_count = 1;
    spoil_last_error();
    const rill_status status = launch_store(stream, store, &launch);
    if (status == RILL_OK) continue;
    assert_true(status == RILL_ERROR_UNSUPPORTED || status == RILL_ERROR_INVALID_ARGUMENT ||
                status == RILL_ERROR_INVALID_HANDLE); /* a null event, for the attribute that takes an event */
    assert_says("rill_stream_launch");
    if (status == RILL_ERROR_UNSUPPORTED) assert_says(dut.name);
  }
  assert_completes(stream);
}

/* C1.6, C1.8 */
static void refuses_invalid_constants(void) {
  set_scene();
  const int value = 1;
  rill_launch launch = one_thread;
  launch.constant_count = 1;
  refuses_launch(launch, RILL_ERROR_INVALID_ARGUMENT, "constant");
  const rill_constant nameless = { NULL, &value, sizeof value };
  launch.constants = &nameless;
  refuses_launch(launch, RILL_ERROR_INVALID_ARGUMENT, "constant");
  expect_unused_stream();
}

TESTS_ON_EACH_DEVICE("rill_stream_launch", TEST(refuses_bad_handles), TEST(checks_handles_first),
                     TEST(refuses_a_kernel_of_another_device), TEST(refuses_a_kernel_of_another_backend),
                     TEST(checks_arguments), TEST(refuses_null), TEST(accepts_older_and_newer_structs),
                     TEST(says_which_launch_it_refused), TEST(refuses_reserved_bits), TEST(checks_for_empty_shapes),
                     TEST(checks_limits_of_dimensions), TEST(checks_the_number_of_threads), TEST(checks_shared_memory),
                     TEST(clusters_work_if_supported), TEST(refuses_unknown_attributes),
                     TEST(attributes_work_or_say_why_not), TEST(refuses_invalid_constants))
