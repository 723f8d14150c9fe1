/* When the work of a device ran, in the time of the host. */
#ifndef RILL_CORE_TIMELINE_CLOCK_H
#define RILL_CORE_TIMELINE_CLOCK_H

#include "core/object/core.h"

/* Since the trace began, in nanoseconds. */
uint64_t rill__trace_now(void);
void rill__trace_now_is_zero(void);
/* A time of CLOCK_MONOTONIC as such a one; 0 if it was before. */
uint64_t rill__trace_time(uint64_t ns);

/* An event with timing that nobody else has, or NULL; and the end of some, which are of one device or NULL.  Events are
 * made in advance and used again. */
struct rill__event *rill__trace_event_take(struct rill__device *device);
void rill__trace_events_put(struct rill__event *const *events, size_t count);

/* A point of the device's own time that is known in the host's, not long before now; 0 if there is none.  The first
 * time it asks the driver, for up to a second, and makes events. */
uint64_t rill__trace_base(struct rill__device *device);

/* By the thread of the trace, again and again: makes a new point for each device whose last one is old, which takes
 * some milliseconds at most, and events where few are left. */
void rill__trace_clocks_renew(void);

/* When `event`, which is complete, was reached, measured from `base`.  False if the driver does not tell. */
bool rill__trace_time_of(struct rill__event *event, uint64_t base, uint64_t *ns);

void rill__trace_clock_after_fork(void);

#endif
