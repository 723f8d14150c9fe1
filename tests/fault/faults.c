/* A device that faults (C2.6): DEVICE_LOST with the first cause from then on, whichever call meets it first; calls that
 * still work; the other devices; host calls after the fault (C3.13). */
#include "children.h"
#include "tour.h"

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { ILLEGAL_ADDRESS = 700, LAUNCH_FAILED = 719 };

static const char *name_of_700(void) { return vendor.cuda ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "hipErrorIllegalAddress"; }

/* The last error is of `api` and tells the first cause. */
static void check_cause(const char *what, rill_status status, const char *api) {
  rill_error error = RILL_ERROR_INIT;
  assert_ok(rill_last_error(&error));
  if (status != RILL_ERROR_DEVICE_LOST || error.status != status) {
    fail_msg("%s gave %s; the last error is %s", what, rill_status_name(status), rill_last_error_text());
  }
  if (api[0] != '\0' && strcmp(error.api, api) != 0) fail_msg("%s: the error is of %s", what, error.api);
  if (error.native_code != ILLEGAL_ADDRESS || strcmp(error.native_name, name_of_700()) != 0) {
    fail_msg("%s: the native error is %d %s", what, (int)error.native_code, error.native_name);
  }
  if (strstr(error.message, "address") == NULL) fail_msg("%s: no cause: %s", what, error.message);
}

static rill_status run_and_check(struct tour *tour, const struct step *step, bool lost) {
  spoil_last_error();
  const rill_status status = step->run(tour);
  if (lost) {
    check_cause(step->name, status, step->api);
  } else if (status != RILL_OK) {
    fail_msg("%s: %s", step->name, rill_last_error_text());
  }
  return status;
}

/* A tour up to the steps that may meet a fault: objects are created and used once. */
static void make_tour(struct tour *tour) {
  vendor_begin();
  const struct step *failed = tour_walk(tour, MAKE, USE);
  if (failed != NULL) fail_msg("%s: %s", failed->name, rill_last_error_text());
}

/* Everything of the contract about a device that is known to be lost. */
static void check_lost(struct tour *tour) {
  const int called = atomic_load(&tour->called);
  static struct tour other; /* objects created on a lost device do not exist */
  for (size_t i = 0; i < step_count; i++) {
    const struct step *step = &steps[i];
    if (!step_applies(step)) continue;
    if (step->part == MAKE && step->when_lost == LOST) (void)run_and_check(&other, step, true);
  }
  if (vendor.has_kernels) {
    rill_kernel kernel = { 1 };
    check_cause("get_kernel", rill_module_get_kernel(tour->module, "set_flag", &kernel), "rill_module_get_kernel");
    assert_true(rill_kernel_equal(kernel, RILL_NULL_KERNEL));
  }
  if (other.spoiled != NULL) fail_msg("%s left an output that is not null", other.spoiled);
  for (size_t i = 0; i < step_count; i++) {
    const struct step *step = &steps[i];
    if (step_applies(step) && step->part == USE) (void)run_and_check(tour, step, step->when_lost == LOST);
  }
  assert_int_equal(atomic_load(&tour->called), called); /* a refused host call does not run */
  for (size_t i = 0; i < step_count; i++) {
    const struct step *step = &steps[i];
    if (step_applies(step) && step->part == RELEASE) (void)run_and_check(tour, step, step->when_lost == LOST);
  }
  if (tour->spoiled != NULL) fail_msg("%s left an output that is not null", tour->spoiled);
}

/* The other device of the vendor and the cpu go on. */
static void check_others(void) {
  const rill_device devices[] = { vendor.second, vendor.cpu };
  for (int i = 0; i < 2; i++) {
    rill_stream stream;
    rill_event event;
    uint32_t *memory = NULL, value = 0;
    const uint32_t pattern = 0x01020304;
    assert_ok(rill_stream_create(devices[i], NULL, &stream));
    assert_ok(RILL_NEW(devices[i], RILL_MEMORY_DEVICE, 4, &memory));
    assert_ok(rill_fill_async(stream, memory, &pattern, sizeof pattern, 4));
    assert_ok(rill_copy_async(stream, &value, memory, sizeof value));
    assert_ok(rill_stream_record_new_event(stream, NULL, &event));
    assert_ok(rill_event_synchronize(event));
    assert_ok(rill_stream_synchronize(stream));
    assert_int_equal(value, pattern);
    assert_ok(rill_device_synchronize(devices[i]));
    assert_ok(rill_free(memory));
    assert_ok(rill_event_release(event));
    assert_ok(rill_stream_release(stream));
  }
}

/* ---- which call meets it first ---- */

/* A cached stream is not a new stream of the driver. */
static void take_spare_streams(void) {
  const uint64_t calls = vendor_calls("stream_create");
  rill_stream stream;
  while (vendor_calls("stream_create") == calls) assert_ok(rill_stream_create(vendor.device, NULL, &stream));
}

/* One mode for each step: the fault has happened, and this step is the first to notice it. */
static void met_by(const char *name) {
  static struct tour tour;
  make_tour(&tour);
  take_spare_streams();
  vendor.fake->fault(0, ILLEGAL_ADDRESS);
  for (size_t i = 0; i < step_count; i++) {
    if (strcmp(steps[i].name, name) != 0) continue;
    static struct tour other; /* so that nothing made before is lost from sight */
    (void)run_and_check(steps[i].part == MAKE ? &other : &tour, &steps[i], true);
    if (steps[i].part != RELEASE) check_lost(&tour); /* what could not be freed cannot be freed again */
    check_others();
    return;
  }
  fail_msg("there is no step %s", name);
}

#define MET_BY(step) \
  static void met_by_##step(void) { met_by(#step); }
MET_BY(make_stream)
MET_BY(alloc_device)
MET_BY(alloc_pinned)
MET_BY(get_memory)
MET_BY(fill_4)
MET_BY(fill_16)
MET_BY(copy_up)
MET_BY(copy_pageable_up)
MET_BY(copy_pageable_down)
MET_BY(launch_plain)
MET_BY(launch_ref)
MET_BY(host_call)
MET_BY(record)
MET_BY(record_new_event)
MET_BY(wait_imported)
MET_BY(wait_stream)
MET_BY(wait_device)
MET_BY(imported_is_complete)
MET_BY(is_capturing)
MET_BY(imported_is_ready)
MET_BY(event_synchronize_for)
MET_BY(synchronize_imported_for)
MET_BY(synchronize_null)
MET_BY(device_synchronize)
MET_BY(elapsed)
MET_BY(free_memory)
MET_BY(free_pinned)

/* ---- causes ---- */

static void by_a_kernel(void) {
  static struct tour tour;
  make_tour(&tour);
  if (!vendor.has_kernels) return;
  vendor.fake->fault_next_launch(0, ILLEGAL_ADDRESS);
  for (size_t i = 0; i < step_count; i++) {
    if (strcmp(steps[i].name, "launch_plain") == 0)
      assert_ok(steps[i].run(&tour)); /* the fault is in the work, not in the call */
  }
  check_cause("the wait after the kernel", rill_stream_synchronize(tour.stream), "rill_stream_synchronize");
  assert_says("address");
  check_lost(&tour);
  check_others();
}

/* A correct call returns the code of earlier work. */
static void by_each_code(void) {
  static const int codes[] = { 214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911 };
  enum { CODES = sizeof codes / sizeof *codes };
  vendor_begin();
  for (int i = 0; i < CODES; i++) {
    char name[16];
    rill_device device;
    rill_stream stream;
    (void)snprintf(name, sizeof name, "%s:%d", vendor.backend, i);
    assert_ok(rill_device_open(name, &device));
    assert_ok(rill_stream_create(device, NULL, &stream));
    vendor.fake->fault(i, codes[i]);
    assert_fails(rill_stream_synchronize(stream), RILL_ERROR_DEVICE_LOST);
    rill_error error = RILL_ERROR_INIT;
    assert_ok(rill_last_error(&error));
    assert_int_equal(error.native_code, codes[i]);
    assert_true(error.native_name[0] != '\0');
    assert_says(name);
    assert_ok(rill_stream_release(stream));
  }
  assert_ok(rill_device_synchronize(vendor.cpu));
}

/* Codes of calls that were themselves wrong do not lose the device. */
static void not_by_other_codes(void) {
  static const int codes[] = { 1, 2, 46, 304, 400, 500, 801, 999 };
  vendor_begin();
  rill_stream stream;
  assert_ok(rill_stream_create(vendor.device, NULL, &stream));
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
    rill_event event;
    vendor.fake->fail_call(vendor_name("event_record"), 1, codes[i]);
    const rill_status status = rill_stream_record_new_event(stream, NULL, &event);
    assert_int_not_equal(status, RILL_OK);
    assert_int_not_equal(status, RILL_ERROR_DEVICE_LOST);
    assert_true(rill_event_equal(event, RILL_NULL_EVENT));
    assert_ok(rill_stream_record_new_event(stream, NULL, &event));
    assert_ok(rill_event_synchronize(event));
    assert_ok(rill_event_release(event));
  }
  assert_ok(rill_stream_release(stream));
}

/* C1.10: other code resets the device. */
static void by_a_reset(void) {
  static struct tour tour;
  make_tour(&tour);
  native_reset();
  assert_fails(rill_stream_record_event(tour.stream, tour.event, 0), RILL_ERROR_DEVICE_LOST);
  assert_says("reset");
  assert_fails(rill_stream_synchronize(tour.stream), RILL_ERROR_DEVICE_LOST);
  assert_fails(rill_event_synchronize(tour.event), RILL_ERROR_DEVICE_LOST);
  for (size_t i = 0; i < step_count; i++) {
    if (step_applies(&steps[i]) && steps[i].part == RELEASE) ignore(steps[i].run(&tour));
  }
  check_others();
}

struct notified {
  _Atomic int calls;
  _Atomic int status;
};

static void tell(void *user, rill_status status) {
  struct notified *notified = user;
  atomic_store(&notified->status, status);
  (void)atomic_fetch_add(&notified->calls, 1);
}

/* C4.7: each watch of an event of a faulting device is notified once. */
static void while_events_are_watched(void) {
  enum { STREAMS = 3 };
  vendor_begin();
  const uint32_t zero = 0;
  const int fd = eventfd(0, EFD_CLOEXEC);
  struct notified notified = { 0, RILL_OK };
  rill_stream streams[STREAMS];
  rill_event events[STREAMS];
  void *memory = NULL;
  uint64_t count = 0;
  assert_true(fd >= 0);
  assert_ok(rill_alloc(vendor.device, 64, RILL_MEMORY_DEVICE, &memory));
  vendor.fake->pause(0);
  for (int i = 0; i < STREAMS; i++) {
    assert_ok(rill_stream_create(vendor.device, NULL, &streams[i]));
    assert_ok(rill_fill_async(streams[i], memory, &zero, sizeof zero, 1));
    assert_ok(rill_stream_record_new_event(streams[i], NULL, &events[i]));
    assert_ok(rill_event_notify_fd(events[i], fd));
    assert_ok(rill_event_then(events[i], tell, &notified));
  }
  const uint64_t asked = vendor_calls("event_query");
  while (vendor_calls("event_query") < asked + STREAMS) (void)sched_yield(); /* they are being queried */
  assert_int_equal(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 0), 0);
  assert_int_equal(atomic_load(&notified.calls), 0);
  vendor.fake->fault(0, 700);
  vendor.fake->resume(0);
  for (uint64_t sum = 0; sum < STREAMS; sum += count) {
    assert_int_equal(read(fd, &count, sizeof count), sizeof count);
    assert_true(sum + count <= STREAMS);
  }
  while (atomic_load(&notified.calls) < STREAMS) (void)sched_yield();
  assert_int_equal(atomic_load(&notified.status), RILL_ERROR_DEVICE_LOST);
  assert_int_equal(atomic_load(&notified.calls), STREAMS);
  assert_fails(rill_event_notify_fd(events[0], fd), RILL_ERROR_DEVICE_LOST);
  assert_fails(rill_event_then(events[0], tell, &notified), RILL_ERROR_DEVICE_LOST);
  assert_int_equal(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 0), 0);
  for (int i = 0; i < STREAMS; i++) {
    bool ready = true;
    assert_fails(rill_event_is_ready(events[i], &ready), RILL_ERROR_DEVICE_LOST);
    assert_ok(rill_event_release(events[i]));
    assert_ok(rill_stream_release(streams[i]));
  }
  (void)close(fd);
}

/* An imported stream that its owner destroyed is the owner's mistake and does not lose the device. */
static void not_by_a_destroyed_import(void) {
  rill_stream imported, stream;
  vendor_begin();
  assert_ok(rill_stream_create(vendor.device, NULL, &stream));
  assert_ok(rill_stream_import(vendor.device, vendor.native_stream, NULL, &imported));
  vendor_end();
  assert_fails(rill_stream_synchronize(imported), RILL_ERROR_BACKEND);
  assert_ok(rill_stream_synchronize(stream));
  assert_ok(rill_device_synchronize(vendor.device));
  assert_ok(rill_stream_release(imported));
  assert_ok(rill_stream_release(stream));
}

/* ---- the first cause ---- */

static void first_cause_is_kept(void) {
  static struct tour tour;
  make_tour(&tour);
  vendor.fake->fault(0, ILLEGAL_ADDRESS);
  check_cause("first", rill_stream_record_event(tour.stream, tour.event, 0), "rill_stream_record_event");
  vendor.fake->revive(0);
  vendor.fake->fault(0, LAUNCH_FAILED);
  check_lost(&tour);
}

/* Remembered completions are no longer trusted. */
static void remembered_completions_are_lost(void) {
  static struct tour tour;
  bool out = true;
  make_tour(&tour);
  assert_ok(rill_stream_record_event(tour.stream, tour.before_work, 0));
  assert_ok(rill_stream_synchronize(tour.stream));
  assert_ok(rill_event_synchronize(tour.before_work));
  vendor.fake->fault(0, ILLEGAL_ADDRESS);
  check_cause("by another stream", rill_stream_synchronize(tour.imported), "rill_stream_synchronize");
  check_cause("is_ready", rill_event_is_ready(tour.before_work, &out), "rill_event_is_ready");
  assert_false(out);
  check_cause("event_synchronize", rill_event_synchronize(tour.before_work), "rill_event_synchronize");
  check_cause("is_complete", rill_stream_is_complete(tour.stream, &out), "rill_stream_is_complete");
  check_cause("synchronize", rill_stream_synchronize(tour.stream), "rill_stream_synchronize");
  check_cause("wait", rill_stream_wait_event(tour.other, tour.before_work, 0), "rill_stream_wait_event");
  check_cause("wait from the second device", rill_stream_wait_event(tour.second_stream, tour.before_work, 0),
              "rill_stream_wait_event");
  assert_ok(rill_stream_synchronize(tour.second_stream));
}

static const char *keep_asking(unsigned index, void *shared) {
  struct tour *tour = shared;
  rill_status status = RILL_OK;
  while (status == RILL_OK) {
    bool out;
    status =
        index % 2 == 0 ? rill_event_is_ready(tour->from_vendor, &out) : rill_stream_is_complete(tour->imported, &out);
  }
  REQUIRE(status == RILL_ERROR_DEVICE_LOST);
  rill_error error = RILL_ERROR_INIT;
  REQUIRE_OK(rill_last_error(&error));
  REQUIRE(error.native_code == ILLEGAL_ADDRESS);
  REQUIRE(strcmp(error.native_name, name_of_700()) == 0);
  return NULL;
}

/* Many threads meet the fault at once, and all report the same. */
static void met_by_many_threads(void) {
  static struct tour tour;
  make_tour(&tour);
  struct background *asking = start_threads(8, keep_asking, &tour);
  vendor.fake->fault(0, ILLEGAL_ADDRESS);
  join_threads(asking);
  check_lost(&tour);
}

/* ---- host calls ---- */

struct call {
  _Atomic int runs, status;
};

static void note(void *user, rill_status status) {
  struct call *call = user;
  atomic_store(&call->status, (int)status);
  (void)atomic_fetch_add(&call->runs, 1);
}

static void wait_for(struct call *call) {
  const uint64_t end = now_ns() + TIMEOUT_NS;
  while (atomic_load(&call->runs) == 0 && now_ns() < end) let_pass_ns(MILLISECOND / 10);
}

static void later_host_calls_get_the_status_once(void) {
  static struct call before, later[3], after;
  rill_stream stream, other;
  vendor_begin();
  assert_ok(rill_stream_create(vendor.device, NULL, &stream));
  assert_ok(rill_stream_create(vendor.device, NULL, &other));
  assert_ok(rill_stream_host_call(stream, note, &before));
  assert_ok(rill_stream_synchronize(stream));
  assert_int_equal(atomic_load(&before.status), RILL_OK);
  vendor.fake->pause(0);
  assert_ok(rill_stream_host_call(stream, note, &later[0]));
  assert_ok(rill_stream_host_call(stream, note, &later[1]));
  assert_ok(rill_stream_host_call(other, note, &later[2]));
  vendor.fake->fault(0, ILLEGAL_ADDRESS); /* and blocked work continues */
  for (int i = 0; i < 3; i++) {
    wait_for(&later[i]);
    assert_int_equal(atomic_load(&later[i].status), vendor.cuda ? RILL_ERROR_DEVICE_LOST : RILL_OK); /* HIP: C3.13 */
  }
  check_cause("synchronize", rill_stream_synchronize(stream), "rill_stream_synchronize");
  check_cause("a host call after", rill_stream_host_call(stream, note, &after), "rill_stream_host_call");
  check_cause("a host call after", rill_stream_host_call(other, note, &after), "rill_stream_host_call");
  assert_ok(rill_stream_release(stream));
  assert_ok(rill_stream_release(other));
  for (int i = 0; i < 3; i++) assert_int_equal(atomic_load(&later[i].runs), 1);
  assert_int_equal(atomic_load(&before.runs), 1);
  assert_int_equal(atomic_load(&after.runs), 0);
}

/* ---- held work ---- */

static void held_work_is_lost(void) {
  static struct call call;
  rill_stream held, stream;
  rill_event first, recorded;
  bool out = true;
  vendor_begin();
  assert_ok(rill_stream_create(vendor.device, NULL, &held));
  assert_ok(rill_stream_create(vendor.device, NULL, &stream));
  assert_ok(rill_event_create(vendor.device, NULL, &first));
  assert_ok(rill_event_create(vendor.device, NULL, &recorded));
  assert_ok(rill_stream_wait_event(held, first, 0));
  assert_ok(rill_stream_host_call(held, note, &call));
  assert_ok(rill_stream_record_event(held, recorded, 0));
  vendor.fake->fault(0, ILLEGAL_ADDRESS);
  check_cause("the other stream", rill_stream_synchronize(stream), "rill_stream_synchronize");
  wait_for(&call);
  assert_int_equal(atomic_load(&call.runs), 1);
  assert_int_equal(atomic_load(&call.status), RILL_ERROR_DEVICE_LOST);
  check_cause("synchronize", rill_stream_synchronize(held), "rill_stream_synchronize");
  check_cause("synchronize_for", rill_stream_synchronize_for(held, MILLISECOND), "rill_stream_synchronize_for");
  check_cause("event_synchronize", rill_event_synchronize(recorded), "rill_event_synchronize");
  check_cause("is_ready", rill_event_is_ready(recorded, &out), "rill_event_is_ready");
  check_cause("record", rill_stream_record_event(stream, first, 0), "rill_stream_record_event");
  check_cause("device_synchronize", rill_device_synchronize(vendor.device), "rill_device_synchronize");
  assert_ok(rill_event_release(first));
  assert_ok(rill_event_release(recorded));
  assert_ok(rill_stream_release(held));
  assert_ok(rill_stream_release(stream));
  assert_int_equal(atomic_load(&call.runs), 1);
}

static const char *wait_for_held(unsigned index, void *shared) {
  const struct tour *tour = shared;
  const rill_status status = index == 0   ? rill_stream_synchronize(tour->stream)
                             : index == 1 ? rill_event_synchronize(tour->event)
                             : index == 2 ? rill_stream_synchronize_for(tour->stream, TIMEOUT_NS)
                                          : rill_device_synchronize(vendor.device);
  REQUIRE(status == RILL_ERROR_DEVICE_LOST);
  return NULL;
}

/* Host waits for held work return when the device is lost. */
static void waits_for_held_work_end(void) {
  static struct tour tour;
  make_tour(&tour);
  rill_event never;
  assert_ok(rill_event_create(vendor.device, NULL, &never));
  assert_ok(rill_stream_wait_event(tour.stream, never, 0));
  assert_ok(rill_stream_record_event(tour.stream, tour.event, 0));
  struct background *waiting = start_threads(4, wait_for_held, &tour);
  vendor.fake->fault(0, ILLEGAL_ADDRESS);
  check_cause("the imported stream", rill_stream_synchronize(tour.imported), "rill_stream_synchronize");
  join_threads(waiting);
}

/* ---- waits of the host that the fault ends ---- */

static const char *wait_for_pending(unsigned index, void *shared) {
  const struct tour *tour = shared;
  const rill_status status = index == 0   ? rill_stream_synchronize(tour->stream)
                             : index == 1 ? rill_event_synchronize(tour->event)
                             : index == 2 ? rill_stream_synchronize_for(tour->stream, TIMEOUT_NS)
                             : index == 3 ? rill_event_synchronize_for(tour->event, TIMEOUT_NS)
                                          : rill_device_synchronize(vendor.device);
  REQUIRE(status == RILL_ERROR_DEVICE_LOST);
  return NULL;
}

static void waits_for_work_end(void) {
  static struct tour tour;
  make_tour(&tour);
  vendor.fake->pause(0);
  assert_ok(rill_stream_record_event(tour.stream, tour.event, 0));
  struct background *waiting = start_threads(5, wait_for_pending, &tour);
  vendor.fake->fault(0, ILLEGAL_ADDRESS);
  join_threads(waiting);
  check_lost(&tour);
}

/* Release does not wait, and the process ends normally, with work that will never complete. */
static void releases_with_lost_work(void) {
  static struct tour tour;
  make_tour(&tour);
  vendor.fake->pause(0);
  assert_ok(rill_stream_record_event(tour.stream, tour.event, 0));
  vendor.fake->fault_next_launch(0, ILLEGAL_ADDRESS);
  vendor.fake->fault(0, ILLEGAL_ADDRESS);
  for (size_t i = 0; i < step_count; i++) {
    if (step_applies(&steps[i]) && steps[i].part == RELEASE) ignore(steps[i].run(&tour));
  }
  check_others();
}

int main(int argc, char **argv) {
  static const struct mode modes[] = {
#define MET(step) MODE(met_by_##step)
    MET(make_stream),
    MET(alloc_device),
    MET(alloc_pinned),
    MET(get_memory),
    MET(fill_4),
    MET(fill_16),
    MET(copy_up),
    MET(copy_pageable_up),
    MET(copy_pageable_down),
    MET(launch_plain),
    MET(launch_ref),
    MET(host_call),
    MET(record),
    MET(record_new_event),
    MET(wait_imported),
    MET(wait_stream),
    MET(wait_device),
    MET(imported_is_complete),
    MET(is_capturing),
    MET(imported_is_ready),
    MET(event_synchronize_for),
    MET(synchronize_imported_for),
    MET(synchronize_null),
    MET(device_synchronize),
    MET(elapsed),
    MET(free_memory),
    MET(free_pinned),
    MODE(by_a_kernel),
    MODE_WITH(by_each_code, "RILL_FAKE_DEVICES=15"),
    MODE(not_by_other_codes),
    MODE(by_a_reset),
    MODE(while_events_are_watched),
    MODE(not_by_a_destroyed_import),
    MODE(first_cause_is_kept),
    MODE(remembered_completions_are_lost),
    MODE(met_by_many_threads),
    MODE(later_host_calls_get_the_status_once),
    MODE(held_work_is_lost),
    MODE(waits_for_held_work_end),
    MODE(waits_for_work_end),
    MODE(releases_with_lost_work),
  };
  return RUN_MODES("faults", argc, argv, modes);
}
