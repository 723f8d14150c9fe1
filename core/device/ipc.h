/* The bytes of a rill_ipc_handle: what they hold, and what is refused.
 *
 * They come from another process and may be anything.  The check is no signature: it finds damage, not malice.  So
 * whatever passes it is looked at again, and the backend trusts none of its own bytes.
 *
 * Magic and check stay where they are in every version, so that each can tell damage from a handle that it does not
 * know. */
#ifndef RILL_CORE_DEVICE_IPC_H
#define RILL_CORE_DEVICE_IPC_H

#include "core/object/core.h"

enum { RILL__IPC_VERSION = 1, RILL__IPC_EVENT = 1, RILL__IPC_MEMORY = 2 };

struct rill__ipc_bytes {
  char magic[8];
  uint8_t version, kind, backend, native_size;
  uint32_t lead;         /* of memory: how many of its bytes come before the allocation: a red zone; else 0 */
  uint8_t device[16];    /* its UUID; of one without, its PCI address; 0 for the CPU */
  uint64_t exporter;     /* tells processes apart */
  uint64_t size, offset; /* of memory: bytes of the allocation, and where in it the pointer was; 0 for events */
  struct rill__ipc_native native;
  uint64_t check; /* of all before */
};

/* Fills in all but kind, lead, size, offset and native, which stand there, and writes the bytes. */
void rill__ipc_write(struct rill__ipc_bytes *content, const struct rill__device *device, rill_ipc_handle *out);

/* Reads bytes that are for `device` and of `kind`, from another process; fails with what is wrong with them. */
rill_status rill__ipc_read(const rill_ipc_handle *handle, const struct rill__device *device, uint8_t kind,
                           struct rill__ipc_bytes *out);

/* The check of bytes as they stand. */
uint64_t rill__ipc_check(const struct rill__ipc_bytes *content);

/* Fails if the device is lost, or lacks the feature, RILL_FEATURE_IPC or RILL_FEATURE_EVENT_IPC: UNSUPPORTED with the
 * reason that it gives. */
rill_status rill__ipc_check_able(struct rill__device *device, uint32_t feature);

#endif
