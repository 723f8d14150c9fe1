/* rill_stream_capture_abort */
#include "graphs.h"

static rill_status stop(uint64_t id) { return rill_stream_capture_abort((rill_stream){ id }); }

static void refuses_bad_handles(void) { refuses_bad_streams("rill_stream_capture_abort", stop); }

static void is_ok_without_a_capture(void) { assert_ok(rill_stream_capture_abort(new_stream("stream"))); }

/* C7.3 */
static void leaves_the_streams_usable(void) {
  needs_graphs();
  rill_stream stream = new_stream("origin"), forked = new_stream("forked");
  bool capturing = true;
  for (int i = 0; i < 20; i++) {
    assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
    write_cell(stream, 0, 1);
    assert_ok(rill_stream_wait_stream(forked, stream));
    write_cell(forked, 0, 2);
    assert_fails(rill_stream_capture_abort(forked), RILL_ERROR_INVALID_ARGUMENT);
    assert_ok(rill_stream_capture_abort(stream));
    assert_ok(rill_stream_is_capturing(forked, &capturing));
    assert_false(capturing);
  }
  write_cell(forked, 0, 9);
  read_cell(forked, 0);
  assert_completes(forked);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 9);
}

TESTS_ON_EACH_DEVICE("rill_stream_capture_abort", TEST(refuses_bad_handles), TEST(is_ok_without_a_capture),
                     TEST(leaves_the_streams_usable))
