/* native_import.h: tests of what imports of native streams and events refuse.
 *
 * The including file defines
 *   API                              the function's name
 *   IMPORT(device, native, options)  calls it, and checks that a failure has no output */
static rill_status call_with_device(uint64_t id) { return IMPORT((rill_device){ id }, 0x1000, NULL); }

static void refuses_bad_handles(void) { refuses_bad_devices(API, call_with_device); }

/* C3.3, C4.5, C1.8, S20 */
static void is_unsupported_on_the_cpu(void) {
  if (dut.gpu) return;
  const uintptr_t natives[] = { 0, 1, 2, 0x1000 };
  for (size_t i = 0; i < sizeof natives / sizeof *natives; i++) {
    assert_fails_in(API, IMPORT(dut.device, natives[i], NULL), RILL_ERROR_UNSUPPORTED);
    assert_says("cpu");
  }
}

static void refuses_invalid_options(void) {
  rill_import_options options = RILL_IMPORT_OPTIONS_INIT;
  options.ownership = RILL_IMPORT_ADOPT + 1;
  assert_fails_in(API, IMPORT(dut.device, 0x1000, &options), RILL_ERROR_INVALID_ARGUMENT);
  options.ownership = 0;
  options.struct_size = 0;
  assert_fails_in(API, IMPORT(dut.device, 0x1000, &options), RILL_ERROR_INVALID_ARGUMENT);
}
