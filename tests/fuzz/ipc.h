/* Handles that another process has exported, for the targets that open them. */
#ifndef RILL_TESTS_FUZZ_IPC_H
#define RILL_TESTS_FUZZ_IPC_H

#include "core/device/ipc.h"
#include "fuzz.h"

#include <rill/rill.h>

enum {
  FUZZ_IPC_HANDLES = 6,
  FUZZ_IPC_BYTE = 0x6b /* all memory after them */
};

struct fuzz_ipc {
  rill_device device; /* RILL_TEST_DEVICE, or the CPU */
  bool gpu;
};
extern struct fuzz_ipc fuzz_ipc;

/* The handle that an input stands for: one cut off has zeros at its end. */
rill_ipc_handle fuzz_ipc_handle(const uint8_t *data, size_t size);

/* Is it one that was exported, of this kind?  Then it opens. */
bool fuzz_ipc_is_good(const rill_ipc_handle *handle, uint8_t kind);

/* Checks that the last error is `status`, and names the call and the problem. */
void fuzz_ipc_check_error(const char *api, rill_status status);

#endif
