/* Races between a record in a capture and a wait that makes another stream held for the event's first record. The wait
 * may come after any check of the record, but not between the record's last check and its change of the event. */
#include "core/graph/capture.h"
#include "core/object/handle.h"
#include "support/testing.h"

#include <rill/capture.h>

static void is_refused_for_an_awaited_event(void) {
  rill_stream capturing = new_stream("capturing"), held = new_stream("held");
  rill_event event = new_event("to come");
  rill_graph graph = RILL_NULL_GRAPH;
  bool taken = false;
  if (!rill_device_supports(dut.device, RILL_FEATURE_GRAPH, NULL)) skip_because("no graphs here");
  assert_ok(rill_stream_capture_begin(capturing, RILL_CAPTURE_RELAXED));
  assert_ok(rill_stream_wait_event(held, event, 0));
  /* does what the public function does after its checks of the event */
  struct rill__thread *self = rill__enter(__func__);
  const rill_status status =
      rill__capture_record(rill__find(capturing.id, RILL__STREAM), rill__find(event.id, RILL__EVENT), 0, &taken);
  rill__leave(&self);
  assert_int_equal(status, RILL_ERROR_CAPTURE_ACTIVE);
  assert_ok(rill_stream_capture_end(capturing, &graph));
  assert_ok(rill_graph_release(graph));
  assert_ok(rill_stream_record_event(capturing, event, 0)); /* the first record, which releases the held stream */
  assert_completes(held);
}

/* A record on a held stream replaces a record in a capture. */
static void is_replaced_by_a_held_record(void) {
  rill_stream capturing = new_stream("capturing"), held = new_stream("held");
  rill_event event = new_event("captured, then held"), to_come = new_event("to come");
  rill_graph graph = RILL_NULL_GRAPH;
  if (!rill_device_supports(dut.device, RILL_FEATURE_GRAPH, NULL)) skip_because("no graphs here");
  for (int i = 0; i < 2; i++) {
    assert_ok(rill_stream_capture_begin(capturing, RILL_CAPTURE_RELAXED));
    assert_ok(rill_stream_record_event(capturing, event, 0));
    assert_ok(rill_stream_capture_end(capturing, &graph));
    assert_ok(rill_graph_release(graph));
    if (i == 0) assert_ok(rill_stream_wait_event(held, to_come, 0));
    assert_ok(rill_stream_record_event(held, event, 0));
    if (i == 0) assert_ok(rill_stream_record_event(capturing, to_come, 0));
    assert_completes(held);
    assert_true(is_ready(event));
  }
}

TESTS_ON_EACH_DEVICE("records in captures", TEST(is_refused_for_an_awaited_event), TEST(is_replaced_by_a_held_record))
