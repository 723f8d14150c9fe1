/* The bytes of a rill_ipc_handle: their meaning, and which bytes are refused.
 *
 * The bytes come from another process and may be anything.  The checksum is not a signature: it detects damage, but not
 * intentional changes.  Everything that passes the check is therefore validated again, and the backend trusts none of
 * its own bytes.
 *
 * The magic number and the checksum are at the same place in every version, so each version can distinguish damage from
 * a handle that it does not know.
 */
#ifndef RILL_CORE_DEVICE_IPC_H
#define RILL_CORE_DEVICE_IPC_H

#include "core/object/core.h"

enum { RILL__IPC_VERSION = 1, RILL__IPC_EVENT = 1, RILL__IPC_MEMORY = 2 };

struct rill__ipc_bytes {
  char magic[8];
  uint8_t version, kind, backend, native_size;
  uint32_t lead;         /* for memory: number of bytes before the allocation (a red zone); else 0 */
  uint8_t device[16];    /* UUID of the device, or its PCI address if it has no UUID; 0 for the CPU */
  uint64_t exporter;     /* identifies the process */
  uint64_t size, offset; /* for memory: bytes of the allocation, and offset of the pointer in it; 0 for events */
  struct rill__ipc_native native;
  uint64_t check; /* hash of all bytes before */
};

/* Fills in everything but kind, lead, size, offset and native, which the caller has set, and writes the bytes. */
void rill__ipc_write(struct rill__ipc_bytes *content, const struct rill__device *device, rill_ipc_handle *out);

/* Reads bytes for `device` and of `kind` from another process; fails with a text that says why they are refused. */
rill_status rill__ipc_read(const rill_ipc_handle *handle, const struct rill__device *device, uint8_t kind,
                           struct rill__ipc_bytes *out);

/* Returns the checksum of the current bytes. */
uint64_t rill__ipc_check(const struct rill__ipc_bytes *content);

/* Fails if the device is lost or does not support the feature, RILL_FEATURE_IPC or RILL_FEATURE_EVENT_IPC.  The text of
 * UNSUPPORTED contains the device's reason. */
rill_status rill__ipc_check_able(struct rill__device *device, uint32_t feature);

#endif
