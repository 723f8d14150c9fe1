/* The operations that a trace has begun to time: small records in the tracks of their streams, until the thread of the
 * trace, or the thread that ends it, finds them complete and writes them.
 *
 * For each operation, the submitting thread takes an unused record, copies the operation's name, and records one timing
 * event after the operation; it does not query the driver.  The operation starts when it has been submitted and the
 * operation before it in the track has ended; if the stream has become idle meanwhile, the bar begins early by the
 * latency of a launch.  The start has an event of its own if the host has seen the stream idle, or if the stream may be
 * executing work that has no record: work from before the trace, of other code, or dropped.
 *
 * Invariants
 * - The lock guards the tracks and is never held across a call of a backend: a driver may answer with a fault, which
 *   makes core submit other work.
 * - Only the thread that has set a track's `harvested` queries the events of the operations in it and removes
 *   operations; all threads append.
 * - The operations of a track become complete in their order, since they are of one stream; only a note ends after the
 *   operations that it contains.
 * - A wait is written after the record at which its arrow begins, which was added to its track before the wait, so no
 *   two tracks block each other.
 * - A track is not freed while a call is between the begin and the end of an operation in it (`users`).
 * - `pending` counts the records that are not free, and is at most MAX_PENDING.
 */
#ifndef RILL_CORE_TIMELINE_TRACKS_H
#define RILL_CORE_TIMELINE_TRACKS_H

#include "core/diagnose/observe.h"

#include <rill/diagnose.h>

enum { RILL__TRACE_HOST = 0, RILL__TRACE_NAME_BYTES = 128 };

static inline unsigned rill__trace_process(const struct rill__device *device) {
  return 1000 * device->backend->id + (unsigned)device->info.ordinal;
}
/* Write the name of a device's process, and of a track of a process, for viewers. */
void rill__trace_name_process(const struct rill__device *device);
void rill__trace_name_track(unsigned process, uint64_t track, const char *name);

struct rill__trace_item;

/* Begin and end the timing of an operation of a stream.  `base`: rill__trace_base of its device; not used for a record.
 * rill__trace_begin returns NULL if the operation is not timed; an operation that cannot be timed is counted as
 * dropped. */
struct rill__trace_item *rill__trace_begin(const struct rill__observed *what, uint64_t base, uint64_t now);
void rill__trace_end(const struct rill__observed *what, struct rill__trace_item *item, rill_status status);

/* Note the work of other code on the stream (rill/diagnose.h): the first function begins a note, the second ends the
 * latest note of the stream, and the third notes work between two times of the trace. */
void rill__trace_note_begin(struct rill__stream *stream, const rill_stream_note *note);
void rill__trace_note_end(struct rill__stream *stream);
void rill__trace_note_ran(struct rill__stream *stream, const rill_stream_note *note, uint64_t begin, uint64_t end);

/* Writes the operations that are complete.  `wait`: waits for all operations and writes them. */
void rill__trace_harvest(bool wait);

/* Returns true, at intervals, if so much is pending that the thread of the trace should start early. */
bool rill__trace_has_many(void);

/* Drops the pending operations and returns their number. */
uint64_t rill__trace_forget(void);

/* Starts a new trace; the pending operations of the previous one will not be written. */
void rill__trace_renew(void);
/* Returns the number of the trace, starting at 1. */
uint64_t rill__trace_number(void);

void rill__trace_tracks_after_fork(void);

#endif
