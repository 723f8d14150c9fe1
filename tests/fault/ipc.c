/* Makes each vendor call of imports and exports fail: the error names the call, there are no outputs, nothing leaks,
 * and the next try works. */
#include "conformance/ipc.h"
#include "core/device/ipc.h"
#include "tour.h"

#include <stdio.h>

enum { CODE = 999, WORDS = 100 };

struct handles {
  rill_ipc_handle event, memory;
};

static void check_refusal(const char *api, rill_status status) {
  rill_error error = RILL_ERROR_INIT;
  assert_ok(rill_last_error(&error));
  assert_int_equal(status, RILL_ERROR_BACKEND);
  assert_string_equal(error.api, api);
  assert_int_equal(error.native_code, CODE);
  assert_string_equal(error.native_name, vendor.unknown);
}

/* Runs both imports and their closing; failed calls are retried without the refusal. */
static bool imports_with_refusal(const struct handles *handles, const char *function, unsigned nth) {
  rill_event event = { 1 };
  void *p = &event;
  const uint64_t before = vendor.fake->calls(function);
  vendor.fake->fail_call(function, nth, CODE);
  rill_status status = rill_event_ipc_import(vendor.device, &handles->event, &event);
  if (status != RILL_OK) {
    check_refusal("rill_event_ipc_import", status);
    assert_int_equal(event.id, 0);
  }
  status = rill_memory_ipc_import(vendor.device, &handles->memory, &p);
  if (status != RILL_OK) {
    check_refusal("rill_memory_ipc_import", status);
    assert_null(p);
  }
  assert_ok(rill_event_release(event));
  status = rill_free(p);
  const bool struck = vendor.fake->calls(function) - before >= nth;
  vendor.fake->clear();
  if (status != RILL_OK) {
    check_refusal("rill_free", status);
    assert_ok(rill_free(p));
  }
  return struck;
}

/* ---- forged handles of the right form ---- */

/* The handle with other fields, and the check that belongs to them: FNV-1a. */
static rill_ipc_handle forged(const struct rill__ipc_bytes *content) {
  rill_ipc_handle handle;
  uint64_t check = UINT64_C(0xcbf29ce484222325);
  memcpy(&handle, content, sizeof handle);
  for (size_t i = 0; i < offsetof(struct rill__ipc_bytes, check); i++) {
    check = (check ^ handle.bytes[i]) * UINT64_C(0x100000001b3);
  }
  memcpy(handle.bytes + offsetof(struct rill__ipc_bytes, check), &check, sizeof check);
  return handle;
}

static void refuses_size(const rill_ipc_handle *handle, uint64_t size) {
  struct rill__ipc_bytes content;
  void *p = &content;
  const size_t alive = settle();
  memcpy(&content, handle, sizeof content);
  content.size = size;
  const rill_ipc_handle other = forged(&content);
  assert_fails_in("rill_memory_ipc_import", rill_memory_ipc_import(vendor.device, &other, &p),
                  RILL_ERROR_INVALID_ARGUMENT);
  assert_says("forged");
  assert_null(p);
  assert_int_equal(settle(), alive);
}

static void child_meets_other_sizes(void) {
  struct handles handles;
  rill_memory_info info = RILL_MEMORY_INFO_INIT;
  void *p;
  peer_receive(peer_parent(), &handles, sizeof handles);
  refuses_size(&handles.memory, UINT64_C(1) << 26); /* more than the driver maps */
  assert_ok(rill_memory_ipc_import(vendor.device, &handles.memory, &p));
  refuses_size(&handles.memory, WORDS - 1); /* the driver opens it where another size is known */
  assert_ok(rill_memory_get_info(p, &info));
  assert_int_equal(info.size, WORDS);
  assert_ok(rill_free(p));
}

/* As if another process had exported it, whose driver is this one's. */
static void refuses_what_the_driver_refuses(const struct handles *handles) {
  struct rill__ipc_bytes content;
  rill_event event;
  void *p;
  memcpy(&content, &handles->memory, sizeof content);
  content.exporter ^= UINT64_C(1) << 40;
  rill_ipc_handle handle = forged(&content);
  assert_fails_in("rill_memory_ipc_import", rill_memory_ipc_import(vendor.device, &handle, &p), RILL_ERROR_NOT_FOUND);
  memcpy(&content, &handles->event, sizeof content);
  content.exporter ^= UINT64_C(1) << 40;
  handle = forged(&content);
  assert_fails_in("rill_event_ipc_import", rill_event_ipc_import(vendor.device, &handle, &event), RILL_ERROR_NOT_FOUND);
}

static void handles_can_be_forged(void) {
  struct handles handles;
  rill_event event;
  void *p;
  struct peer *peer = peer_start("child_meets_other_sizes");
  assert_ok(rill_event_create(vendor.device, RILL_EVENT_OPTIONS(.interprocess = true), &event));
  assert_ok(rill_alloc(vendor.device, WORDS, RILL_MEMORY_DEVICE, &p));
  assert_ok(rill_event_ipc_export(event, &handles.event));
  assert_ok(rill_memory_ipc_export(p, &handles.memory));
  peer_send(peer, &handles, sizeof handles);
  peer_ends(peer);
  refuses_what_the_driver_refuses(&handles);
  assert_ok(rill_event_release(event));
  assert_ok(rill_free(p));
}

/* ---- calls that fail ---- */

static void child_meets_refusals(void) {
  struct handles handles;
  static const char *const fields[] = { "context_push",    "get_device",   "context_synchronize", "ipc_open_event",
                                        "ipc_open_memory", "memory_range", "ipc_close_memory" };
  peer_receive(peer_parent(), &handles, sizeof handles);
  assert_false(imports_with_refusal(&handles, "no_function", 1));
  const size_t alive = settle();
  const unsigned files = holdings().files;
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    if (vendor.cuda == (strcmp(fields[i], "get_device") == 0)) continue;
    if (!vendor.cuda && strcmp(fields[i], "context_push") == 0) continue;
    unsigned nth = 1;
    while (imports_with_refusal(&handles, vendor_name(fields[i]), nth)) nth++;
    assert_true(nth > 1); /* each is called */
    assert_int_equal(settle(), alive);
    assert_int_equal(holdings().files, files);
  }
}

static void imports_can_fail(void) {
  struct handles handles;
  rill_event event;
  void *p;
  struct peer *peer = peer_start("child_meets_refusals");
  assert_ok(rill_event_create(vendor.device, RILL_EVENT_OPTIONS(.interprocess = true), &event));
  assert_ok(rill_alloc(vendor.device, WORDS, RILL_MEMORY_DEVICE, &p));
  assert_ok(rill_event_ipc_export(event, &handles.event));
  assert_ok(rill_memory_ipc_export(p, &handles.memory));
  peer_send(peer, &handles, sizeof handles);
  peer_ends(peer);
  assert_ok(rill_event_release(event));
  assert_ok(rill_free(p));
}

/* Exports both kinds of new objects; failed calls are retried without the refusal. */
static bool exports_with_refusal(const char *function, unsigned nth) {
  static const rill_ipc_handle zero;
  struct handles handles;
  rill_event event;
  void *p;
  bool recorded = true;
  assert_ok(rill_event_create(vendor.device, RILL_EVENT_OPTIONS(.interprocess = true), &event));
  assert_ok(rill_alloc(vendor.device, WORDS, RILL_MEMORY_DEVICE, &p));
  const uint64_t before = vendor.fake->calls(function);
  vendor.fake->fail_call(function, nth, CODE);
  rill_status status = rill_event_ipc_export(event, &handles.event);
  if (status != RILL_OK) {
    check_refusal("rill_event_ipc_export", status);
    assert_memory_equal(&handles.event, &zero, sizeof zero);
    assert_ok(rill_event_is_recorded(event, &recorded));
    assert_false(recorded); /* no one else has it */
  }
  status = rill_memory_ipc_export(p, &handles.memory);
  if (status != RILL_OK) {
    check_refusal("rill_memory_ipc_export", status);
    assert_memory_equal(&handles.memory, &zero, sizeof zero);
  }
  const bool struck = vendor.fake->calls(function) - before >= nth;
  vendor.fake->clear();
  assert_ok(rill_event_ipc_export(event, &handles.event));
  assert_ok(rill_memory_ipc_export(p, &handles.memory));
  assert_ok(rill_event_is_recorded(event, &recorded));
  assert_true(recorded);
  assert_ok(rill_event_release(event));
  assert_ok(rill_free(p));
  return struck;
}

/* I10 */
static void exports_can_fail(void) {
  const char *const fields[] = { vendor.cuda ? "context_push" : "get_device", "ipc_export_event", "ipc_export_memory" };
  assert_false(exports_with_refusal("no_function", 1));
  const size_t alive = settle();
  const unsigned files = holdings().files;
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    unsigned nth = 1;
    while (exports_with_refusal(vendor_name(fields[i]), nth)) nth++;
    assert_true(nth > 1);
    assert_int_equal(settle(), alive);
    assert_int_equal(holdings().files, files);
  }
}

/* On a lost device nothing is exported or imported, and the first cause is reported (C2.6). */
static void a_lost_device_shares_nothing(void) {
  rill_ipc_handle handle;
  rill_event event;
  void *p;
  bool ready = false;
  assert_ok(rill_event_create(vendor.device, RILL_EVENT_OPTIONS(.interprocess = true), &event));
  assert_ok(rill_alloc(vendor.device, WORDS, RILL_MEMORY_DEVICE, &p));
  assert_ok(rill_event_ipc_export(event, &handle));
  vendor.fake->fault(0, 700);
  assert_fails(rill_event_is_ready(event, &ready), RILL_ERROR_DEVICE_LOST);
  assert_fails(rill_event_ipc_export(event, &handle), RILL_ERROR_DEVICE_LOST);
  assert_fails(rill_memory_ipc_export(p, &handle), RILL_ERROR_DEVICE_LOST);
  assert_fails(rill_memory_ipc_import(vendor.device, &handle, &p), RILL_ERROR_DEVICE_LOST);
  assert_fails(rill_event_ipc_import(vendor.device, &handle, &event), RILL_ERROR_DEVICE_LOST);
}

int main(int argc, char **argv) {
  static const struct test begin[] = { TEST(vendor_begin) };
  static const struct test roles[] = { TEST(child_meets_refusals), TEST(child_meets_other_sizes) };
  static const struct test tests[] = { TEST(exports_can_fail), TEST(imports_can_fail), TEST(handles_can_be_forged) };
  static const struct test last[] = { TEST(a_lost_device_shares_nothing) };
  char device[32];
  (void)snprintf(device, sizeof device, "%s:0", getenv("RILL_TEST_VENDOR"));
  if (setenv("RILL_TEST_DEVICE", device, 1) != 0 || RUN_ONCE("fake devices", begin) != 0) return 1;
  if (argc > 1) return PEER_MAIN(argv[1], roles);
  const int failed = RUN_ON_EACH_DEVICE("sharing with failing calls", tests);
  return RUN_ONCE("sharing on a lost device", last) != 0 || failed != 0;
}
