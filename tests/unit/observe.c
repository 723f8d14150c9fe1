/* core/diagnose/observe.h: what observers see of each operation, and what they can refuse. */
#include "core/diagnose/observe.h"

#include "support/testing.h"

#include <stdio.h>

enum { SEEN_MOST = 64 };

struct seen {
  enum rill__observed_kind kind;
  bool ended, held;
  uint64_t stream; /* id of the stream; 0: none */
  uint64_t sequence;
  size_t size;
  rill_status status;
};

static struct seen log_of[SEEN_MOST];
static size_t count;
static int refused = -1; /* the kind of operation to refuse */

static rill_status before(struct rill__observed *what) {
  assert_true(count < SEEN_MOST);
  struct seen *const seen = &log_of[count++];
  *seen = (struct seen){ .kind = what->kind, .held = what->held, .status = RILL_OK };
  if (what->stream != NULL) seen->stream = what->stream->number;
  if (what->kind == RILL__OBSERVED_COPY) seen->size = what->copy.width;
  if (what->kind == RILL__OBSERVED_FILL) seen->size = what->fill.width * what->fill.pattern_size;
  if (what->kind == RILL__OBSERVED_ALLOC || what->kind == RILL__OBSERVED_FREE) seen->size = what->memory.size;
  return (int)what->kind == refused ? rill__fail(RILL_ERROR_OUT_OF_MEMORY, "refused by the test") : RILL_OK;
}

static rill_status after(struct rill__observed *what, rill_status status) {
  struct seen *const seen = &log_of[count - 1];
  assert_int_equal(seen->kind, what->kind);
  assert_int_equal(what->device->base.id, dut.device.id);
  seen->ended = true;
  seen->sequence = what->sequence;
  seen->status = status;
  return status;
}

static const struct rill__observer observer = { before, after };

static void begin_seeing(void) {
  count = 0;
  refused = -1;
  rill__observe(RILL__OBSERVER_FAULTS, &observer);
}
static void end_seeing(void) { rill__observe(RILL__OBSERVER_FAULTS, NULL); }

#define ASSERT_SEEN(...)                                              \
  do {                                                                \
    static const enum rill__observed_kind kinds_[] = { __VA_ARGS__ }; \
    assert_int_equal(count, sizeof kinds_ / sizeof *kinds_);          \
    for (size_t i_ = 0; i_ < count; i_++) {                           \
      assert_int_equal(log_of[i_].kind, kinds_[i_]);                  \
      assert_true(log_of[i_].ended);                                  \
      assert_int_equal(log_of[i_].status, RILL_OK);                   \
    }                                                                 \
  } while (0)

static void do_nothing(void *user, rill_status status) { (void)user, (void)status; }

/* Each operation of a stream is seen once, with its position in the stream. */
static void sees_each_operation(void) {
  rill_stream stream = new_stream("one"), other = new_stream("two");
  rill_event event = new_event("here");
  const uint32_t pattern[2] = { 1, 2 };
  begin_seeing();
  assert_ok(rill_fill_async(stream, dut.memory, &pattern[0], 4, 3));
  assert_ok(rill_fill_2d_async(stream, dut.memory, 64, &pattern[0], 4, 2, 2));
  assert_ok(rill_copy_async(stream, dut.host, dut.memory, 12));
  assert_ok(rill_copy_2d_async(stream, dut.host, 64, dut.memory, 64, 8, 2));
  assert_ok(rill_stream_host_call(stream, do_nothing, NULL));
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_ok(rill_stream_wait_event(other, event, RILL_WAIT_IF_RECORDED));
  const size_t waits = count; /* 6 if the event was already complete */
  end_seeing();
  assert_true(waits == 6 || waits == 7);
  count = 6;
  ASSERT_SEEN(RILL__OBSERVED_FILL, RILL__OBSERVED_FILL, RILL__OBSERVED_COPY, RILL__OBSERVED_COPY,
              RILL__OBSERVED_HOST_CALL, RILL__OBSERVED_RECORD);
  assert_int_equal(log_of[0].size, 12);
  assert_int_equal(log_of[2].size, 12);
  for (size_t i = 1; i < 6; i++) {
    assert_int_equal(log_of[i].stream, log_of[0].stream);
    assert_int_equal(log_of[i].sequence, log_of[0].sequence + i);
  }
  if (waits == 7) assert_int_equal(log_of[6].kind, RILL__OBSERVED_WAIT);
  assert_completes(stream);
}

static void sees_memory_and_waits(void) {
  rill_stream stream = new_stream("one");
  void *p = NULL, *q = NULL;
  begin_seeing();
  assert_ok(rill_alloc(dut.device, 1000, RILL_MEMORY_DEVICE, &p));
  assert_ok(rill_alloc_async(stream, 2000, &q));
  assert_ok(rill_free_async(stream, q));
  assert_ok(rill_free(p));
  assert_ok(rill_device_synchronize(dut.device));
  end_seeing();
  ASSERT_SEEN(RILL__OBSERVED_ALLOC, RILL__OBSERVED_ALLOC, RILL__OBSERVED_FREE, RILL__OBSERVED_FREE,
              RILL__OBSERVED_DEVICE_WAIT);
  assert_int_equal(log_of[0].size, 1000);
  assert_int_equal(log_of[0].stream, 0);
  assert_int_equal(log_of[1].size, 2000);
  assert_int_not_equal(log_of[1].stream, 0);
  assert_true(log_of[2].size >= 2000);
  assert_int_equal(log_of[2].stream, log_of[1].stream);
  assert_true(log_of[3].size >= 1000);
}

/* Work of a held stream reaches the driver when the event is recorded. */
static void sees_held_work_when_it_is_submitted(void) {
  rill_stream stream = new_stream("held"), other = new_stream("recording");
  rill_event event = new_event("later");
  begin_seeing();
  assert_ok(rill_stream_wait_event(stream, event, 0));
  write_cell(stream, 0, 7);
  assert_int_equal(count, 0);
  assert_ok(rill_stream_record_event(other, event, 0));
  end_seeing();
  ASSERT_SEEN(RILL__OBSERVED_RECORD, RILL__OBSERVED_WAIT, RILL__OBSERVED_FILL);
  assert_false(log_of[0].held);
  assert_true(log_of[1].held && log_of[2].held);
  assert_true(log_of[2].sequence > log_of[1].sequence);
  assert_completes(stream);
}

/* The operation does not reach the driver, and the caller gets the observer's status. */
static void can_refuse(void) {
  rill_stream stream = new_stream("one");
  const uint32_t pattern = 9;
  void *p = NULL;
  begin_seeing();
  refused = RILL__OBSERVED_FILL;
  assert_fails(rill_fill_async(stream, dut.memory, &pattern, 4, 1), RILL_ERROR_OUT_OF_MEMORY);
  assert_says("refused by the test");
  assert_int_equal(count, 1);
  assert_false(log_of[0].ended); /* an observer that refuses is not notified of the end */
  refused = RILL__OBSERVED_ALLOC;
  assert_fails(rill_alloc(dut.device, 64, RILL_MEMORY_DEVICE, &p), RILL_ERROR_OUT_OF_MEMORY);
  assert_null(p);
  assert_fails(rill_alloc_async(stream, 64, &p), RILL_ERROR_OUT_OF_MEMORY);
  assert_null(p);
  end_seeing();
  read_cell(stream, 0);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 0);
}

/* Launches of a graph are seen, captured operations are not. */
static void sees_launches_of_graphs(void) {
  const char *why = "";
  if (!rill_device_supports(dut.device, RILL_FEATURE_GRAPH, &why)) skip_because(why);
  rill_stream stream = new_stream("one");
  rill_graph graph;
  rill_graph_exec exec;
  begin_seeing();
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_THREAD));
  write_cell(stream, 0, 7);
  assert_ok(rill_stream_capture_end(stream, &graph));
  keep_graph_until_end(graph);
  assert_ok(rill_graph_instantiate(graph, &exec));
  keep_exec_until_end(exec);
  assert_int_equal(count, 0);
  assert_ok(rill_graph_launch(exec, stream));
  end_seeing();
  ASSERT_SEEN(RILL__OBSERVED_GRAPH);
  assert_completes(stream);
}

TESTS_ON_EACH_DEVICE("observe", TEST(sees_each_operation), TEST(sees_memory_and_waits),
                     TEST(sees_held_work_when_it_is_submitted), TEST(can_refuse), TEST(sees_launches_of_graphs))
