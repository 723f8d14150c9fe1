/* copy.h: what each copy of rill does, in a plugin or in the program; the same source for all. */
#ifndef COPY_H
#define COPY_H

#include <stdint.h>

/* Work on a device with a host call, by the copy that this was linked with; `keep` leaves a stream with work alive.
 * Returns what came back from the device, or 0 and says why. */
typedef uint32_t copy_work(const char *device, uint32_t value, int keep);

copy_work rill_copy_work;

#endif
