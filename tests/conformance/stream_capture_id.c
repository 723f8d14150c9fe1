/* rill_stream_capture_id */
#include "graphs.h"

GETTER_TESTS(stream, rill_stream_capture_id, uint64_t, new_stream("stream"))

/* G15, G16, G34: 0 without a capture, the same for all streams of a capture until it ends, and increasing. */
static void is_unique(void) {
  needs_graphs();
  rill_stream stream = new_stream("stream"), forked = new_stream("forked");
  uint64_t ids[3] = { 1, 1, 1 }, last = 0;
  rill_graph graph;
  assert_ok(rill_stream_capture_id(stream, &ids[0]));
  assert_int_equal(ids[0], 0);
  for (int i = 0; i < 3; i++) {
    assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
    assert_ok(rill_stream_wait_stream(forked, stream));
    assert_ok(rill_stream_capture_id(stream, &ids[0]));
    assert_ok(rill_stream_capture_id(forked, &ids[1]));
    assert_true(ids[0] > last && ids[0] == ids[1]);
    last = ids[0];
    assert_ok(rill_stream_capture_end(stream, &graph));
    assert_ok(rill_graph_release(graph));
    assert_ok(rill_stream_capture_id(forked, &ids[2]));
    assert_int_equal(ids[2], 0);
  }
}

TESTS_ON_EACH_DEVICE("rill_stream_capture_id", TEST(refuses_bad_handles), TEST(refuses_null_out), TEST(is_unique))
