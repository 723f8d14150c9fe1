/* rill_stream_host_call */
#include "support/testing.h"

#include <pthread.h>

static void count(void *user, rill_status status) {
  (void)status;
  (void)__atomic_add_fetch((unsigned *)user, 1, __ATOMIC_SEQ_CST);
}

static unsigned counted(const unsigned *counter) { return __atomic_load_n(counter, __ATOMIC_SEQ_CST); }

static rill_status call_with_stream(uint64_t id) {
  unsigned calls = 0;
  const rill_status status = rill_stream_host_call((rill_stream){ id }, count, &calls);
  assert_int_equal(counted(&calls), 0);
  return status;
}

static void refuses_bad_handles(void) { refuses_bad_streams("rill_stream_host_call", call_with_stream); }

/* H1 */
static void refuses_null(void) {
  assert_fails(rill_stream_host_call(new_stream("stream"), NULL, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

struct told {
  pthread_t thread;
  rill_status status;
  uint32_t cell;
};

static void tell(void *user, rill_status status) {
  struct told *told = user;
  told->thread = pthread_self();
  told->status = status;
  told->cell = dut.host[0];
}

/* C3.13, H2, H3, H12: on another thread, with the data that was given, RILL_OK, after the work before it. */
static void runs_in_stream_order(void) {
  struct told told = { pthread_self(), RILL_ERROR_INTERNAL, 0 }, later = told;
  rill_stream stream = new_stream("stream");
  struct gate *gate = gate_close(stream);
  write_cell(stream, 0, 6);
  read_cell(stream, 0);
  assert_ok(rill_stream_host_call(stream, tell, &told));
  write_cell(stream, 0, 7);
  read_cell(stream, 0);
  assert_ok(rill_stream_host_call(stream, tell, &later));
  assert_false(is_complete(stream));
  gate_open(gate);
  assert_completes(stream);
  assert_false(pthread_equal(told.thread, pthread_self()));
  assert_int_equal(told.status, RILL_OK);
  assert_int_equal(told.cell, 6);
  assert_int_equal(later.cell, 7);
}

static bool null_arrived;

static void note_null(void *user, rill_status status) {
  (void)status;
  __atomic_store_n(&null_arrived, user == NULL, __ATOMIC_SEQ_CST);
}

static void accepts_null_user_data(void) {
  null_arrived = false;
  rill_stream stream = new_stream("stream");
  assert_ok(rill_stream_host_call(stream, note_null, NULL));
  assert_completes(stream);
  assert_true(__atomic_load_n(&null_arrived, __ATOMIC_SEQ_CST));
}

static void change_cell(void *user, rill_status status) {
  (void)status;
  *(uint32_t *)user = 31;
}

/* H3: later work sees what it did. */
static void comes_before_later_work(void) {
  rill_stream stream = new_stream("stream");
  assert_ok(rill_stream_host_call(stream, change_cell, dut.host + 5));
  assert_ok(rill_copy_async(stream, dut.memory, dut.host + 5, sizeof(uint32_t)));
  read_cell(stream, 0);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 31);
}

static void wait_for_flag(void *user, rill_status status) {
  (void)status;
  const uint64_t end = now_ns() + PATIENCE_NS / 2;
  while (__atomic_load_n((const unsigned *)user, __ATOMIC_SEQ_CST) == 0 && now_ns() < end)
    let_pass_ns(MILLISECOND / 10);
}

/* C3.13, H4: other streams go on, as long as they have no host calls of their own. */
static void blocks_its_own_stream_only(void) {
  unsigned flag = 0;
  rill_stream stream = new_stream("stream"), other = new_stream("other");
  rill_event event = new_event("event");
  assert_ok(rill_stream_host_call(stream, wait_for_flag, &flag));
  assert_ok(rill_stream_record_event(stream, event, 0));
  write_cell(other, 0, 8);
  read_cell(other, 0);
  assert_completes(other);
  assert_int_equal(dut.host[0], 8);
  const bool ready = is_ready(event);
  __atomic_store_n(&flag, 1, __ATOMIC_SEQ_CST);
  assert_completes(stream);
  assert_false(ready);
}

struct shared {
  rill_stream streams[8];
  unsigned calls;
};

static const char *submits(unsigned index, void *user) {
  struct shared *shared = user;
  for (unsigned i = 0; i < 100; i++)
    REQUIRE_OK(rill_stream_host_call(shared->streams[(index + i) % 8], count, &shared->calls));
  return NULL;
}

/* C3.13, H7 */
static void runs_exactly_once_from_many_threads(void) {
  struct shared shared = { .calls = 0 };
  for (unsigned i = 0; i < 8; i++) shared.streams[i] = new_stream("stream");
  run_threads(8, submits, &shared);
  for (unsigned i = 0; i < 8; i++) assert_completes(shared.streams[i]);
  assert_int_equal(counted(&shared.calls), 800);
}

struct sequence {
  unsigned next;
  bool broken;
  struct step {
    struct sequence *sequence;
    unsigned index;
  } steps[1000];
};

static void take_step(void *user, rill_status status) {
  (void)status;
  const struct step *step = user;
  if (step->sequence->next++ != step->index) step->sequence->broken = true;
}

static void keeps_the_order_of_one_stream(void) {
  static struct sequence sequence;
  sequence = (struct sequence){ .next = 0 };
  rill_stream stream = new_stream("stream");
  for (unsigned i = 0; i < 1000; i++) {
    sequence.steps[i] = (struct step){ &sequence, i };
    assert_ok(rill_stream_host_call(stream, take_step, &sequence.steps[i]));
  }
  assert_completes(stream);
  assert_int_equal(sequence.next, 1000);
  assert_false(sequence.broken);
}

/* C1.3, H11 */
static void runs_when_the_stream_has_been_released(void) {
  unsigned calls = 0;
  rill_stream stream = new_stream("stream");
  rill_event event = new_event("event");
  struct gate *gate = gate_close(stream);
  assert_ok(rill_stream_host_call(stream, count, &calls));
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_ok(rill_stream_release(stream));
  gate_open(gate);
  assert_becomes_ready(event);
  assert_int_equal(counted(&calls), 1);
}

int main(void) {
  static const struct test tests[] = {
    TEST(refuses_bad_handles),
    TEST(refuses_null),
    TEST(runs_in_stream_order),
    TEST(accepts_null_user_data),
    TEST(comes_before_later_work),
    TEST(blocks_its_own_stream_only),
    TEST(runs_exactly_once_from_many_threads),
    TEST(keeps_the_order_of_one_stream),
    TEST(runs_when_the_stream_has_been_released),
  };
  return RUN_ON_EACH_DEVICE("rill_stream_host_call", tests);
}
