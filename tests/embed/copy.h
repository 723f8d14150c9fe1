/* copy.h: the work of each copy of rill, in a plugin or in the program; all use the same source. */
#ifndef COPY_H
#define COPY_H

#include <stdint.h>

/* Work on a device with a host call, by the copy that this was linked with; `keep` leaves a stream with work alive.
 * Returns the value read from the device, or 0 after printing the reason. */
typedef uint32_t copy_work(const char *device, uint32_t value, int keep);

copy_work rill_copy_work;

#endif
