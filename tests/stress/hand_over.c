/* The work of a held stream may be submitted by a thread that records another event. Once the caller's record has
 * returned, its stream is no longer held, so no call is refused (C3.8). */
#include "support/testing.h"

#include <rill/capture.h>

enum { THREADS = 4, ROUNDS = 1500 };

static void nothing(void *user, rill_status status) {
  (void)user;
  (void)status;
}

struct own {
  rill_stream held, recorder;
  rill_graph graph;
  rill_graph_exec exec;
  rill_graph_node node;
  uint32_t *cell;
};

static const char *make(struct own *own, unsigned index) {
  const uint32_t value = 1;
  own->cell = dut.memory + index;
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &own->held));
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &own->recorder));
  REQUIRE_OK(rill_graph_create(dut.device, &own->graph));
  REQUIRE_OK(rill_graph_add_fill(own->graph, NULL, 0, own->cell, &value, sizeof value, 1, &own->node));
  REQUIRE_OK(rill_graph_instantiate(own->graph, &own->exec));
  return NULL;
}

/* Makes the stream held, submits work to it, and records the event. */
static const char *hold_and_record(const struct own *own) {
  rill_event event;
  REQUIRE_OK(rill_event_create(dut.device, NULL, &event));
  REQUIRE_OK(rill_stream_wait_event(own->held, event, 0));
  REQUIRE_OK(rill_stream_host_call(own->held, nothing, NULL));
  REQUIRE_OK(rill_stream_host_call(own->held, nothing, NULL));
  REQUIRE_OK(rill_graph_launch(own->exec, own->held));
  REQUIRE_OK(rill_stream_record_event(own->recorder, event, 0));
  REQUIRE_OK(rill_event_release(event));
  return NULL;
}

static const char *use(const struct own *own, unsigned round) {
  const uint32_t value = round;
  rill_graph graph;
  switch (round % 5) {
    case 0: REQUIRE_OK(rill_graph_exec_set_fill(own->exec, own->node, own->cell, &value, sizeof value, 1)); break;
    case 1: REQUIRE_OK(rill_graph_update(own->exec, own->graph)); break;
    case 2: REQUIRE_OK(rill_graph_launch(own->exec, own->recorder)); break;
    case 3: {
      const rill_status status = rill_graph_upload(own->exec, own->held);
      REQUIRE(status == RILL_OK || status == RILL_ERROR_UNSUPPORTED);
      break;
    }
    default: break;
  }
  REQUIRE_OK(rill_stream_capture_begin(own->held, RILL_CAPTURE_RELAXED));
  REQUIRE_OK(rill_stream_capture_end(own->held, &graph));
  REQUIRE_OK(rill_graph_release(graph));
  return NULL;
}

static const char *do_part(unsigned index, void *user) {
  struct own own;
  (void)user;
  const char *why = make(&own, index);
  for (unsigned round = 0; round < scaled(ROUNDS) && why == NULL; round++) {
    why = hold_and_record(&own);
    if (why == NULL) why = use(&own, round);
    if (why == NULL) REQUIRE_OK(rill_stream_synchronize(own.held));
  }
  if (why != NULL) return why;
  REQUIRE_OK(rill_stream_synchronize(own.recorder));
  REQUIRE_OK(rill_graph_exec_release(own.exec));
  REQUIRE_OK(rill_graph_release(own.graph));
  REQUIRE_OK(rill_stream_release(own.held));
  REQUIRE_OK(rill_stream_release(own.recorder));
  return NULL;
}

static void accepts_every_call_after_the_record(void) {
  if (!rill_device_supports(dut.device, RILL_FEATURE_GRAPH, NULL)) skip_because("no graphs here");
  run_threads(THREADS, do_part, NULL);
}

TESTS_ON_EACH_DEVICE("hand_over", TEST(accepts_every_call_after_the_record))
