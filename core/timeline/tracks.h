/* The operations that a trace has begun to time: small records in the tracks of their streams, until the thread of the
 * trace, or whoever ends it, finds them complete and writes them.
 *
 * What the submitting thread does for an operation: it takes a record from those that were used before, copies what the
 * operation is called, and records one timing event after it.  Where the operation starts is known without an event of
 * its own if the stream had nothing else since the operation before, and still works on that one: where that one ends.
 *
 * Invariants
 * - The lock guards the tracks and is never held across a call of a backend: a driver's answer may be a fault, which
 *   makes core submit other work.
 * - Only the thread that has set a track's `harvested` looks at the events of the operations in it and takes them out;
 *   all threads add at the end.
 * - A track's operations are complete in their order, since they are of one stream.
 * - The latest operation of a track is not taken out while a thread asks the driver for its end (`asking`, which grows
 *   under the lock), so that the event is recorded for nothing else meanwhile.
 * - A track is not freed while a call is between begin and end of an operation in it (`users`).
 * - `pending` counts the records that are not free, and is at most MOST_PENDING. */
#ifndef RILL_CORE_TIMELINE_TRACKS_H
#define RILL_CORE_TIMELINE_TRACKS_H

#include "core/diagnose/observe.h"

#include <rill/diagnose.h>

enum { RILL__TRACE_HOST = 0, RILL__TRACE_NAME_BYTES = 128 };

/* Times in the file, to the nanosecond: microseconds with three digits. */
#define RILL__US_FORMAT "%llu.%03u"
#define RILL__US(ns) (unsigned long long)((ns) / 1000), (unsigned)((ns) % 1000)

static inline unsigned rill__trace_process(const struct rill__device *device) {
  return 1000 * device->backend->id + (unsigned)device->info.ordinal;
}
/* Tells viewers the names of a process and a track. */
void rill__trace_introduce(unsigned process, const char *process_name, uint64_t track, const char *name);

struct rill__trace_item;

/* Around an operation of a stream.  NULL if it is not to be timed, or cannot be: that is counted as dropped. */
struct rill__trace_item *rill__trace_begin(const struct rill__observed *what, uint64_t now);
void rill__trace_end(const struct rill__observed *what, struct rill__trace_item *item, rill_status status);

/* What other code does with the stream (rill/diagnose.h): between the two calls, of which the later ends the latest
 * that was begun on the stream; or from one time of the trace to another. */
void rill__trace_note_begin(struct rill__stream *stream, const rill_stream_note *note);
void rill__trace_note_end(struct rill__stream *stream);
void rill__trace_note_ran(struct rill__stream *stream, const rill_stream_note *note, uint64_t begin, uint64_t end);

/* Writes what is complete, or with `wait`, all of it. */
void rill__trace_harvest(bool wait);

/* So much is pending that the thread of the trace is to look now: true now and then. */
bool rill__trace_has_many(void);

/* Forgets what is pending, and gives how much that was. */
uint64_t rill__trace_forget(void);

/* A new trace begins: what is pending of the one before is not written. */
void rill__trace_renew(void);
/* The number of the trace, from 1 on. */
uint64_t rill__trace_number(void);

void rill__trace_tracks_after_fork(void);

#endif
