/* RILL_CHECK=faults: the stream is synchronized after each operation submitted to it, so that the call which submits a
 * faulting operation fails with the fault.
 *
 * Work of held streams and captures is not synchronized after each operation: a held stream would wait for itself, and
 * captured work does not run.  A message on standard error says so, once for held streams and once for captures.  The
 * launch of a graph is synchronized.
 */
#ifndef RILL_CORE_SYNC_FAULTS_H
#define RILL_CORE_SYNC_FAULTS_H

#include "core/diagnose/observe.h"

extern const struct rill__observer rill__faults_observer;

/* Notes that the stream captures, so its operations are not synchronized. */
void rill__faults_note_capture(const struct rill__stream *stream);

#endif
