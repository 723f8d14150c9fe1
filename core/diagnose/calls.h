/* Which host calls run, of which stream, and since when: for reports.
 *
 * The threads that run host calls are mostly a driver's, so the places are not in the records of threads.  A thread
 * looks for a free place from one on that depends on the thread, so each finds its own, which no other processor has in
 * its cache.  A call that finds none free is not reported.
 *
 * Invariants
 * - `owner` is the thread that took the place, by compare-and-exchange from 0, and only that thread writes the other
 *   words and the 0 after its call.
 * - `number` is odd from after the other words are stored to before they are stored again, so a reader that finds the
 *   same odd number before and after reading them has those of one call. */
#ifndef RILL_CORE_DIAGNOSE_CALLS_H
#define RILL_CORE_DIAGNOSE_CALLS_H

#include "core/object/core.h"

struct rill__host_call_seen {
  uint64_t stream; /* its id; 0: of a graph */
  uint64_t fn;     /* the address of the function */
  uint64_t since;  /* as rill__now (core/diagnose/waits.h) */
};

/* The call that the thread runs is of another function than the one that the backend was given. */
void rill__call_is_of(rill_host_fn fn);

/* The call that runs in a place, from 0 to RILL__CALL_PLACES - 1; false if none does. */
enum { RILL__CALL_PLACES = 64 };
bool rill__call_at(size_t place, struct rill__host_call_seen *out);

/* In the child of a fork: the other threads are not there. */
void rill__calls_after_fork(void);

#endif
