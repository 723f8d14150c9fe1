/* Creating and destroying streams, and the objects that belong to a single stream. */
#ifndef RILL_CORE_STREAM_STREAM_H
#define RILL_CORE_STREAM_STREAM_H

#include "core/object/core.h"

/* Creates a stream object without a native stream. */
rill_status rill__stream_new(struct rill__device *device, const char *label, struct rill__stream **out);
rill_status rill__stream_create(struct rill__device *device, const rill_stream_options *options,
                                struct rill__stream **out);
rill_status rill__device_default_stream(struct rill__device *device, struct rill__stream **out);
void rill__stream_end(struct rill__stream *stream); /* called when the last reference was released; leaves the epoch */

/* Set when the first pool is created.  Makes pools give up their caches for a stream whose last reference was released;
 * events can still be recorded on it. */
extern void (*_Atomic rill__stream_end_caches)(struct rill__stream *stream);

rill_status rill__stream_create_cached_event(struct rill__stream *stream, struct rill__event **out);
/* Returns the stream's cached event, which is created at its first use. */
static inline rill_status rill__stream_cached_event(struct rill__stream *stream, struct rill__event **out) {
  *out = atomic_load_explicit(&rill__core(stream)->cached_event, memory_order_acquire);
  return RILL__LIKELY(*out != NULL) ? RILL_OK : rill__stream_create_cached_event(stream, out);
}

/* Makes later work of `stream` wait for all work submitted to `other` so far. */
rill_status rill__stream_wait_stream(struct rill__stream *stream, struct rill__stream *other);

/* ---- core/stream/native.c ---- */

/* Returns the stream for a native stream, with a reference: the existing one or a new one.  `options` NULL: accepts any
 * ownership of an existing stream; a new one is borrowed. */
rill_status rill__stream_import(struct rill__device *device, uintptr_t native, const rill_import_options *options,
                                struct rill__stream **out);

/* Lets rill_stream_import find, by its native handle, a stream that rill created. */
rill_status rill__native_list(struct rill__stream *stream, uintptr_t native);
/* Removes a stream from the table, once no call uses the stream. */
void rill__native_unlist(struct rill__stream *stream);

#endif
