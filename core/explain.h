/* Reports of what streams are doing, for people. */
#ifndef RILL_CORE_EXPLAIN_H
#define RILL_CORE_EXPLAIN_H

#include "core/diagnose/report.h"

/* Outside epochs, with the stream kept: its work, and who waits for it on the host. */
void rill__explain_stream(struct rill__stream *stream, struct rill__text *text);

/* The same of all streams of the device that may have work. */
void rill__explain_device(struct rill__device *device, struct rill__text *text);

/* RILL_DEADLINE: from here on a thread prints a report, once, of each wait of the host that takes longer. */
void rill__deadline_start(uint64_t ns);

#endif
