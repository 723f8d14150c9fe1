/* Human-readable reports of what streams are doing. */
#ifndef RILL_CORE_EXPLAIN_H
#define RILL_CORE_EXPLAIN_H

#include "core/diagnose/report.h"

/* Describes the work of the stream, and the host waits for it.  Called outside epochs, with a reference to the
 * stream. */
void rill__explain_stream(struct rill__stream *stream, struct rill__text *text);

/* Does the same for all streams of the device that may have work. */
void rill__explain_device(struct rill__device *device, struct rill__text *text);

/* Starts a thread that prints reports.  `deadline_ns` (RILL_DEADLINE): one report for each host wait that takes longer;
 * 0: none. `report_signal` (RILL_REPORT_SIGNAL): a report of all devices when the signal arrives; 0: none.  The signal
 * handler only wakes the thread. */
void rill__reports_start(uint64_t deadline_ns, int report_signal);

#endif
