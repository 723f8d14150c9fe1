/* rill_event_ipc_export. event_ipc_import.c tests the use of the handle in another process. */
#include "ipc.h"
#include "support/native.h"

static rill_event new_shared(const char *label) {
  rill_event event;
  assert_ok(rill_event_create(dut.device, RILL_EVENT_OPTIONS(.interprocess = true, .label = label), &event));
  keep_event_until_end(event);
  return event;
}

/* C1.1: on failure the handle is all zero. */
static rill_status export_event(rill_event event, rill_ipc_handle *out) {
  static const rill_ipc_handle zero;
  memset(out, 0xa5, sizeof *out);
  const rill_status status = rill_event_ipc_export(event, out);
  if (status != RILL_OK) assert_memory_equal(out, &zero, sizeof zero);
  return status;
}

static rill_status call_with_event(uint64_t id) {
  rill_ipc_handle out;
  return export_event((rill_event){ id }, &out);
}

static void refuses_bad_handles(void) { refuses_bad_events("rill_event_ipc_export", call_with_event); }

static void refuses_null_out(void) {
  assert_fails(rill_event_ipc_export(new_event("event"), NULL), RILL_ERROR_INVALID_ARGUMENT);
}

/* C1.8 */
static void says_why_it_is_unsupported(void) {
  const char *why = "";
  rill_ipc_handle out;
  if (rill_device_supports(dut.device, RILL_FEATURE_EVENT_IPC, &why)) return;
  assert_fails_in("rill_event_ipc_export", export_event(new_event("event"), &out), RILL_ERROR_UNSUPPORTED);
  assert_says(why);
  assert_says(dut.name);
}

/* I7 */
static void refuses_events_that_cannot_be_shared(void) {
  rill_ipc_handle out;
  if (!shares_events()) return;
  assert_fails_in("rill_event_ipc_export", export_event(new_event("mine"), &out), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("interprocess");
  assert_names("mine");
  assert_fails_in("rill_event_ipc_export", export_event(new_timing_event("timed"), &out), RILL_ERROR_INVALID_ARGUMENT);
}

/* E36 */
static void refuses_imported_events(void) {
  rill_ipc_handle out;
  rill_event event;
  if (!shares_events() || !native_available()) return;
  const uintptr_t native = native_event_create(dut.device);
  assert_ok(rill_event_import(dut.device, native, NULL, &event));
  keep_event_until_end(event);
  assert_fails_in("rill_event_ipc_export", export_event(event, &out), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("imported");
  assert_ok(rill_event_release(event));
  native_event_destroy(native);
}

/* C4.5, I1 */
static void each_event_has_its_own_handle(void) {
  rill_ipc_handle first, again, second;
  if (!shares_events()) return;
  rill_event event = new_shared("first");
  assert_ok(export_event(event, &first));
  assert_ok(export_event(event, &again));
  assert_ok(export_event(new_shared("second"), &second));
  assert_memory_not_equal(&first, &second, sizeof first);
}

/* C4.5: it is treated as recorded, and is complete until it is recorded. */
static void counts_as_recorded(void) {
  rill_ipc_handle handle;
  bool recorded = false;
  if (!shares_events()) return;
  rill_event event = new_shared("event");
  assert_ok(rill_event_is_recorded(event, &recorded));
  assert_false(recorded);
  assert_ok(export_event(event, &handle));
  assert_ok(rill_event_is_recorded(event, &recorded));
  assert_true(recorded);
  assert_true(is_ready(event));
  rill_stream stream = new_stream("stream");
  assert_ok(rill_stream_wait_event(stream, event, RILL_WAIT_MUST_BE_RECORDED));
  assert_completes(stream);
}

/* C3.8, C4.5: streams that are held for its first record are released. */
static void releases_streams_held_for_it(void) {
  rill_ipc_handle handle;
  if (!shares_events()) return;
  rill_event event = new_shared("event");
  rill_stream stream = new_stream("held");
  assert_ok(rill_stream_wait_event(stream, event, 0));
  write_cell(stream, 0, 3);
  read_cell(stream, 0);
  assert_false(is_complete(stream));
  assert_ok(export_event(event, &handle));
  assert_completes(stream);
  assert_int_equal(dut.host[0], 3);
}

/* C4.2: its completion is not cached, because other processes may record it; a record by this process is always seen.
 */
static void sees_later_records(void) {
  rill_ipc_handle handle;
  if (!shares_events()) return;
  rill_event event = new_shared("event");
  rill_stream stream = new_stream("stream");
  assert_ok(export_event(event, &handle));
  for (int i = 0; i < 3; i++) {
    struct gate *gate = gate_close(stream);
    assert_ok(rill_stream_record_event(stream, event, 0));
    assert_false(is_ready(event));
    gate_open(gate);
    assert_becomes_ready(event);
    assert_true(is_ready(event));
  }
}

TESTS_ON_EACH_DEVICE("rill_event_ipc_export", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(says_why_it_is_unsupported), TEST(refuses_events_that_cannot_be_shared),
                     TEST(refuses_imported_events), TEST(each_event_has_its_own_handle), TEST(counts_as_recorded),
                     TEST(releases_streams_held_for_it), TEST(sees_later_records))
