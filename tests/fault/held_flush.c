/* A failure while held work is submitted to the driver belongs to the held stream, never to the recording thread
 * (C3.8). */
#include "children.h"
#include "tour.h"

#include "gate.rill.h"

#include <rill/capture.h>
#include <rill/graph_exec.h>
#include <sched.h>
#include <stdio.h>

enum { CODE = 999, MOST_CALLS = 40 };

struct call {
  _Atomic int runs, status;
};

static void note(void *user, rill_status status) {
  struct call *call = user;
  atomic_store(&call->status, (int)status);
  (void)atomic_fetch_add(&call->runs, 1);
}

/* Host calls run on another thread. */
static void wait_for(struct call *call) {
  const uint64_t end = now_ns() + TIMEOUT_NS;
  while (atomic_load(&call->runs) == 0 && now_ns() < end) let_pass_ns(MILLISECOND / 10);
}

/* A held stream with one operation of each kind, and the event that releases it. */
struct held {
  rill_stream held, recorder, later; /* later: held for a record on `held` */
  rill_event first, inner;
  uint32_t *memory, pageable[TOUR_WORDS];
  struct call call, last;
};

static void make(struct held *h) {
  memset(h, 0, sizeof *h);
  assert_ok(rill_stream_create(vendor.device, RILL_STREAM_OPTIONS(.label = "held"), &h->held));
  assert_ok(rill_stream_create(vendor.device, RILL_STREAM_OPTIONS(.label = "recorder"), &h->recorder));
  assert_ok(rill_stream_create(vendor.device, RILL_STREAM_OPTIONS(.label = "later"), &h->later));
  assert_ok(rill_event_create(vendor.device, NULL, &h->first));
  assert_ok(rill_event_create(vendor.device, NULL, &h->inner));
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_DEVICE, TOUR_WORDS, &h->memory));
}

static void fill_queue(struct held *h) {
  const uint32_t pattern = 7;
  const rill_launch shape = rill_launch_1d(1, 1);
  assert_ok(rill_stream_wait_event(h->held, h->first, 0));
  assert_ok(rill_fill_async(h->held, h->memory, &pattern, sizeof pattern, TOUR_WORDS));
  assert_ok(rill_copy_async(h->held, h->memory + 1, h->pageable, sizeof pattern));
  assert_ok(rill_copy_async(h->held, h->pageable, h->memory, sizeof pattern));
  assert_ok(rill_stream_host_call(h->held, note, &h->call));
  if (vendor.has_kernels) assert_ok(increment_launch(h->held, &shape, h->memory));
  assert_ok(rill_stream_record_event(h->held, h->inner, 0));
  assert_ok(rill_stream_wait_event(h->later, h->inner, 0));
  assert_ok(rill_stream_host_call(h->held, note, &h->last));
}

static void end(struct held *h) {
  assert_ok(rill_event_release(h->first));
  assert_ok(rill_event_release(h->inner));
  assert_ok(rill_stream_release(h->held));
  assert_ok(rill_stream_release(h->recorder));
  assert_ok(rill_stream_release(h->later));
  assert_ok(rill_free(h->memory));
}

/* The held stream works as if nothing had happened. */
static void check_goes_on(struct held *h) {
  const uint32_t pattern = 9;
  uint32_t value = 0;
  assert_ok(rill_stream_synchronize(h->held));
  assert_ok(rill_fill_async(h->held, h->memory, &pattern, sizeof pattern, 1));
  assert_ok(rill_copy_async(h->held, &value, h->memory, sizeof value));
  assert_ok(rill_stream_record_event(h->held, h->inner, 0));
  assert_ok(rill_stream_synchronize(h->held));
  assert_ok(rill_event_synchronize(h->inner));
  assert_int_equal(value, pattern);
  ignore(rill_stream_synchronize(h->later)); /* may have failed with what it waited for */
  assert_ok(rill_stream_synchronize(h->later));
}

/* Refuses the nth call of a function during the flush; returns false if there were fewer calls. */
static bool flush_with_refusal(const struct vendor_function *f, unsigned nth) {
  static struct held h;
  make(&h);
  fill_queue(&h);
  spoil_last_error();
  vendor.fake->fail_call(f->name, nth, CODE);
  const uint64_t calls = vendor.fake->calls(f->name);
  const rill_status recorded = rill_stream_record_event(h.recorder, h.first, 0);
  const bool struck = vendor.fake->calls(f->name) - calls >= nth;
  vendor.fake->clear();
  rill_error error = RILL_ERROR_INIT;
  assert_ok(rill_last_error(&error));
  if (recorded != RILL_OK) { /* the record itself was refused, before anything was released */
    assert_int_equal(error.native_code, CODE);
    if (nth > 1) fail_msg("%s, call %u: the recorder fails: %s", f->name, nth, rill_last_error_text());
    bool is_recorded = true;
    assert_ok(rill_event_is_recorded(h.first, &is_recorded));
    assert_false(is_recorded);
    assert_ok(rill_stream_record_event(h.recorder, h.first, 0));
  } else if (strcmp(error.api, "rill_device_count") != 0) {
    fail_msg("%s, call %u: the recorder's last error changed: %s", f->name, nth, rill_last_error_text());
  }
  assert_ok(rill_stream_synchronize(h.recorder));
  const rill_status held = rill_stream_synchronize(h.held);
  if (held != RILL_OK) {
    assert_true(struck);
    assert_int_equal(held, RILL_ERROR_BACKEND);
    assert_ok(rill_last_error(&error));
    assert_int_equal(error.native_code, CODE);
    assert_string_equal(error.native_name, vendor.unknown);
    assert_says(f->name);
    assert_says("held");
  }
  /* Each host call ran once, and got the status if it came after what failed. */
  assert_int_equal(atomic_load(&h.call.runs), 1);
  assert_int_equal(atomic_load(&h.last.runs), 1);
  if (held == RILL_OK) assert_int_equal(atomic_load(&h.last.status), RILL_OK);
  check_goes_on(&h);
  end(&h);
  return struck;
}

static void only_the_held_stream_fails(void) {
  unsigned functions = 0;
  vendor_begin();
  for (size_t i = 0; i < vendor_function_count; i++) {
    const struct vendor_function *f = &vendor_functions[i];
    if (f->name == NULL || strcmp(f->field, "context_pop") == 0 || strcmp(f->field, "set_device") == 0) continue;
    unsigned nth = 1;
    while (nth < MOST_CALLS && flush_with_refusal(f, nth)) nth++;
    assert_true(nth < MOST_CALLS);
    functions += nth > 1;
  }
  assert_true(functions > (vendor.has_kernels ? 6 : 5));
}

/* C3.8: an event recorded after failed work has failed, for every query and wait, until it is recorded again. */
static void a_record_after_the_failure_is_failed(void) {
  static struct held h;
  bool out = true;
  vendor_begin();
  make(&h);
  fill_queue(&h);
  vendor.fake->fail_call(vendor_name("fill_32"), 1, CODE);
  assert_ok(rill_stream_record_event(h.recorder, h.first, 0));
  vendor.fake->clear();
  assert_fails(rill_event_is_recorded(h.inner, &out), RILL_ERROR_BACKEND);
  assert_fails(rill_event_is_ready(h.inner, &out), RILL_ERROR_BACKEND);
  assert_says(vendor_name("fill_32"));
  assert_fails(rill_event_synchronize(h.inner), RILL_ERROR_BACKEND);
  assert_fails(rill_event_synchronize_for(h.inner, 1), RILL_ERROR_BACKEND);
  assert_fails(rill_stream_wait_event(h.recorder, h.inner, 0), RILL_ERROR_BACKEND);
  assert_fails(rill_stream_synchronize(h.later), RILL_ERROR_BACKEND); /* it waited for that record */
  assert_ok(rill_stream_synchronize(h.later));
  assert_fails(rill_stream_synchronize_for(h.held, TIMEOUT_NS), RILL_ERROR_BACKEND);
  assert_says(vendor_name("fill_32"));
  assert_int_equal(atomic_load(&h.call.status), RILL_ERROR_BACKEND);
  assert_int_equal(atomic_load(&h.last.status), RILL_ERROR_BACKEND);
  check_goes_on(&h);
  end(&h);
}

/* A device fault that is found during the flush belongs to the device. */
static void a_fault_is_found_at_the_flush(void) {
  static struct held h;
  vendor_begin();
  make(&h);
  fill_queue(&h);
  vendor.fake->fail_call(vendor_name("fill_32"), 1, 700);
  assert_ok(rill_stream_record_event(h.recorder, h.first, 0)); /* the record was given to the driver before */
  assert_fails(rill_stream_synchronize(h.held), RILL_ERROR_DEVICE_LOST);
  assert_fails(rill_stream_synchronize(h.recorder), RILL_ERROR_DEVICE_LOST);
  assert_fails(rill_stream_synchronize(h.later), RILL_ERROR_DEVICE_LOST);
  wait_for(&h.call);
  wait_for(&h.last);
  assert_int_equal(atomic_load(&h.call.runs), 1);
  assert_int_equal(atomic_load(&h.call.status), RILL_ERROR_DEVICE_LOST);
  assert_int_equal(atomic_load(&h.last.runs), 1);
  assert_int_equal(atomic_load(&h.last.status), RILL_ERROR_DEVICE_LOST);
}

/* Copies of pageable memory go through memory of rill's own, and what is freed while a stream is held goes later: that
 * must not make a record, a wait, an allocation or a release wait for work that is under way. */
static void flushed_work_blocks_no_other_call(void) {
  static struct held h;
  rill_event never, pending;
  rill_stream other;
  uint32_t *freed = NULL, *fresh = NULL;
  vendor_begin();
  make(&h);
  assert_ok(rill_stream_create(vendor.device, NULL, &other));
  assert_ok(rill_event_create(vendor.device, NULL, &never));
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_DEVICE, TOUR_WORDS, &freed));
  fill_queue(&h);
  assert_ok(rill_free(freed)); /* deferred: held work might use it */
  assert_ok(rill_stream_record_event(h.recorder, h.first, 0));
  assert_ok(rill_stream_synchronize(h.held));
  assert_ok(rill_stream_synchronize(h.later));
  vendor.fake->pause(0);
  assert_ok(rill_stream_record_new_event(other, NULL, &pending)); /* the device is busy from here on */
  assert_ok(rill_stream_wait_event(h.held, never, 0));
  assert_ok(rill_copy_async(h.held, h.memory, h.pageable, sizeof h.pageable));
  assert_ok(rill_stream_record_event(h.recorder, never, 0));
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_DEVICE, TOUR_WORDS, &fresh));
  assert_ok(rill_event_release(never));
  assert_ok(rill_event_release(pending));
  vendor.fake->resume(0);
  assert_ok(rill_stream_synchronize(other));
  assert_ok(rill_stream_release(other));
  assert_ok(rill_free(fresh));
  end(&h);
}

/* ---- a flush in progress on another thread ---- */

/* Work that waits for two events. Its flush hangs after the first. */
struct hand_over {
  struct held h;
  rill_graph graph;
  rill_graph_exec exec;
  rill_graph_node node;
  const struct refusable *call;
  _Atomic bool returned;
};

static rill_status begin_a_capture(struct hand_over *o) {
  const rill_status status = rill_stream_capture_begin(o->h.held, RILL_CAPTURE_RELAXED);
  return status == RILL_OK ? rill_stream_capture_abort(o->h.held) : status;
}

static rill_status change_the_graph(struct hand_over *o) {
  const uint32_t pattern = 3;
  return rill_graph_exec_set_fill(o->exec, o->node, o->h.memory, &pattern, sizeof pattern, TOUR_WORDS);
}

static rill_status update_the_graph(struct hand_over *o) { return rill_graph_update(o->exec, o->graph); }

static rill_status launch_elsewhere(struct hand_over *o) { return rill_graph_launch(o->exec, o->h.recorder); }

static rill_status ask_for_the_native_stream(struct hand_over *o) {
  uintptr_t native = 0;
  return rill_stream_native(o->h.held, &native);
}

static rill_status join_a_capture(struct hand_over *o) {
  rill_status status = rill_stream_capture_begin(o->h.later, RILL_CAPTURE_RELAXED);
  if (status != RILL_OK) return status;
  status = rill_stream_wait_stream(o->h.held, o->h.later);
  return rill_stream_capture_abort(o->h.later) == RILL_OK ? status : RILL_ERROR_INTERNAL;
}

static const struct refusable {
  const char *name;
  rill_status (*make)(struct hand_over *o);
} refusable[] = {
  { "begin_a_capture", begin_a_capture },   { "change_the_graph", change_the_graph },
  { "update_the_graph", update_the_graph }, { "launch_elsewhere", launch_elsewhere },
  { "join_a_capture", join_a_capture },     { "ask_for_the_native_stream", ask_for_the_native_stream },
};

static const char *record_first(unsigned index, void *shared) {
  const struct hand_over *o = shared;
  (void)index;
  REQUIRE_OK(rill_stream_record_event(o->h.recorder, o->h.first, 0));
  return NULL;
}

static const char *make_the_call(unsigned index, void *shared) {
  struct hand_over *o = shared;
  (void)index;
  const rill_status status = o->call->make(o);
  atomic_store(&o->returned, true);
  return status == RILL_OK ? NULL : rill_last_error_text();
}

static void hold_twice(struct hand_over *o) {
  const uint32_t pattern = 7;
  make(&o->h);
  assert_ok(rill_graph_create(vendor.device, &o->graph));
  assert_ok(rill_graph_add_fill(o->graph, NULL, 0, o->h.memory, &pattern, sizeof pattern, TOUR_WORDS, &o->node));
  assert_ok(rill_graph_instantiate(o->graph, &o->exec));
  assert_ok(rill_stream_wait_event(o->h.held, o->h.first, 0));
  assert_ok(rill_fill_async(o->h.held, o->h.memory, &pattern, sizeof pattern, TOUR_WORDS));
  assert_ok(rill_graph_launch(o->exec, o->h.held));
  assert_ok(rill_stream_wait_event(o->h.held, o->h.inner, 0));
  assert_ok(rill_graph_launch(o->exec, o->h.held));
}

/* C3.8: the record of the second event releases the rest, and returns while the other thread hangs.  What the stream
 * would refuse only because of that waits; as long as it is held for an event, it is refused at once. */
static void a_call_waits_for_a_flush_in_progress(void) {
  vendor_begin();
  for (size_t i = 0; i < sizeof refusable / sizeof *refusable; i++) {
    static struct hand_over o;
    o.call = &refusable[i];
    atomic_store(&o.returned, false);
    hold_twice(&o);
    assert_int_equal(o.call->make(&o), RILL_ERROR_NOT_READY);
    vendor.fake->hang(vendor_name("fill_32"));
    struct background *hanging = start_threads(1, record_first, &o);
    while (vendor.fake->hanging() == 0) (void)sched_yield();
    assert_ok(rill_stream_record_event(o.h.later, o.h.inner, 0));
    struct background *waiting = start_threads(1, make_the_call, &o);
    let_pass_ns(5 * MILLISECOND); /* it may return too early, or may not have started */
    if (atomic_load(&o.returned)) fail_msg("%s does not wait for the hand-over", o.call->name);
    vendor.fake->clear();
    join_threads(waiting);
    join_threads(hanging);
    assert_ok(rill_stream_synchronize(o.h.held));
    assert_ok(rill_stream_synchronize(o.h.recorder));
    assert_ok(rill_graph_exec_release(o.exec));
    assert_ok(rill_graph_release(o.graph));
    end(&o.h);
  }
}

int main(int argc, char **argv) {
  static const struct mode modes[] = {
    MODE(only_the_held_stream_fails),           MODE(a_record_after_the_failure_is_failed),
    MODE(a_fault_is_found_at_the_flush),        MODE(flushed_work_blocks_no_other_call),
    MODE(a_call_waits_for_a_flush_in_progress),
  };
  return RUN_MODES("held work that fails", argc, argv, modes);
}
