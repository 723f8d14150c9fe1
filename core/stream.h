/* Making and ending streams. */
#ifndef RILL_CORE_STREAM_H
#define RILL_CORE_STREAM_H

#include "core/backend.h"

rill_status rill__stream_new(struct rill__device *device, const char *label, struct rill__stream **out); /* empty */
rill_status rill__device_default_stream(struct rill__device *device, struct rill__stream **out);
void rill__stream_end(struct rill__stream *stream); /* its last reference has gone; leaves the epoch */

/* Lets rill_stream_import find a stream of rill's own by its native handle; and ends that, when no call uses it. */
rill_status rill__native_list(struct rill__stream *stream, uintptr_t native);
void rill__native_unlist(struct rill__stream *stream);

#endif
