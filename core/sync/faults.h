/* RILL_CHECK=faults: a stream is synchronized after each operation that is given to it, so that the call which submits
 * a faulting operation fails with the fault.
 *
 * Work of a held stream and of a capture is not synchronized one by one, which is said on standard error, once each:
 * the first would wait for itself, and the second does not run.  The launch of a graph is synchronized. */
#ifndef RILL_CORE_SYNC_FAULTS_H
#define RILL_CORE_SYNC_FAULTS_H

#include "core/diagnose/observe.h"

extern const struct rill__observer rill__faults_observer;

/* The stream captures: nothing of it is synchronized. */
void rill__faults_note_capture(const struct rill__stream *stream);

#endif
