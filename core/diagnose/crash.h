/* RILL_CHECK=crash: when a host call crashes, a line on standard error names it and its stream; then the handler runs
 * that was there before, or the process ends as it would have.
 *
 * What the handler writes is put together when the call is submitted, so it needs nothing but write(2).  A handler that
 * the program installs later comes first, and should pass on what it does not know.  The host calls of a graph's nodes
 * are said to be that, without a name. */
#ifndef RILL_CORE_DIAGNOSE_CRASH_H
#define RILL_CORE_DIAGNOSE_CRASH_H

#include "core/diagnose/observe.h"

extern const struct rill__observer rill__crash_observer;

/* Installs the handlers, once. */
void rill__crash_start(void);

#endif
