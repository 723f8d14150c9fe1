/* The life of streams, and what a stream has for itself. */
#ifndef RILL_CORE_STREAM_STREAM_H
#define RILL_CORE_STREAM_STREAM_H

#include "core/object/core.h"

rill_status rill__stream_new(struct rill__device *device, const char *label, struct rill__stream **out); /* empty */
rill_status rill__stream_create(struct rill__device *device, const rill_stream_options *options,
                                struct rill__stream **out);
rill_status rill__device_default_stream(struct rill__device *device, struct rill__stream **out);
void rill__stream_end(struct rill__stream *stream); /* its last reference has gone; leaves the epoch */

/* Set when the first pool is made: the stream's last reference has gone, and pools have caches for it, which they give
 * up.  It can still be recorded on. */
extern void (*_Atomic rill__stream_end_caches)(struct rill__stream *stream);

/* The stream's cached event, made at the first use. */
rill_status rill__stream_cached_event(struct rill__stream *stream, struct rill__event **out);

/* Makes later work of `stream` wait for all work of `other`. */
rill_status rill__stream_wait_stream(struct rill__stream *stream, struct rill__stream *other);

/* ---- core/stream/native.c ---- */

/* The stream of a native one, with a reference added: the one that rill has for it already, or a new one.  `options`
 * NULL: whoever ends the native stream, which is borrowed if it is new here. */
rill_status rill__stream_import(struct rill__device *device, uintptr_t native, const rill_import_options *options,
                                struct rill__stream **out);

/* Lets rill_stream_import find a stream of rill's own by its native handle; and ends that, when no call uses it. */
rill_status rill__native_list(struct rill__stream *stream, uintptr_t native);
void rill__native_unlist(struct rill__stream *stream);

#endif
