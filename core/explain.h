/* Reports of what streams are doing, for people. */
#ifndef RILL_CORE_EXPLAIN_H
#define RILL_CORE_EXPLAIN_H

#include "core/diagnose/report.h"

/* Describes the work of the stream, and the host waits for it.  Called outside epochs, with a reference to the
 * stream. */
void rill__explain_stream(struct rill__stream *stream, struct rill__text *text);

/* The same for all streams of the device that may have work. */
void rill__explain_device(struct rill__device *device, struct rill__text *text);

/* Starts a thread that prints reports.  RILL_DEADLINE: a report for each wait of the host that takes longer, once.
 * RILL_REPORT_SIGNAL: a report of all devices when the signal arrives; the handler only wakes the thread.  A parameter
 * that is 0 disables its report. */
void rill__reports_start(uint64_t deadline_ns, int report_signal);

#endif
