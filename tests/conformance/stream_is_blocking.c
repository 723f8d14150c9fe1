/* rill_stream_is_blocking */
#include "support/testing.h"

GETTER_TESTS(stream, rill_stream_is_blocking, bool, new_stream("getter"))

static rill_stream with_blocking(bool blocking) {
  rill_stream stream;
  assert_ok(rill_stream_create(dut.device, RILL_STREAM_OPTIONS(.blocking = blocking), &stream));
  keep_stream_until_end(stream);
  return stream;
}

/* C3.1, S2, D7 */
static void returns_what_was_requested(void) {
  for (int i = 0; i < 2; i++) {
    bool blocking = i == 0;
    assert_ok(rill_stream_is_blocking(with_blocking(i != 0), &blocking));
    assert_int_equal(blocking, i != 0);
  }
}

/* C2.4, D1, D2, D3: a blocking stream is ordered with the vendor's null stream. The CPU has none. */
static void orders_against_the_null_stream(void) {
  rill_stream null_stream = { 1 };
  if (!dut.gpu) {
    assert_fails(rill_stream_import(dut.device, 0, NULL, &null_stream), RILL_ERROR_UNSUPPORTED);
    return;
  }
  rill_stream blocking = with_blocking(true), independent = with_blocking(false);
  assert_ok(rill_stream_import(dut.device, 0, NULL, &null_stream));
  keep_stream_until_end(null_stream);

  struct gate *gate = gate_close(null_stream);
  write_cell(null_stream, 0, 1);
  read_cell(blocking, 0);
  write_cell(independent, 1, 2);
  read_cell(independent, 1);
  assert_completes(independent);
  assert_int_equal(dut.host[1], 2);
  assert_false(is_complete(blocking));
  gate_open(gate);
  assert_completes(blocking);
  assert_int_equal(dut.host[0], 1);

  gate = gate_close(blocking);
  write_cell(blocking, 2, 3);
  read_cell(null_stream, 2);
  assert_false(is_complete(null_stream));
  gate_open(gate);
  assert_completes(null_stream);
  assert_int_equal(dut.host[2], 3);
}

TESTS_ON_EACH_DEVICE("rill_stream_is_blocking", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(returns_what_was_requested), TEST(orders_against_the_null_stream))
