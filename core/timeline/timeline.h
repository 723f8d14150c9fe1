/* The trace: which operations and calls ran when, written to a file as it becomes known (rill/trace.h). */
#ifndef RILL_CORE_TIMELINE_TIMELINE_H
#define RILL_CORE_TIMELINE_TIMELINE_H

#include "core/object/core.h"

#include <rill/diagnose.h>

enum { RILL__TIMELINE_LIMIT = 1 << 30 }; /* maximum size of the file in bytes, unless another limit is given */

/* Starts a trace; overwrites the file `path`.  `nodes`: times each node of a graph. */
rill_status rill__timeline_start(const char *path, uint64_t limit, bool nodes);

/* Ends the trace.  `wait`: waits for all work that it has begun to time.  Call it outside epochs.  Fails with
 * INVALID_ARGUMENT if there is no trace, and with BACKEND if the file could not be written completely. */
rill_status rill__timeline_stop(bool wait);

/* Begin and end a range of the calling thread. */
void rill__timeline_range_push(const char *name);
void rill__timeline_range_pop(void);

/* Note the work of other code on a stream (rill/diagnose.h). */
void rill__timeline_note_begin(struct rill__stream *stream, const rill_stream_note *note);
void rill__timeline_note_end(struct rill__stream *stream);
void rill__timeline_note_ran(struct rill__stream *stream, const rill_stream_note *note, uint64_t begin_ns,
                             uint64_t end_ns);

/* Registers the end of the trace at exit again, so that a trace ends before the device's driver is shut down: exit
 * handlers run in reverse order.  Called when a device is first used. */
void rill__timeline_handle_exit(void);

void rill__timeline_after_fork(void);

#endif
