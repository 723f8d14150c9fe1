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

struct reported {
  pthread_t thread;
  rill_status status;
  uint32_t cell;
};

static void tell(void *user, rill_status status) {
  struct reported *reported = user;
  reported->thread = pthread_self();
  reported->status = status;
  reported->cell = dut.host[0];
}

/* C3.13, H2, H3, H12: the function runs on another thread, with the given data and RILL_OK, after earlier work of the
 * stream. */
static void runs_in_stream_order(void) {
  struct reported reported = { pthread_self(), RILL_ERROR_INTERNAL, 0 }, later = reported;
  rill_stream stream = new_stream("stream");
  struct gate *gate = gate_close(stream);
  write_cell(stream, 0, 6);
  read_cell(stream, 0);
  assert_ok(rill_stream_host_call(stream, tell, &reported));
  write_cell(stream, 0, 7);
  read_cell(stream, 0);
  assert_ok(rill_stream_host_call(stream, tell, &later));
  assert_false(is_complete(stream));
  gate_open(gate);
  assert_completes(stream);
  assert_false(pthread_equal(reported.thread, pthread_self()));
  assert_int_equal(reported.status, RILL_OK);
  assert_int_equal(reported.cell, 6);
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

/* H3: later work sees the effects of the host call. */
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
  const uint64_t end = now_ns() + TIMEOUT_NS / 2;
  while (__atomic_load_n((const unsigned *)user, __ATOMIC_SEQ_CST) == 0 && now_ns() < end)
    let_pass_ns(MILLISECOND / 10);
}

/* C3.13, H4: other streams are not blocked, unless they have host calls of their own. */
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

/* The statuses of calls inside a host call that would have blocked. */
struct blocked {
  rill_stream own, other;
  rill_event event;
  rill_pool pool;
  void *memory, *registered;
  unsigned refused, others;
  char text[256];
};

static void note_refusal(struct blocked *blocked, rill_status status) {
  const char *const text = rill_last_error_text();
  if (status != RILL_ERROR_INVALID_ARGUMENT || strstr(text, "inside a host call") == NULL) {
    blocked->others++;
    (void)strncpy(blocked->text, text, sizeof blocked->text - 1);
  } else {
    blocked->refused++;
  }
}

static void block_in_every_way(void *user, rill_status status) {
  struct blocked *const b = user;
  rill_ipc_handle handle;
  (void)status;
  note_refusal(b, rill_stream_synchronize(b->own));
  note_refusal(b, rill_stream_synchronize(b->other));
  note_refusal(b, rill_stream_synchronize_for(b->own, 1));
  note_refusal(b, rill_event_synchronize(b->event));
  note_refusal(b, rill_event_synchronize_for(b->event, 1));
  note_refusal(b, rill_device_synchronize(dut.device));
  note_refusal(b, rill_free(b->memory));
  note_refusal(b, rill_host_unregister(b->registered));
  note_refusal(b, rill_pool_trim(b->pool, 0));
  note_refusal(b, rill_memory_ipc_export(b->memory, &handle));
  if (rill_free(NULL) != RILL_OK) b->others++;
}

/* C3.13: a call that may block is refused with a text, and nothing deadlocks. Afterwards everything works as before. */
static void refuses_to_block_inside(void) {
  struct blocked b = { .own = new_stream("own"), .other = new_stream("other"), .event = new_event("event") };
  b.registered = aligned_alloc(4096, 4096);
  assert_non_null(b.registered);
  assert_ok(rill_alloc(dut.device, 4096, RILL_MEMORY_DEVICE, &b.memory));
  assert_ok(rill_host_register(dut.device, b.registered, 4096));
  assert_ok(rill_pool_default(dut.device, &b.pool));
  assert_ok(rill_stream_host_call(b.own, block_in_every_way, &b));
  assert_ok(rill_stream_record_event(b.own, b.event, 0));
  assert_completes(b.own);
  if (b.others != 0) print_error("%s\n", b.text);
  assert_int_equal(b.others, 0);
  assert_int_equal(b.refused, 10);
  assert_becomes_ready(b.event);
  assert_ok(rill_host_unregister(b.registered));
  assert_ok(rill_free(b.memory));
  free(b.registered);
}

/* The same holds for host calls of a held stream, and of a stream whose event will never be recorded. */
static void refuses_to_block_in_calls_of_held_streams(void) {
  struct blocked b = { .own = new_stream("own"), .other = new_stream("other"), .event = new_event("event") };
  rill_event never, later = new_event("later");
  b.registered = aligned_alloc(4096, 4096);
  assert_non_null(b.registered);
  assert_ok(rill_alloc(dut.device, 4096, RILL_MEMORY_DEVICE, &b.memory));
  assert_ok(rill_host_register(dut.device, b.registered, 4096));
  assert_ok(rill_pool_default(dut.device, &b.pool));
  assert_ok(rill_stream_wait_event(b.own, later, 0));
  assert_ok(rill_stream_host_call(b.own, block_in_every_way, &b));
  assert_ok(rill_stream_record_event(b.other, later, 0));
  assert_completes(b.own);
  assert_ok(rill_event_create(dut.device, NULL, &never));
  assert_ok(rill_stream_wait_event(b.own, never, 0));
  assert_ok(rill_stream_host_call(b.own, block_in_every_way, &b));
  assert_ok(rill_event_release(never));
  assert_fails(rill_stream_synchronize(b.own), RILL_ERROR_NOT_RECORDED);
  assert_completes(b.own);
  assert_int_equal(b.others, 0);
  assert_int_equal(b.refused, 20);
  assert_ok(rill_host_unregister(b.registered));
  assert_ok(rill_free(b.memory));
  free(b.registered);
}

static void copy_inside(void *user, rill_status status) {
  struct blocked *const b = user;
  unsigned char source[64] = { 0 };
  (void)status;
  note_refusal(b, rill_copy_async(b->own, dut.memory, source, sizeof source));
  note_refusal(b, rill_copy_2d_async(b->own, dut.memory, 16, source, 16, 8, 3));
}

/* On the cpu device a copy blocks if earlier work may still write its pageable source; here that work is the host call
 * itself. */
static void refuses_copies_that_would_block_inside(void) {
  if (dut.gpu) return;
  struct blocked b = { .own = new_stream("own") };
  assert_ok(rill_stream_host_call(b.own, copy_inside, &b));
  assert_completes(b.own);
  assert_int_equal(b.others, 0);
  assert_int_equal(b.refused, 2);
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

TESTS_ON_EACH_DEVICE("rill_stream_host_call", TEST(refuses_bad_handles), TEST(refuses_null), TEST(runs_in_stream_order),
                     TEST(accepts_null_user_data), TEST(comes_before_later_work), TEST(blocks_its_own_stream_only),
                     TEST(refuses_to_block_inside), TEST(refuses_to_block_in_calls_of_held_streams),
                     TEST(refuses_copies_that_would_block_inside), TEST(runs_exactly_once_from_many_threads),
                     TEST(keeps_the_order_of_one_stream), TEST(runs_when_the_stream_has_been_released))
