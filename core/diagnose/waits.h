/* What each thread waits for on the host, and since when.
 *
 * Invariant.  Only the thread itself writes its `wait`.  `number` is odd from after the other words are stored to
 * before they are stored again, so a reader that finds the same odd number before and after reading them has those of
 * one wait. */
#ifndef RILL_CORE_DIAGNOSE_WAITS_H
#define RILL_CORE_DIAGNOSE_WAITS_H

#include "core/diagnose/observe.h"

struct rill__host_wait {
  uint64_t number, object, device;
  uint64_t freed; /* the memory that is being freed, which may wait for all work of the device; 0: none */
  uint64_t since; /* ns */
};

/* Around a wait for `object`, a stream, event or device, as `kind` says.  `what` is filled in for the observers, if
 * there are any.  A wait that an observer refuses has ended. */
rill_status rill__host_wait_begin(struct rill__observed *what, enum rill__observed_kind kind,
                                  struct rill__object *object);
rill_status rill__host_wait_end(struct rill__observed *what, rill_status status);

/* The same around a free of memory, of which observers hear otherwise. */
void rill__host_free_begin(struct rill__device *device, const void *p);
void rill__host_free_end(void);

/* Whether the thread waits, and for what. */
bool rill__host_wait_of(struct rill__thread *thread, struct rill__host_wait *out);

uint64_t rill__now(void); /* as `since`: some milliseconds late, which costs less */

#endif
