/* Which devices access each other's memory. */
#ifndef RILL_CORE_DEVICE_PEER_H
#define RILL_CORE_DEVICE_PEER_H

#include "core/object/core.h"

/* Whether a device can, `why` as for `supports`; and whether it is on, which it is only for those that can. */
bool rill__peer_can_access(struct rill__device *device, struct rill__device *memory_of, const char **why);
bool rill__peer_is_on(struct rill__device *device, struct rill__device *memory_of);

/* For two devices that can.  Outside epochs: the driver may take its time. */
rill_status rill__peer_set(struct rill__device *device, struct rill__device *memory_of, bool on);

#endif
