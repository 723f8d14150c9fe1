/* The times at which work of a device ran, in the host's clock. */
#ifndef RILL_CORE_TIMELINE_CLOCK_H
#define RILL_CORE_TIMELINE_CLOCK_H

#include "core/object/core.h"

/* Return the time in ns since the trace began, and set the beginning to the current time. */
uint64_t rill__trace_now(void);
void rill__trace_now_is_zero(void);
/* Converts a time of CLOCK_MONOTONIC to a time of the trace; 0 if it is before the trace. */
uint64_t rill__trace_time(uint64_t ns);

/* Returns an event with timing that no other thread has, or NULL.  Events are created in advance and recycled. */
struct rill__event *rill__trace_event_take(struct rill__device *device);
/* Recycles events, each of which is NULL or of the same device. */
void rill__trace_events_put(struct rill__event *const *events, size_t count);

/* Returns a recent point that is known in both the device's and the host's clock; 0 if there is none.  The first call
 * queries the driver, for up to a second, and creates events. */
uint64_t rill__trace_base(struct rill__device *device);

/* Creates a new point for each device whose last one is old, which takes a few milliseconds at most, and creates events
 * for devices that have few left.  Called repeatedly by the thread of the trace. */
void rill__trace_clocks_renew(void);

/* Computes when `event`, which is complete, was reached, measured from `base`.  Returns false if the driver does not
 * provide the time. */
bool rill__trace_time_of(struct rill__event *event, uint64_t base, uint64_t *ns);

void rill__trace_clock_after_fork(void);

#endif
