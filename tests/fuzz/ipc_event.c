/* rill_event_ipc_import: refuses with a text and without an output, or opens the event that the other process
 * exported, which is complete. */
#include "ipc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const rill_ipc_handle handle = fuzz_ipc_handle(data, size);
  rill_event event = { 1 };
  bool ready = false;
  const rill_status status = rill_event_ipc_import(fuzz_ipc.device, &handle, &event);
  if (status != RILL_OK) {
    FUZZ_REQUIRE(!fuzz_ipc_is_good(&handle, RILL__IPC_EVENT), "%s", rill_last_error_text());
    FUZZ_REQUIRE(event.id == 0, "an event after a failure");
    fuzz_ipc_check_error("rill_event_ipc_import", status);
    return 0;
  }
  FUZZ_REQUIRE(fuzz_ipc.gpu, "the CPU shares no events");
  FUZZ_REQUIRE(rill_event_is_ready(event, &ready) == RILL_OK && ready, "%s", rill_last_error_text());
  FUZZ_REQUIRE(rill_event_release(event) == RILL_OK, "%s", rill_last_error_text());
  return 0;
}
