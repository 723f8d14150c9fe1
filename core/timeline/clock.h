/* When the work of a device ran, in the time of the host. */
#ifndef RILL_CORE_TIMELINE_CLOCK_H
#define RILL_CORE_TIMELINE_CLOCK_H

#include "core/object/core.h"

/* Since the trace began, in nanoseconds. */
uint64_t rill__trace_now(void);
void rill__trace_now_is_zero(void);

/* An event with timing that nobody else has, or NULL; and its end.  Spare ones are used again. */
struct rill__event *rill__trace_event_take(struct rill__device *device);
void rill__trace_event_put(struct rill__event *event);

/* A point of the device's own time that is known in the host's, not long before now; 0 if there is none.  It may ask
 * the driver for some milliseconds, once in a few seconds; the first time, for a second. */
uint64_t rill__trace_base(struct rill__device *device);

/* When `event`, which is complete, was reached, measured from `base`.  False if the driver does not tell. */
bool rill__trace_time_of(struct rill__event *event, uint64_t base, uint64_t *ns);

void rill__trace_clock_after_fork(void);

#endif
