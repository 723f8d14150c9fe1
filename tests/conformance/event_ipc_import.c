/* rill_event_ipc_import; a second process imports what the first one exports. */
#include "ipc.h"

static rill_event new_shared(void) {
  rill_event event;
  assert_ok(rill_event_create(dut.device, RILL_EVENT_OPTIONS(.interprocess = true), &event));
  keep_event_until_end(event);
  return event;
}

static rill_status import_on(rill_device device, const rill_ipc_handle *handle, rill_event *out) {
  *out = (rill_event){ 1 };
  const rill_status status = rill_event_ipc_import(device, handle, out);
  if (status != RILL_OK) assert_int_equal(out->id, 0);
  return status;
}

static rill_event import(const rill_ipc_handle *handle) {
  rill_event event;
  assert_ok(import_on(dut.device, handle, &event));
  keep_event_until_end(event);
  return event;
}

#define API "rill_event_ipc_import"
#define FEATURE RILL_FEATURE_EVENT_IPC
#define IMPORT(device, handle) import_on((device), (handle), &(rill_event){ 0 })
#define EXPORT_ONE(handle) rill_event_ipc_export(new_shared(), (handle))
#include "ipc_import.h"

/* ---- in one process ---- */

static void refuses_null(void) {
  const rill_ipc_handle handle = { { 1 } };
  assert_fails(rill_event_ipc_import(dut.device, &handle, NULL), RILL_ERROR_INVALID_ARGUMENT);
  IMPORT_FAILS(NULL, RILL_ERROR_INVALID_ARGUMENT);
}

/* I6 */
static void refuses_memory(void) {
  rill_ipc_handle handle;
  if (!shares_events()) return;
  assert_ok(rill_memory_ipc_export(dut.memory, &handle));
  IMPORT_FAILS(&handle, RILL_ERROR_INVALID_ARGUMENT);
  assert_says("memory");
}

/* ---- in two ---- */

/* The importer waits on the device and on the host for the exporter's record. */
static void child_waits(void) {
  rill_ipc_handle handle;
  bool recorded = false;
  peer_tell(peer_parent(), 's');
  peer_receive(peer_parent(), &handle, sizeof handle);
  rill_event event = import(&handle);
  rill_stream stream = new_stream("waiter");
  float ms = 0;
  assert_ok(rill_event_is_recorded(event, &recorded));
  assert_true(recorded);
  assert_false(is_ready(event));
  assert_fails(rill_event_synchronize_for(event, MILLISECOND), RILL_ERROR_TIMEOUT);
  assert_fails(rill_event_elapsed_time(event, event, &ms), RILL_ERROR_TIMING_DISABLED);
  assert_ok(rill_stream_wait_event(stream, event, 0));
  write_cell(stream, 0, 9);
  read_cell(stream, 0);
  assert_fails(rill_stream_synchronize_for(stream, 20 * MILLISECOND), RILL_ERROR_TIMEOUT);
  peer_tell(peer_parent(), 'w');
  assert_completes(stream); /* the exporter opens its gate */
  assert_int_equal(dut.host[0], 9);
  assert_becomes_ready(event);
  assert_true(is_ready(event));
}

/* C4.5: the importer waits for the last of many records. */
static void waits_for_the_exporters_record(void) {
  rill_ipc_handle handle;
  if (!shares_events()) return;
  struct peer *peer = peer_start("child_waits");
  rill_event event = new_shared();
  rill_stream stream = new_stream("stream");
  peer_awaits(peer, 's'); /* wait for its start, which may take longer than a gate stays closed */
  for (int i = 0; i < 100; i++) assert_ok(rill_stream_record_event(stream, event, 0));
  assert_completes(stream);
  struct gate *gate = gate_close(stream);
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_ok(rill_event_ipc_export(event, &handle));
  peer_send(peer, &handle, sizeof handle);
  peer_awaits(peer, 'w');
  gate_open(gate);
  peer_ends(peer);
  assert_becomes_ready(event);
}

static void child_records(void) {
  rill_ipc_handle handle;
  peer_receive(peer_parent(), &handle, sizeof handle);
  rill_event event = import(&handle);
  rill_stream stream = new_stream("recorder");
  struct gate *gate = gate_close(stream);
  assert_ok(rill_stream_record_event(stream, event, 0));
  peer_tell(peer_parent(), 'r');
  peer_awaits(peer_parent(), 'o');
  gate_open(gate);
  assert_completes(stream);
  assert_ok(rill_event_release(event)); /* I11: the exporter's event stays valid */
  peer_tell(peer_parent(), 'd');
  peer_awaits(peer_parent(), 'e');
}

/* C4.2, C4.5: the exporter sees a record by the importer, whatever it has seen before. */
static void the_importer_can_record(void) {
  rill_ipc_handle handle;
  if (!shares_events()) return;
  struct peer *peer = peer_start("child_records");
  rill_event event = new_shared();
  rill_stream stream = new_stream("stream");
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_becomes_ready(event);
  assert_ok(rill_event_ipc_export(event, &handle));
  assert_true(is_ready(event));
  peer_send(peer, &handle, sizeof handle);
  peer_awaits(peer, 'r');
  assert_false(is_ready(event));
  assert_ok(rill_stream_wait_event(stream, event, 0));
  write_cell(stream, 1, 4);
  read_cell(stream, 1);
  assert_false(is_complete(stream));
  peer_tell(peer, 'o');
  assert_completes(stream);
  assert_int_equal(dut.host[1], 4);
  peer_awaits(peer, 'd');
  assert_true(is_ready(event));
  struct gate *gate = gate_close(stream);
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_false(is_ready(event));
  gate_open(gate);
  assert_becomes_ready(event);
  peer_tell(peer, 'e');
  peer_ends(peer);
}

static void refuse_damaged(const rill_ipc_handle *damaged) { IMPORT_FAILS(damaged, RILL_ERROR_INVALID_ARGUMENT); }

/* E36, E37, I4, I6: the importer refuses every damaged handle, imports twice, and cannot export an import. */
static void child_looks_closely(void) {
  rill_ipc_handle handle, out;
  peer_receive(peer_parent(), &handle, sizeof handle);
  with_each_damage(&handle, refuse_damaged);
  rill_event none;
  if (dut.second.id != 0) {
    assert_fails_in("rill_event_ipc_import", import_on(dut.second, &handle, &none), RILL_ERROR_WRONG_DEVICE);
  }
  assert_fails_in("rill_memory_ipc_import", rill_memory_ipc_import(dut.device, &handle, &(void *){ NULL }),
                  RILL_ERROR_INVALID_ARGUMENT);
  assert_says("event");
  rill_event first = import(&handle), second;
  rill_device device;
  assert_ok(rill_event_device(first, &device));
  assert_true(rill_device_equal(device, dut.device));
  assert_fails(rill_event_ipc_export(first, &out), RILL_ERROR_INVALID_ARGUMENT);
  /* no driver guarantees that a second import succeeds */
  const bool twice = import_on(dut.device, &handle, &second) == RILL_OK;
  if (twice) {
    keep_event_until_end(second);
    assert_false(rill_event_equal(first, second));
  } else {
    assert_says("rill_event_ipc_import");
  }
  assert_ok(rill_event_release(first));
  assert_fails(rill_event_synchronize(first), RILL_ERROR_STALE_HANDLE);
  if (twice) assert_true(is_ready(second));
}

static void refuses_damaged_handles_and_imports_twice(void) {
  rill_ipc_handle handle;
  if (!shares_events()) return;
  struct peer *peer = peer_start("child_looks_closely");
  rill_event event = new_shared();
  assert_ok(rill_event_ipc_export(event, &handle));
  peer_send(peer, &handle, sizeof handle);
  peer_ends(peer);
  assert_true(is_ready(event));
}

/* Several threads import and release one handle. A driver may allow only one import of a handle at a time; the refusal
 * has a text. */
static const char *imports_and_releases(unsigned index, void *shared) {
  (void)index;
  for (unsigned i = 0; i < scaled(200); i++) {
    rill_event event;
    if (rill_event_ipc_import(dut.device, shared, &event) != RILL_OK) {
      REQUIRE(event.id == 0 && strstr(rill_last_error_text(), "rill_event_ipc_import") != NULL);
      continue;
    }
    bool ready = false;
    REQUIRE_OK(rill_event_is_ready(event, &ready));
    REQUIRE(ready);
    REQUIRE_OK(rill_event_release(event));
  }
  return NULL;
}

static void child_imports_in_threads(void) {
  rill_ipc_handle handle;
  peer_receive(peer_parent(), &handle, sizeof handle);
  run_threads(4, imports_and_releases, &handle);
  const struct holdings before = holdings();
  run_threads(4, imports_and_releases, &handle);
  assert_holds_no_more_than(before, 800);
  assert_true(is_ready(import(&handle)));
}

/* I10, I11 */
static void serves_threads_at_once(void) {
  rill_ipc_handle handle;
  if (!shares_events()) return;
  struct peer *peer = peer_start("child_imports_in_threads");
  rill_event event = new_shared();
  assert_ok(rill_event_ipc_export(event, &handle));
  peer_send(peer, &handle, sizeof handle);
  peer_ends(peer);
  assert_true(is_ready(event));
}

static void child_exports_and_ends(void) {
  rill_ipc_handle handle;
  assert_ok(rill_event_ipc_export(new_shared(), &handle));
  peer_send(peer_parent(), &handle, sizeof handle);
}

/* I9: a driver may refuse the event of a process that has ended, or keep it; the call must not crash. */
static void survives_the_end_of_the_exporter(void) {
  rill_ipc_handle handle;
  rill_event event;
  if (!shares_events()) return;
  struct peer *peer = peer_start("child_exports_and_ends");
  peer_receive(peer, &handle, sizeof handle);
  peer_ends(peer);
  spoil_last_error();
  if (import_on(dut.device, &handle, &event) == RILL_OK) {
    bool recorded = false;
    assert_ok(rill_event_is_recorded(event, &recorded));
    assert_true(recorded);
    assert_ok(rill_event_release(event));
  } else {
    assert_says("rill_event_ipc_import");
  }
  assert_ok(rill_stream_synchronize(new_stream("after"))); /* later calls still work */
}

int main(int argc, char **argv) {
  static const struct test roles[] = { TEST(child_waits), TEST(child_records), TEST(child_looks_closely),
                                       TEST(child_imports_in_threads), TEST(child_exports_and_ends) };
  static const struct test tests[] = {
    TEST(refuses_bad_handles),
    TEST(refuses_null),
    TEST(says_why_it_is_unsupported),
    TEST(refuses_invalid_bytes),
    TEST(refuses_exports_of_this_process),
    TEST(refuses_memory),
    TEST(waits_for_the_exporters_record),
    TEST(the_importer_can_record),
    TEST(refuses_damaged_handles_and_imports_twice),
    TEST(serves_threads_at_once),
    TEST(survives_the_end_of_the_exporter),
  };
  if (argc > 1) return PEER_MAIN(argv[1], roles);
  return RUN_ON_EACH_DEVICE("rill_event_ipc_import", tests);
}
