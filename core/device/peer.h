/* Access of devices to each other's memory. */
#ifndef RILL_CORE_DEVICE_PEER_H
#define RILL_CORE_DEVICE_PEER_H

#include "core/object/core.h"

/* Returns true if `device` can access the memory; `why` as for `supports`. */
bool rill__peer_can_access(struct rill__device *device, struct rill__device *memory_of, const char **why);
/* Returns true if the access is enabled, which requires that it is possible. */
bool rill__peer_is_enabled(struct rill__device *device, struct rill__device *memory_of);

/* Enables or disables the access of a device that supports it.  Call it outside epochs, because the driver may take a
 * long time. */
rill_status rill__peer_set(struct rill__device *device, struct rill__device *memory_of, bool on);

#endif
