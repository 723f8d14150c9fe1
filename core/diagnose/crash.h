/* RILL_CHECK=crash: if a host call crashes, a line on standard error names the call and its stream.  Then the previous
 * handler runs, or the process ends as it would have.
 *
 * The line is prepared when the call is submitted, so the handler only needs write(2).  A handler that the program
 * installs later runs first, and should pass on signals that it does not handle.  For a host call of a graph, the line
 * names the function and a stream on which it was launched; of several streams, the one that was the last to launch it
 * for the first time. */
#ifndef RILL_CORE_DIAGNOSE_CRASH_H
#define RILL_CORE_DIAGNOSE_CRASH_H

#include "core/diagnose/observe.h"

extern const struct rill__observer rill__crash_observer;

/* Installs the handlers once. */
void rill__crash_start(void);

#endif
