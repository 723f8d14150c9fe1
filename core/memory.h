/* What the files about memory share: what is known of a pointer that work is to use. */
#ifndef RILL_CORE_MEMORY_H
#define RILL_CORE_MEMORY_H

#include "core/call.h"
#include "core/ranges.h"

/* Looks at `n` bytes at `p` that a stream of `stream`'s device is to use.  Memory that rill does not know is left to
 * the driver: kind UNKNOWN.  Registered memory is pinned. */
rill_status rill__memory_check(const struct rill__stream *stream, const void *p, size_t n, const char *what,
                               uint32_t *kind);

#endif
