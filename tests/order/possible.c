/* Programs that RILL_CHECK=order does not report and order:all reports as possible races, because something that rill
 * does not see may have ordered them. */
#include "order/watching.h"

#include "gate.rill.h"

#include <rill/order.h>
#include <stdio.h>
#include <string.h>

enum { N = 4096 };

struct rig {
  rill_stream a, b;
  char *device, *pinned;
  unsigned *counter; /* in device memory of its own */
};

static const uint8_t zero;
static const rill_launch one_thread = { sizeof(rill_launch), .grid = { 1, 1, 1 }, .block = { 1, 1, 1 } };
static bool given_out; /* a native handle, from which on other code may order anything on any device */

static void fill(rill_stream stream, void *p) { assert_ok(rill_fill_async(stream, p, &zero, 1, N)); }

/* Which bytes a kernel uses is not known. */
static void kernels_share_an_allocation(struct rig *r) {
  assert_ok(increment_launch(r->a, &one_thread, r->counter));
  assert_ok(increment_launch(r->b, &one_thread, r->counter));
}

static void a_kernel_shares_an_allocation(struct rig *r) {
  assert_ok(increment_launch(r->a, &one_thread, r->counter));
  fill(r->b, r->counter);
}

/* The host may have read the flag. */
static void a_flag_shows_progress(struct rig *r) {
  fill(r->a, r->device);
  assert_ok(set_flag_launch(r->a, &one_thread, (unsigned *)r->pinned, 1));
  fill(r->b, r->device);
}

/* The call may have waited for the other stream, which was complete by then. */
static _Atomic bool may_go;
static void wait_until_it_may(void *user, rill_status status) {
  (void)user;
  (void)status;
  while (!atomic_load(&may_go)) let_pass_ns(1000);
}
static void a_host_call_waits(struct rig *r) {
  atomic_store(&may_go, false);
  assert_ok(rill_stream_host_call(r->a, wait_until_it_may, NULL));
  fill(r->a, r->device);
  fill(r->b, r->device);
  assert_ok(rill_stream_synchronize(r->b));
  atomic_store(&may_go, true);
}

/* The same program with a kernel that polls. */
static void a_kernel_waits(struct rig *r) {
  struct gate *gate = gate_close(r->a);
  fill(r->a, r->device);
  fill(r->b, r->device);
  assert_ok(rill_stream_synchronize(r->b));
  gate_open(gate);
}

static const struct {
  const char *name;
  void (*run)(struct rig *r);
} programs[] = { { "kernels share", kernels_share_an_allocation },
                 { "kernel shares", a_kernel_shares_an_allocation },
                 { "flag", a_flag_shows_progress },
                 { "host call", a_host_call_waits },
                 { "gate", a_kernel_waits } };

static const char *run_watched(const char *name, void (*run)(struct rig *r)) {
  char labels[2][64];
  for (unsigned i = 0; i < 2; i++) (void)snprintf(labels[i], sizeof labels[i], "%s %c", name, "ab"[i]);
  struct rig r = { .a = new_stream(labels[0]), .b = new_stream(labels[1]) };
  void *device = NULL, *pinned = NULL, *counter = NULL;
  assert_ok(rill_alloc(dut.device, N, RILL_MEMORY_DEVICE, &device));
  assert_ok(rill_alloc(dut.device, N, RILL_MEMORY_DEVICE, &counter));
  assert_ok(rill_alloc(dut.device, N, RILL_MEMORY_PINNED, &pinned));
  memset(pinned, 0, N);
  r.device = device;
  r.counter = counter;
  r.pinned = pinned;
  watch_begin();
  run(&r);
  assert_ok(rill_device_synchronize(dut.device));
  const char *said = watch_end();
  assert_ok(rill_free(device));
  assert_ok(rill_free(counter));
  assert_ok(rill_free(pinned));
  return said;
}

static void is_at_most_possible(void) {
  const bool all = rill_check_is_on("order:all");
  for (unsigned i = 0; i < sizeof programs / sizeof *programs; i++) {
    const char *said = run_watched(programs[i].name, programs[i].run);
    if (!all && said[0] != '\0') fail_msg("%s: %s", programs[i].name, said);
    if (all && strstr(said, "possible: ") == NULL) fail_msg("%s: not reported: %s", programs[i].name, said);
  }
}

/* The gate opens before the other stream is seen to be complete: then it did not wait for that. */
static void race_at_a_gate(struct rig *r) {
  struct gate *gate = gate_close(r->a);
  fill(r->a, r->device);
  fill(r->b, r->device);
  gate_open(gate);
  assert_ok(rill_stream_synchronize(r->a));
}

static void an_opening_gate_hides_nothing(void) {
  if (given_out) skip_because("a native handle was given out");
  const char *said = run_watched("open", race_at_a_gate);
  assert_non_null(strstr(said, "is not ordered after the fill"));
  assert_null(strstr(said, "possible"));
}

/* Kernels that only read: `flag` is a pointer to const. */
static void two_readers(struct rig *r) {
  fill(r->a, r->counter);
  assert_ok(rill_stream_wait_stream(r->b, r->a));
  assert_ok(wait_for_flag_launch(r->a, &one_thread, r->counter, 0, TIMEOUT_NS, (unsigned *)r->device));
  assert_ok(wait_for_flag_launch(r->b, &one_thread, r->counter, 0, TIMEOUT_NS, (unsigned *)r->pinned));
}

static void readers_are_not_reported(void) { assert_string_equal(run_watched("readers", two_readers), ""); }

/* Other code may synchronize with a stream whose native handle it has, and with the device. */
static void native_race(struct rig *r) {
  uintptr_t native = 0;
  fill(r->a, r->device);
  assert_ok(rill_stream_native(r->a, &native));
  fill(r->b, r->device);
}

static void other_code_may_order_work(void) {
  if (!dut.gpu) skip_because("the cpu has no native handles");
  const char *said = run_watched("native", native_race);
  given_out = true;
  if (rill_check_is_on("order:all")) {
    assert_non_null(strstr(said, "possible: "));
  } else {
    assert_string_equal(said, "");
  }
}

TESTS_ON_EACH_DEVICE("RILL_CHECK=order:all", TEST(is_at_most_possible), TEST(an_opening_gate_hides_nothing),
                     TEST(readers_are_not_reported), TEST(other_code_may_order_work))
