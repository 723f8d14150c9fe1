/* rill_memory_ipc_import: refuses with a text and without an output, or opens what the other process exported, all of
 * it. */
#include "ipc.h"

/* Nothing but the exporter's memory has this in it, from its begin to its end, and after that nothing of its process
 * is seen; of a GPU's the map is asked only. */
static void check_memory(const unsigned char *p) {
  rill_memory_info info = RILL_MEMORY_INFO_INIT;
  FUZZ_REQUIRE(rill_memory_get_info(p, &info) == RILL_OK, "%s", rill_last_error_text());
  const uintptr_t begin = (uintptr_t)info.base;
  FUZZ_REQUIRE(info.kind == RILL_MEMORY_DEVICE && (uintptr_t)p >= begin && (uintptr_t)p - begin < info.size,
               "%p in %zu bytes at %p", (const void *)p, info.size, (void *)begin);
  const unsigned char *bytes = (const unsigned char *)begin;
  for (size_t i = 0; !fuzz_ipc.gpu && i < info.size; i++) {
    FUZZ_REQUIRE(bytes[i] == FUZZ_IPC_BYTE || bytes[i] == 0, "byte %zu of %zu: %02x", i, info.size, bytes[i]);
  }
  FUZZ_REQUIRE(fuzz_ipc.gpu || (bytes[0] == FUZZ_IPC_BYTE && bytes[63] == FUZZ_IPC_BYTE), "it is something else");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const rill_ipc_handle handle = fuzz_ipc_handle(data, size);
  void *p = &p;
  const rill_status status = rill_memory_ipc_import(fuzz_ipc.device, &handle, &p);
  if (status != RILL_OK) {
    FUZZ_REQUIRE(!fuzz_ipc_is_good(&handle, RILL__IPC_MEMORY), "%s", rill_last_error_text());
    FUZZ_REQUIRE(p == NULL, "%p after a failure", p);
    fuzz_ipc_check_error("rill_memory_ipc_import", status);
    return 0;
  }
  check_memory(p);
  FUZZ_REQUIRE(rill_free(p) == RILL_OK, "%s", rill_last_error_text());
  return 0;
}
