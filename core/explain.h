/* Reports of what streams are doing, for people. */
#ifndef RILL_CORE_EXPLAIN_H
#define RILL_CORE_EXPLAIN_H

#include "core/diagnose/report.h"

/* Outside epochs, with the stream kept: its work, and who waits for it on the host. */
void rill__explain_stream(struct rill__stream *stream, struct rill__text *text);

/* The same of all streams of the device that may have work. */
void rill__explain_device(struct rill__device *device, struct rill__text *text);

/* Starts a thread that prints reports: RILL_DEADLINE, of each wait of the host that takes longer, once; and
 * RILL_REPORT_SIGNAL, of all devices when the signal comes, whose handler only wakes the thread.  0: without. */
void rill__reports_start(uint64_t deadline_ns, int report_signal);

#endif
