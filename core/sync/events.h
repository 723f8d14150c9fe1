/* Making events. */
#ifndef RILL_CORE_SYNC_EVENTS_H
#define RILL_CORE_SYNC_EVENTS_H

#include "core/backend.h"

rill_status rill__event_new(struct rill__device *device, const char *label, struct rill__event **out); /* empty */
rill_status rill__event_create(struct rill__device *device, const rill_event_options *options,
                               struct rill__event **out);

#endif
