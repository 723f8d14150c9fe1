/* rill_stream_capture_end: streams that join and are joined back, and captures that fail. */
#include "graphs.h"

static rill_status end(uint64_t id) {
  rill_graph graph = { 1 };
  const rill_status status = rill_stream_capture_end((rill_stream){ id }, &graph);
  assert_int_equal(graph.id, 0);
  return status;
}

static void refuses_bad_handles(void) { refuses_bad_streams("rill_stream_capture_end", end); }

/* C1.6, G5, G6 */
static void refuses_streams_without_a_capture(void) {
  needs_graphs();
  rill_stream stream = new_stream("stream"), other = new_stream("other");
  rill_graph graph = { 1 };
  assert_fails(rill_stream_capture_end(stream, &graph), RILL_ERROR_INVALID_ARGUMENT);
  assert_int_equal(graph.id, 0);
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
  assert_ok(rill_stream_wait_stream(other, stream));
  assert_fails(rill_stream_capture_end(other, &graph), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_stream_capture_end(stream, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_stream_capture_end(stream, &graph));
  assert_fails_in("rill_stream_capture_end", end(stream.id), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_graph_release(graph));
}

static const char *end_elsewhere(unsigned index, void *user) {
  rill_graph graph;
  (void)index;
  REQUIRE(rill_stream_capture_end(*(rill_stream *)user, &graph) == RILL_ERROR_CAPTURE_ACTIVE);
  REQUIRE(rill_stream_capture_abort(*(rill_stream *)user) == RILL_ERROR_CAPTURE_ACTIVE);
  return NULL;
}

static const char *end_relaxed(unsigned index, void *user) {
  rill_graph graph;
  (void)index;
  REQUIRE_OK(rill_stream_capture_end(*(rill_stream *)user, &graph));
  REQUIRE_OK(rill_graph_release(graph));
  return NULL;
}

/* G7 */
static void belongs_to_its_thread(void) {
  needs_graphs();
  rill_stream stream = new_stream("stream");
  rill_graph graph;
  const uint32_t modes[] = { RILL_CAPTURE_GLOBAL, RILL_CAPTURE_THREAD };
  for (int i = 0; i < 2; i++) {
    assert_ok(rill_stream_capture_begin(stream, modes[i]));
    run_threads(1, end_elsewhere, &stream);
    assert_ok(rill_stream_capture_end(stream, &graph));
    assert_ok(rill_graph_release(graph));
  }
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_RELAXED));
  run_threads(1, end_relaxed, &stream);
}

static const char *begin_and_leave(unsigned index, void *shared) {
  const rill_stream *stream = shared;
  (void)index;
  REQUIRE_OK(rill_stream_capture_begin(*stream, RILL_CAPTURE_THREAD));
  return NULL;
}

/* G7: a thread that has ended is distinguished from a later thread with the same address and id. */
static void belongs_to_a_thread_that_has_ended(void) {
  needs_graphs();
  rill_stream stream;
  assert_ok(rill_stream_create(dut.device, NULL, &stream));
  run_threads(1, begin_and_leave, &stream);
  for (int i = 0; i < 4; i++) run_threads(1, end_elsewhere, &stream);
  bool capturing = false;
  assert_ok(rill_stream_is_capturing(stream, &capturing));
  assert_true(capturing);
  assert_ok(rill_stream_release(stream));
}

/* G12 */
static void returns_an_empty_graph(void) {
  needs_graphs();
  rill_stream stream = new_stream("stream");
  rill_graph graph;
  size_t count = 1;
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
  assert_ok(rill_stream_capture_end(stream, &graph));
  count = 0;
  assert_ok(rill_graph_get_nodes(graph, NULL, &count));
  assert_int_equal(count, 0);
  run_graph(graph);
  assert_ok(rill_graph_release(graph));
}

/* C7.1, G14: five streams join through events and are joined back; two of them join from a stream that has itself
 * joined. */
static void forks_and_joins(void) {
  enum { STREAMS = 5 };
  needs_graphs();
  rill_stream streams[STREAMS];
  rill_event events[STREAMS];
  rill_graph graph;
  size_t nodes = 0, edges = 0;
  for (int i = 0; i < STREAMS; i++) {
    streams[i] = new_stream("of a fork");
    events[i] = new_event("of a fork");
  }
  assert_ok(rill_stream_capture_begin(streams[0], RILL_CAPTURE_GLOBAL));
  write_cell(streams[0], 0, 40);
  for (int i = 1; i < STREAMS; i++) {
    const int from = i > 2 ? 1 : 0;
    assert_ok(rill_stream_record_event(streams[from], events[from], 0));
    assert_ok(rill_stream_wait_event(streams[i], events[from], 0));
    assert_ok(rill_copy_async(streams[i], dut.memory + i, dut.memory, 4));
  }
  for (int i = STREAMS - 1; i > 0; i--) {
    assert_ok(rill_stream_record_event(streams[i], events[i], 0));
    assert_ok(rill_stream_wait_event(streams[0], events[i], 0));
  }
  assert_ok(rill_copy_async(streams[0], dut.host, dut.memory, STREAMS * 4));
  assert_ok(rill_stream_capture_end(streams[0], &graph));
  assert_ok(rill_graph_get_nodes(graph, NULL, &nodes));
  assert_ok(rill_graph_get_edges(graph, NULL, NULL, &edges));
  assert_int_equal(nodes, STREAMS + 1);
  assert_true(edges >= 2 * (STREAMS - 1));
  for (int i = 0; i < STREAMS; i++) assert_completes(streams[i]);
  rill_graph_exec exec = new_exec(graph);
  for (int round = 0; round < 10; round++) {
    memset(dut.host, 0, STREAMS * 4);
    run_exec(exec);
    for (int i = 0; i < STREAMS; i++) assert_int_equal(dut.host[i], 40);
  }
  assert_ok(rill_graph_release(graph));
}

static void is_usable(rill_stream stream, unsigned cell) {
  bool capturing = true;
  assert_ok(rill_stream_is_capturing(stream, &capturing));
  assert_false(capturing);
  write_cell(stream, cell, 70 + cell);
  read_cell(stream, cell);
  assert_completes(stream);
  assert_int_equal(dut.host[cell], 70 + cell);
}

/* C7.3, G8: the error names the unjoined stream, and all streams are usable afterwards. */
static void names_streams_that_were_not_joined(void) {
  needs_graphs();
  rill_stream stream = new_stream("origin"), lost = new_stream("the lost one"), joined = new_stream("the joined one");
  rill_event event = new_event("event");
  rill_graph graph = { 1 };
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
  write_cell(stream, 0, 1);
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_ok(rill_stream_wait_event(lost, event, 0));
  assert_ok(rill_stream_wait_event(joined, event, 0));
  write_cell(lost, 1, 1);
  write_cell(joined, 2, 1);
  assert_ok(rill_stream_wait_stream(stream, joined));
  assert_fails(rill_stream_capture_end(stream, &graph), RILL_ERROR_CAPTURE_INVALID);
  assert_says("the lost one");
  assert_int_equal(graph.id, 0);
  is_usable(stream, 0);
  is_usable(lost, 1);
  is_usable(joined, 2);
  assert_fails(rill_stream_capture_end(stream, &graph), RILL_ERROR_INVALID_ARGUMENT);
  /* an event of it stands for no work, until it is recorded again */
  assert_fails(rill_stream_wait_event(stream, event, 0), RILL_ERROR_NOT_RECORDED);
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_becomes_ready(event);
}

/* G8: work that is captured after a stream was joined back is unjoined. */
static void work_after_the_join_is_not_joined(void) {
  needs_graphs();
  rill_stream stream = new_stream("origin"), forked = new_stream("forked");
  rill_graph graph;
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
  write_cell(stream, 0, 1);
  assert_ok(rill_stream_wait_stream(forked, stream));
  write_cell(forked, 1, 1);
  assert_ok(rill_stream_wait_stream(stream, forked));
  write_cell(forked, 1, 2);
  assert_fails(rill_stream_capture_end(stream, &graph), RILL_ERROR_CAPTURE_INVALID);
  is_usable(stream, 0);
  is_usable(forked, 1);
}

/* C7.3: two captures cannot be merged. */
static void does_not_merge_captures(void) {
  needs_graphs();
  rill_stream one = new_stream("one"), other = new_stream("other");
  rill_event event = new_event("of one");
  rill_graph graphs[2];
  assert_ok(rill_stream_capture_begin(one, RILL_CAPTURE_THREAD));
  assert_ok(rill_stream_capture_begin(other, RILL_CAPTURE_THREAD));
  write_cell(one, 0, 3);
  assert_ok(rill_stream_record_event(one, event, 0));
  assert_fails(rill_stream_wait_event(other, event, 0), RILL_ERROR_CAPTURE_ACTIVE);
  assert_fails(rill_stream_wait_stream(other, one), RILL_ERROR_CAPTURE_ACTIVE);
  write_cell(other, 1, 4);
  assert_ok(rill_stream_capture_end(one, &graphs[0]));
  assert_ok(rill_stream_capture_end(other, &graphs[1]));
  for (int i = 0; i < 2; i++) {
    run_graph(graphs[i]);
    assert_ok(rill_graph_release(graphs[i]));
  }
}

/* C3.8: a record in a capture does not release streams that are held for the event. */
static void does_not_release_held_streams(void) {
  needs_graphs();
  rill_stream stream = new_stream("capturing"), held = new_stream("held");
  rill_event event = new_event("awaited");
  rill_graph graph;
  assert_ok(rill_stream_wait_event(held, event, 0));
  write_cell(held, 0, 5);
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
  assert_fails(rill_stream_record_event(stream, event, 0), RILL_ERROR_CAPTURE_ACTIVE);
  /* a held stream cannot join a capture */
  rill_event inside = new_event("inside");
  assert_ok(rill_stream_record_event(stream, inside, 0));
  assert_fails(rill_stream_wait_event(held, inside, 0), RILL_ERROR_NOT_READY);
  assert_ok(rill_stream_capture_end(stream, &graph));
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_completes(held);
  assert_ok(rill_graph_release(graph));
}

/* G18: the origin stream is released during the capture. */
static void is_abandoned_with_its_stream(void) {
  needs_graphs();
  rill_stream stream, forked = new_stream("forked");
  assert_ok(rill_stream_create(dut.device, NULL, &stream));
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
  write_cell(stream, 0, 1);
  assert_ok(rill_stream_wait_stream(forked, stream));
  write_cell(forked, 1, 1);
  assert_ok(rill_stream_release(stream));
  is_usable(forked, 1);
}

/* G9: work of a stream that has not joined the capture is not part of it. */
static void leaves_other_streams_alone(void) {
  needs_graphs();
  rill_stream stream = new_stream("capturing"), other = new_stream("other");
  rill_graph graph;
  size_t count = 0;
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_RELAXED));
  write_cell(stream, 0, 1);
  write_cell(other, 1, 2);
  read_cell(other, 1);
  assert_ok(rill_stream_capture_end(stream, &graph));
  assert_completes(other);
  assert_int_equal(dut.host[1], 2);
  assert_ok(rill_graph_get_nodes(graph, NULL, &count));
  assert_int_equal(count, 1);
  assert_ok(rill_graph_release(graph));
}

/* G17, G39: objects released during a capture are destroyed, and the capture continues. */
static void continues_beside_releases(void) {
  rill_graph graph = new_graph(), captured;
  rill_stream stream = new_stream("capturing"), gone;
  rill_event event;
  add_write(graph, NULL, 0, 0, 3);
  rill_graph_exec exec = new_exec(graph);
  run_exec(exec);
  assert_ok(rill_stream_create(dut.device, NULL, &gone));
  assert_ok(rill_event_create(dut.device, NULL, &event));
  write_cell(gone, 1, 4);
  assert_ok(rill_stream_record_event(gone, event, 0));
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
  write_cell(stream, 2, 5);
  assert_ok(rill_graph_exec_release(exec));
  assert_ok(rill_graph_release(graph));
  assert_ok(rill_event_release(event));
  assert_ok(rill_stream_release(gone));
  read_cell(stream, 2);
  assert_ok(rill_stream_capture_end(stream, &captured));
  run_graph(captured);
  assert_int_equal(dut.host[2], 5);
  assert_ok(rill_graph_release(captured));
}

/* G27: a capture can end only once; an abort without a capture does nothing. */
static void ends_once(void) {
  needs_graphs();
  rill_stream stream = new_stream("capturing");
  rill_graph graph, none;
  assert_fails(rill_stream_capture_begin(stream, 77), RILL_ERROR_INVALID_ARGUMENT); /* G3 */
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_THREAD));
  assert_ok(rill_stream_capture_end(stream, &graph));
  assert_fails(rill_stream_capture_end(stream, &none), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_stream_capture_abort(stream));
  assert_ok(rill_stream_capture_abort(stream));
  assert_ok(rill_graph_release(graph));
}

TESTS_ON_EACH_DEVICE("rill_stream_capture_end", TEST(refuses_bad_handles), TEST(refuses_streams_without_a_capture),
                     TEST(belongs_to_its_thread), TEST(belongs_to_a_thread_that_has_ended),
                     TEST(returns_an_empty_graph), TEST(forks_and_joins), TEST(names_streams_that_were_not_joined),
                     TEST(work_after_the_join_is_not_joined), TEST(does_not_merge_captures),
                     TEST(does_not_release_held_streams), TEST(is_abandoned_with_its_stream),
                     TEST(leaves_other_streams_alone), TEST(continues_beside_releases), TEST(ends_once))
