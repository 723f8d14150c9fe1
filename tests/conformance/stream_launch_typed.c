/* rill_stream_launch_typed, and the typed launch functions that rillcc generates, which call it */
#include "support/testing.h"

#include "graphs.h"
#include "launch.rill.h"

#include <rill/bundle.h>
#include <string.h>

static const rill_launch one_thread = {
  sizeof one_thread, { 1, 1, 1 }, { 1, 1, 1 }, { 0, 0, 0 }, 0, 0, NULL, 0, NULL, 0, NULL
};

static rill_status call_with_stream(uint64_t id) {
  return store_launch((rill_stream){ id }, &one_thread, 7, dut.memory);
}

static void refuses_bad_handles(void) { refuses_bad_streams("store_launch", call_with_stream); }

static void names_the_function_in_every_refusal(void) {
  rill_stream stream = new_stream("stream");
  uint32_t *out = dut.memory;
  assert_fails(store_launch(stream, NULL, 7, out), RILL_ERROR_INVALID_ARGUMENT);
  rill_launch launch = one_thread;
  launch.grid.x = 0;
  assert_fails(store_launch(stream, &launch, 7, out), RILL_ERROR_INVALID_ARGUMENT);
  launch = one_thread;
  launch.shared_mem_bytes = 1u << 30;
  assert_fails(store_launch(stream, &launch, 7, out), RILL_ERROR_OUT_OF_RANGE);
  launch = one_thread;
  launch.label = "step 3";
  launch.attribute_count = 1;
  assert_fails(store_launch(stream, &launch, 7, out), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("launch \"step 3\"");
}

/* The function that rillcc generates calls it in this way. */
static rill_status other_launch(rill_stream stream, rill_kernel_ref *ref) {
  uint32_t *out = dut.memory;
  return rill_stream_launch_typed(stream, ref, &one_thread, RILL_ARGS(7u, out), __func__);
}

static void names_the_function_when_loading_fails(void) {
  rill_stream stream = new_stream("stream");
  rill_kernel_ref unknown = { &launch_bundle, "no_such_kernel", { 0, 0 } };
  assert_fails(other_launch(stream, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(other_launch(stream, &unknown), RILL_ERROR_NOT_FOUND);
  assert_says("no_such_kernel");
  const rill_bundle empty = { RILL_BUNDLE_MAGIC, RILL_BUNDLE_VERSION, "empty", NULL, 0, NULL, 0 };
  rill_kernel_ref imageless = { &empty, "store", { 0, 0 } };
  assert_fails(other_launch(stream, &imageless), RILL_ERROR_NOT_FOUND);
}

static void names_the_function_in_captures(void) {
  needs_graphs();
  rill_stream stream = new_stream("stream");
  rill_graph graph;
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_THREAD));
  assert_ok(store_launch(stream, &one_thread, 7, dut.memory));
  assert_fails(store_launch(stream, NULL, 7, dut.memory), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_stream_capture_end(stream, &graph));
  assert_ok(rill_graph_release(graph));
}

/* The name is copied, because it belongs to a library that the program may unload. */
static void copies_the_name(void) {
  char name[] = "of_a_plugin_launch";
  rill_error error = RILL_ERROR_INIT;
  uint32_t *out = dut.memory;
  assert_int_equal(rill_stream_launch_typed(RILL_NULL_STREAM, &rill_ref_store, &one_thread, RILL_ARGS(7u, out), name),
                   RILL_ERROR_INVALID_HANDLE);
  memset(name, '?', sizeof name - 1);
  assert_ok(rill_last_error(&error));
  assert_string_equal(error.api, "of_a_plugin_launch");
  assert_int_equal(strncmp(rill_last_error_text(), "of_a_plugin_launch: ", 20), 0);
}

static void has_its_own_name(void) {
  uint32_t *out = dut.memory;
  assert_fails(rill_stream_launch_typed(RILL_NULL_STREAM, &rill_ref_store, &one_thread, RILL_ARGS(7u, out), NULL),
               RILL_ERROR_INVALID_HANDLE);
}

/* A name that does not fit is truncated. */
static void accepts_long_names(void) {
  char name[1000];
  memset(name, 'x', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  uint32_t *out = dut.memory;
  assert_int_equal(rill_stream_launch_typed(RILL_NULL_STREAM, &rill_ref_store, &one_thread, RILL_ARGS(7u, out), name),
                   RILL_ERROR_INVALID_HANDLE);
  assert_int_equal(strspn(rill_last_error_text(), "x"), 127);
  assert_says("RILL_ERROR_INVALID_HANDLE");
}

static void launches(void) {
  rill_stream stream = new_stream("stream");
  assert_ok(store_launch(stream, &one_thread, 9, dut.memory));
  read_cell(stream, 0);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 9);
}

TESTS_ON_EACH_DEVICE("rill_stream_launch_typed", TEST(refuses_bad_handles), TEST(names_the_function_in_every_refusal),
                     TEST(names_the_function_when_loading_fails), TEST(names_the_function_in_captures),
                     TEST(copies_the_name), TEST(has_its_own_name), TEST(accepts_long_names), TEST(launches))
