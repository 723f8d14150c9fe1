/* rill_fault_set: its grammar, and the calls that it makes fail on every backend */
#include "support/testing.h"

#include <stdio.h>

static const uint32_t zeros[1];

static void set(const char *rules) { assert_ok(rill_fault_set(rules)); }

static void refuses_malformed_rules(void) {
  static const struct {
    const char *rules, *says;
  } bad[] = {
    { "alloc", "character 1: \"alloc\" is not a rule" },
    { ":1", "character 1: \":1\" is not a rule" },
    { "fill:1,alocate:1", "character 8: \"alocate\" is not a call; the calls are any, device_open" },
    { "alloc:0", "character 7: \"0\" is neither the number of a call" },
    { "alloc:x", "character 7: \"x\" is neither" },
    { "alloc:99999999999999999999", "character 7" },
    { "alloc:1-", "character 8: \"-\" is not expected" },
    { "alloc:1=ok", "character 9: \"ok\" is not an error status" },
    { "alloc:1=Timeout", "character 9: \"Timeout\" is not an error status" },
    { "alloc:1=", "character 9: \"\" is not an error status" },
    { "alloc:p=1.5", "character 9: \"1.5\" is not a probability" },
    { "alloc:p=", "character 9" },
    { "alloc@:1", "character 7: a label has 1 to 63 bytes, but this one has 0" },
    { "seed=x", "character 6: \"x\" is not a seed" },
    { "comm_late:1", "character 12: \"\" is not a time" },
    { "comm_late:1=5h", "character 13: \"5h\" is not a time" },
    { "comm_count:1=x", "character 14: \"x\" is not a number" },
    { "comm_die:1=3", "character 11: a rule of comm_die has no" },
  };
  set("fill:1=timeout");
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_fails(rill_fault_set(bad[i].rules), RILL_ERROR_INVALID_ARGUMENT);
    assert_says(bad[i].says);
  }
  assert_fails(rill_fault_set(NULL), RILL_ERROR_INVALID_ARGUMENT);
  char many[33 * 8 + 1] = "";
  for (size_t i = 0; i < 33; i++) memcpy(many + 7 * i, "fill:1,", 8);
  assert_fails(rill_fault_set(many), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("more than 32 rules");
  many[7 * 32] = '\0';
  /* earlier rules remain in force */
  rill_stream stream = new_stream("stream");
  assert_fails(rill_fill_async(stream, dut.memory, zeros, 4, 1), RILL_ERROR_TIMEOUT);
  set(many);
  set("alloc@a:b@c:7+=not_found,,seed=4294967296,any:p=0,fill:p=1.0=timeout,");
  assert_fails(rill_fill_async(stream, dut.memory, zeros, 4, 1), RILL_ERROR_TIMEOUT);
  set("");
  assert_ok(rill_fill_async(stream, dut.memory, zeros, 4, 1));
}

static void fails_the_nth_call(void) {
  rill_stream stream = new_stream("stream");
  set("fill:3=out_of_range");
  for (unsigned i = 0; i < 2; i++) assert_ok(rill_fill_async(stream, dut.memory, zeros, 4, 1));
  set("");
  write_cell(stream, 0, 7);
  set("fill:2=out_of_range");
  assert_ok(rill_fill_async(stream, dut.memory + 1, zeros, 4, 1));
  assert_fails(rill_fill_async(stream, dut.memory, zeros, 4, 1), RILL_ERROR_OUT_OF_RANGE);
  assert_says("injected by RILL_FAULT: rule \"fill:2=out_of_range\", call 2 of fill");
  read_cell(stream, 0);
  assert_ok(rill_stream_synchronize(stream));
  assert_int_equal(dut.host[0], 7); /* nothing was enqueued */
  assert_int_equal(rill_fault_count(), 1);
  set("fill:2+");
  assert_ok(rill_fill_async(stream, dut.memory, zeros, 4, 1));
  for (unsigned i = 0; i < 3; i++) assert_fails(rill_fill_async(stream, dut.memory, zeros, 4, 1), RILL_ERROR_BACKEND);
  assert_says("call 4 of fill");
  assert_int_equal(rill_fault_count(), 3);
  rill_fault_clear();
}

/* Each kind of backend call that a small program makes can fail, and the public function reports the failure. */
static void fails_each_kind_of_call(void) {
  rill_stream stream = new_stream("stream"), made;
  rill_event event = new_event("event"), made_event;
  bool out;
  set("record:1=unsupported,wait:1=not_ready,synchronize:1=timeout,copy:1,host_call:1=not_found");
  assert_fails(rill_stream_record_event(stream, event, 0), RILL_ERROR_UNSUPPORTED);
  assert_ok(rill_event_is_recorded(event, &out));
  assert_false(out);
  assert_ok(rill_stream_record_event(stream, event, 0));
  rill_stream other = new_stream("other");
  assert_fails(rill_copy_async(stream, dut.host, dut.memory, 4), RILL_ERROR_BACKEND);
  assert_ok(rill_copy_async(stream, dut.host, dut.memory, 4));
  struct gate *gate = gate_close(stream);
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_fails(rill_stream_wait_event(other, event, 0), RILL_ERROR_NOT_READY);
  assert_ok(rill_stream_wait_event(other, event, 0));
  gate_open(gate);
  assert_fails(rill_stream_synchronize(other), RILL_ERROR_TIMEOUT);
  assert_ok(rill_stream_synchronize(other));
  set("stream_create:1=out_of_memory,event_create:1+=internal");
  assert_fails(rill_stream_create(dut.device, NULL, &made), RILL_ERROR_OUT_OF_MEMORY);
  assert_int_equal(made.id, 0);
  assert_fails(rill_event_create(dut.device, RILL_EVENT_OPTIONS(.timing = true, .blocking_sync = true), &made_event),
               RILL_ERROR_INTERNAL);
  assert_int_equal(made_event.id, 0);
  rill_fault_clear();
}

/* Core writes the text of an out-of-memory error itself; the text must still say that the failure was injected. */
static void failed_allocations_name_the_rule(void) {
  void *p;
  set("alloc:1+=out_of_memory");
  assert_fails(rill_alloc(dut.device, 1 << 20, RILL_MEMORY_DEVICE, &p), RILL_ERROR_OUT_OF_MEMORY);
  assert_says("injected by RILL_FAULT: rule \"alloc:1+=out_of_memory\"");
  assert_null(p);
  set("");
  assert_ok(rill_alloc(dut.device, 1 << 20, RILL_MEMORY_DEVICE, &p));
  assert_ok(rill_free(p));
}

static void matches_labels(void) {
  char rules[128];
  rill_stream good = new_stream("good"), bad = new_stream("bad");
  rill_event event = new_event("marked"), plain = new_event("plain");
  set("fill@bad:2,record@marked:1=timeout");
  for (unsigned i = 0; i < 3; i++) assert_ok(rill_fill_async(good, dut.memory, zeros, 4, 1));
  assert_ok(rill_fill_async(bad, dut.memory, zeros, 4, 1));
  assert_fails(rill_fill_async(bad, dut.memory, zeros, 4, 1), RILL_ERROR_BACKEND);
  assert_ok(rill_stream_record_event(good, plain, 0));
  assert_fails(rill_stream_record_event(good, event, 0), RILL_ERROR_TIMEOUT);
  (void)snprintf(rules, sizeof rules, "fill@%s:1", dut.name);
  set(rules);
  assert_fails(rill_fill_async(good, dut.memory, zeros, 4, 1), RILL_ERROR_BACKEND);
  set("fill@cuda:77:1+");
  assert_ok(rill_fill_async(good, dut.memory, zeros, 4, 1));
  rill_pool pool;
  void *p;
  assert_ok(rill_pool_create(dut.device, RILL_POOL_OPTIONS(.label = "meshes"), &pool));
  set("alloc@meshes:1=timeout");
  assert_fails_in("rill_pool_alloc_async", rill_pool_alloc_async(pool, good, 1 << 20, &p), RILL_ERROR_TIMEOUT);
  assert_says("alloc@meshes:1");
  assert_ok(rill_pool_release(pool));
  rill_fault_clear();
}

static uint64_t struck(const char *rules) {
  rill_stream stream = new_stream("stream");
  uint64_t bits = 0;
  set(rules);
  for (unsigned i = 0; i < 64; i++) {
    if (rill_fill_async(stream, dut.memory, zeros, 4, 1) != RILL_OK) bits |= UINT64_C(1) << i;
  }
  assert_int_equal(rill_fault_count(), __builtin_popcountll(bits));
  return bits;
}

static void probabilities_repeat(void) {
  const uint64_t first = struck("fill:p=0.5,seed=3");
  assert_true(first == struck("seed=3,fill:p=0.5"));
  assert_true(first != struck("fill:p=0.5,seed=4"));
  assert_true(__builtin_popcountll(first) > 8 && __builtin_popcountll(first) < 56);
  assert_true(struck("fill:p=0") == 0);
  assert_true(struck("fill:p=1") == UINT64_MAX);
  rill_fault_clear();
}

static const char *fill_on(unsigned index, void *shared) {
  (void)index;
  (void)shared;
  rill_stream stream;
  while (rill_stream_create(dut.device, NULL, &stream) != RILL_OK) {
  }
  for (unsigned i = 0; i < 500; i++) {
    const rill_status status = rill_fill_async(stream, dut.memory, zeros, 4, 1);
    REQUIRE(status == RILL_OK || status == RILL_ERROR_TIMEOUT || status == RILL_ERROR_NOT_FOUND);
  }
  REQUIRE_OK(rill_stream_release(stream));
  return NULL;
}

static void may_change_while_threads_work(void) {
  struct background *threads = start_threads(4, fill_on, NULL);
  for (unsigned i = 0; i < 200; i++) {
    ignore(rill_fault_set(i % 2 == 0 ? "fill:3=timeout" : "fill:p=0.5=not_found,copy@x:1"));
    if (i % 5 == 0) rill_fault_clear();
  }
  rill_fault_clear();
  join_threads(threads);
}

TESTS_ON_EACH_DEVICE("rill_fault_set", TEST(refuses_malformed_rules), TEST(fails_the_nth_call),
                     TEST(fails_each_kind_of_call), TEST(failed_allocations_name_the_rule), TEST(matches_labels),
                     TEST(probabilities_repeat), TEST(may_change_while_threads_work))
