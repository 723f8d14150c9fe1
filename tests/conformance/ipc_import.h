/* ipc_import.h: tests of what both imports from other processes refuse.
 *
 * The including file defines
 *   API, FEATURE            the function's name, and the feature that it needs
 *   IMPORT(device, handle)  calls it, and checks that a failure has no output
 *   EXPORT_ONE(handle)      exports an object of this process */
#define IMPORT_FAILS(handle, status) assert_fails_in(API, IMPORT(dut.device, (handle)), (status))

static rill_status call_with_device(uint64_t id) {
  const rill_ipc_handle handle = { { 1 } };
  return IMPORT((rill_device){ id }, &handle);
}

static void refuses_bad_handles(void) { refuses_bad_devices(API, call_with_device); }

/* C1.8 */
static void says_why_it_is_unsupported(void) {
  const char *why = "";
  const rill_ipc_handle handle = { { 1 } };
  if (rill_device_supports(dut.device, FEATURE, &why)) return;
  IMPORT_FAILS(&handle, RILL_ERROR_UNSUPPORTED);
  assert_says(why);
}

/* I6 */
static void refuses_invalid_bytes(void) {
  rill_ipc_handle handle = { { 0 } };
  if (!rill_device_supports(dut.device, FEATURE, NULL)) return;
  IMPORT_FAILS(&handle, RILL_ERROR_INVALID_ARGUMENT);
  assert_says("zero");
  memset(&handle, 0xff, sizeof handle);
  IMPORT_FAILS(&handle, RILL_ERROR_INVALID_ARGUMENT);
}

/* I3 */
static void refuses_exports_of_this_process(void) {
  rill_ipc_handle handle;
  if (!rill_device_supports(dut.device, FEATURE, NULL)) return;
  assert_ok(EXPORT_ONE(&handle));
  IMPORT_FAILS(&handle, RILL_ERROR_INVALID_ARGUMENT);
  assert_says("this process");
}
