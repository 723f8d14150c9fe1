/* rill_event_import. The CPU has no native events and reports UNSUPPORTED. */
#include "support/native.h"

static rill_status import_on(rill_device device, uintptr_t native, const rill_import_options *options,
                             rill_event *out) {
  *out = (rill_event){ 1 };
  const rill_status status = rill_event_import(device, native, options, out);
  if (status != RILL_OK) assert_int_equal(out->id, 0);
  return status;
}

#define API "rill_event_import"
#define IMPORT(device, native, options) import_on((device), (native), (options), &(rill_event){ 0 })
#include "native_import.h"

static void refuses_null_out(void) {
  assert_fails(rill_event_import(dut.device, 0x1000, NULL, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

static void refuses_null_handles(void) {
  if (dut.gpu) assert_fails_in(API, IMPORT(dut.device, 0, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

static rill_event import(uintptr_t native, const rill_import_options *options) {
  rill_event event;
  assert_ok(import_on(dut.device, native, options, &event));
  keep_event_until_end(event);
  return event;
}

/* C4.5: it is treated as recorded, and refers to the owner's last record. */
static void marks_what_its_owner_recorded(void) {
  if (!native_available()) return;
  const uintptr_t native = native_event_create(dut.device);
  rill_stream stream = new_stream("stream"), waiter = new_stream("waiter");
  uintptr_t native_stream = 0, read = 0;
  bool recorded = false;
  assert_ok(rill_stream_native(stream, &native_stream));
  struct gate *gate = gate_close(stream);
  write_cell(stream, 0, 6);
  native_event_record(native, native_stream);
  rill_event event = import(native, NULL);
  assert_ok(rill_event_native(event, &read));
  assert_int_equal(read, native);
  assert_ok(rill_event_is_recorded(event, &recorded));
  assert_true(recorded);
  assert_false(is_ready(event));
  assert_ok(rill_stream_wait_event(waiter, event, 0));
  read_cell(waiter, 0);
  assert_false(is_complete(waiter));
  gate_open(gate);
  assert_completes(waiter);
  assert_int_equal(dut.host[0], 6);
  assert_becomes_ready(event);

  gate = gate_close(
      stream); /* the driver is always queried for an imported event, because it can be recorded without rill */
  native_event_record(native, native_stream);
  assert_false(is_ready(event));
  gate_open(gate);
  assert_becomes_ready(event);
  assert_ok(rill_event_release(event));
  native_event_destroy(native);
}

static unsigned releases;

static void count_release(void *user, uintptr_t native) {
  (void)native;
  releases += user == &releases;
}

/* C4.5, C3.3: the function is called once, during the last release. */
static void calls_release_once(void) {
  if (!native_available()) return;
  const uintptr_t native = native_event_create(dut.device);
  const rill_import_options options = { sizeof options, RILL_IMPORT_BORROW, NULL, count_release, &releases };
  releases = 0;
  rill_event event = import(native, &options);
  assert_ok(rill_event_retain(event));
  assert_ok(rill_event_release(event));
  assert_int_equal(releases, 0);
  assert_ok(rill_event_release(event));
  assert_int_equal(releases, 1);
  native_event_destroy(native);
}

/* C4.5: rill records the event like one of its own; an adopted event is destroyed with its handle. */
static void adopts_and_records(void) {
  if (!native_available()) return;
  const rill_import_options options = { sizeof options, RILL_IMPORT_ADOPT, "adopted", NULL, NULL };
  rill_event event = import(native_event_create(dut.device), &options);
  rill_stream stream = new_stream("stream");
  struct gate *gate = gate_close(stream);
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_false(is_ready(event));
  gate_open(gate);
  assert_becomes_ready(event);
  assert_ok(rill_event_release(event));
  assert_fails(rill_event_synchronize(event), RILL_ERROR_STALE_HANDLE);
}

TESTS_ON_EACH_DEVICE("rill_event_import", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(is_unsupported_on_the_cpu), TEST(refuses_invalid_options), TEST(refuses_null_handles),
                     TEST(marks_what_its_owner_recorded), TEST(calls_release_once), TEST(adopts_and_records))
