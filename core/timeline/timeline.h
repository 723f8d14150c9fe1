/* The trace: what ran when, written to a file as it becomes known (rill/trace.h). */
#ifndef RILL_CORE_TIMELINE_TIMELINE_H
#define RILL_CORE_TIMELINE_TIMELINE_H

#include "core/object/core.h"

#include <rill/diagnose.h>

enum { RILL__TIMELINE_LIMIT = 1 << 30 }; /* bytes of the file, unless another number is asked for */

/* `path` is written over.  `nodes`: each node of a graph is timed. */
rill_status rill__timeline_start(const char *path, uint64_t limit, bool nodes);

/* Ends the trace; `wait`: after all work that it has begun to time.  Outside epochs.  INVALID_ARGUMENT if there is
 * none, BACKEND if the file could not be written completely. */
rill_status rill__timeline_stop(bool wait);

/* A range of the calling thread. */
void rill__timeline_range_push(const char *name);
void rill__timeline_range_pop(void);

/* What other code does with a stream (rill/diagnose.h). */
void rill__timeline_note_begin(struct rill__stream *stream, const rill_stream_note *note);
void rill__timeline_note_end(struct rill__stream *stream);
void rill__timeline_note_ran(struct rill__stream *stream, const rill_stream_note *note, uint64_t begin_ns,
                             uint64_t end_ns);

/* A device is used: from here on a trace ends at exit before what the device's driver does there, since handlers run in
 * reverse order. */
void rill__timeline_handle_exit(void);

void rill__timeline_after_fork(void);

#endif
