/* rill_graph_upload */
#include "graphs.h"

static rill_stream a_stream;

static rill_status upload(uint64_t id) { return rill_graph_upload((rill_graph_exec){ id }, a_stream); }

static void refuses_bad_handles(void) {
  needs_graphs();
  a_stream = new_stream("stream");
  refuses_bad_execs("rill_graph_upload", upload);
  rill_graph graph = new_graph();
  rill_graph_exec exec = new_exec(graph);
  assert_fails(rill_graph_upload(exec, RILL_NULL_STREAM), RILL_ERROR_INVALID_HANDLE);
}

/* G32, C1.8: succeeds, or reports what the driver lacks. */
static void comes_before_launches(void) {
  rill_graph graph = new_graph();
  rill_graph_node write = add_write(graph, NULL, 0, 0, 9);
  add_read(graph, &write, 1, 0);
  rill_graph_exec exec = new_exec(graph);
  rill_stream stream = new_stream("uploads"), other = new_stream("launches");
  const rill_status status = rill_graph_upload(exec, stream);
  if (status != RILL_OK) {
    assert_int_equal(status, RILL_ERROR_UNSUPPORTED);
    assert_says("GraphUpload");
  }
  assert_ok(rill_graph_launch(exec, other));
  assert_completes(stream);
  assert_completes(other);
  assert_int_equal(dut.host[0], 9);
}

/* C7.3, C3.8 */
static void refuses_captures_and_held_streams(void) {
  rill_graph graph = new_graph();
  add_write(graph, NULL, 0, 0, 9);
  rill_graph_exec exec = new_exec(graph);
  rill_stream stream = new_stream("stream"), recorder = new_stream("recorder");
  rill_event event = new_event("never recorded");
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_THREAD));
  assert_fails(rill_graph_upload(exec, stream), RILL_ERROR_CAPTURE_ACTIVE);
  assert_ok(rill_stream_capture_abort(stream));
  assert_ok(rill_stream_wait_event(stream, event, 0));
  assert_fails(rill_graph_upload(exec, stream), RILL_ERROR_NOT_READY);
  assert_ok(rill_graph_launch(exec, stream));
  assert_fails(rill_graph_upload(exec, recorder), RILL_ERROR_NOT_READY);
  assert_ok(rill_stream_record_event(recorder, event, 0));
  assert_completes(stream);
}

TESTS_ON_EACH_DEVICE("rill_graph_upload", TEST(refuses_bad_handles), TEST(comes_before_launches),
                     TEST(refuses_captures_and_held_streams))
