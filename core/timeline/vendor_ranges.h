/* Ranges for the vendors' profilers: NVTX and ROCTX, if the program or a profiler has loaded the library, or if a
 * profiler uses NVTX 3. */
#ifndef RILL_CORE_TIMELINE_VENDOR_RANGES_H
#define RILL_CORE_TIMELINE_VENDOR_RANGES_H

void rill__vendor_range_push(const char *name);
void rill__vendor_range_pop(void);

#endif
