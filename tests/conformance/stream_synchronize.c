/* rill_stream_synchronize */
#include "support/testing.h"

static rill_status call_with_stream(uint64_t id) { return rill_stream_synchronize((rill_stream){ id }); }

/* Q13 */
static void refuses_bad_handles(void) { refuses_bad_streams("rill_stream_synchronize", call_with_stream); }

/* Q1, Q2, Q4 */
static void returns_at_once_when_idle(void) {
  rill_stream stream = new_stream("stream");
  for (int i = 0; i < 10; i++) assert_ok(rill_stream_synchronize(stream));
  write_cell(stream, 0, 1);
  for (int i = 0; i < 10; i++) assert_ok(rill_stream_synchronize(stream));
}

/* C3.10 */
static void returns_when_all_is_done(void) {
  rill_stream stream = new_stream("stream");
  for (uint32_t round = 1; round <= scaled(200); round++) {
    for (unsigned i = 0; i < 8; i++) write_cell(stream, i, round + i);
    assert_ok(rill_copy_async(stream, dut.host, dut.memory, 8 * sizeof *dut.host));
    assert_ok(rill_stream_synchronize(stream));
    for (unsigned i = 0; i < 8; i++) assert_int_equal(dut.host[i], round + i);
    assert_true(is_complete(stream));
  }
}

static const char *synchronizes(unsigned index, void *shared) {
  (void)index;
  REQUIRE_OK(rill_stream_synchronize(*(const rill_stream *)shared));
  REQUIRE(__atomic_load_n(dut.host, __ATOMIC_SEQ_CST) == 9);
  return NULL;
}

/* C3.10, Q7: many threads wait, and none returns before the work is complete. */
static void waits_in_many_threads(void) {
  rill_stream stream = new_stream("stream");
  struct gate *gate = gate_close(stream);
  write_cell(stream, 0, 9);
  read_cell(stream, 0);
  struct background *threads = start_threads(8, synchronizes, &stream);
  gate_open(gate);
  join_threads(threads);
}

/* W18: a waiting thread delays no other thread. */
static void blocks_the_calling_thread_only(void) {
  rill_stream stream = new_stream("stream"), other = new_stream("other");
  struct gate *gate = gate_close(stream);
  write_cell(stream, 0, 9);
  read_cell(stream, 0);
  struct background *threads = start_threads(4, synchronizes, &stream);
  for (uint32_t i = 0; i < 50; i++) {
    rill_event event = new_event("event");
    write_cell(other, 1, i);
    assert_ok(rill_stream_record_event(other, event, 0));
    assert_completes(other);
    assert_false(is_complete(stream));
    assert_ok(rill_stream_wait_event(stream, event, 0)); /* the awaited stream still accepts work */
  }
  gate_open(gate);
  join_threads(threads);
}

static const char *synchronizes_or_is_late(unsigned index, void *shared) {
  (void)index;
  const rill_status status = rill_stream_synchronize(*(const rill_stream *)shared);
  REQUIRE(status == RILL_OK || status == RILL_ERROR_STALE_HANDLE);
  return NULL;
}

/* C1.2, C1.3: the handle may be released while threads are waiting with it. */
static void survives_the_release_of_its_handle(void) {
  for (unsigned i = 0; i < scaled(50); i++) {
    rill_stream stream;
    assert_ok(rill_stream_create(dut.device, NULL, &stream));
    for (unsigned j = 0; j < 20; j++) write_cell(stream, j, i);
    struct background *threads = start_threads(2, synchronizes_or_is_late, &stream);
    assert_ok(rill_stream_release(stream));
    join_threads(threads);
    assert_ok(rill_device_synchronize(dut.device)); /* wait, because the next stream writes to the same cells */
  }
}

TESTS_ON_EACH_DEVICE("rill_stream_synchronize", TEST(refuses_bad_handles), TEST(returns_at_once_when_idle),
                     TEST(returns_when_all_is_done), TEST(waits_in_many_threads), TEST(blocks_the_calling_thread_only),
                     TEST(survives_the_release_of_its_handle))
