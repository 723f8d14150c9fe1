/* Records which object each thread waits for on the host, and since when.
 *
 * Invariant: only the thread itself writes its `wait`.  `number` is set to an even value before the other words are
 * stored, and to an odd one after they have been stored.  So a reader that finds the same odd number before and after
 * reading the words has the words of one wait. */
#ifndef RILL_CORE_DIAGNOSE_WAITS_H
#define RILL_CORE_DIAGNOSE_WAITS_H

#include "core/diagnose/observe.h"

struct rill__host_wait {
  uint64_t number, object, device;
  uint64_t freed; /* the memory being freed, which may wait for all work of the device; 0 if none */
  uint64_t since; /* in ns */
};

/* Begin and end a wait for `object`, which is a stream, event or device as `kind` says.  `what` is filled in for the
 * observers, if there are any.  If an observer refuses the wait, the wait has ended. */
rill_status rill__host_wait_begin(struct rill__observed *what, enum rill__observed_kind kind,
                                  struct rill__object *object);
rill_status rill__host_wait_end(struct rill__observed *what, rill_status status);

/* Begin and end a wait in a free of memory; observers are informed of frees separately. */
void rill__host_free_begin(struct rill__device *device, const void *p);
void rill__host_free_end(void);

/* Returns true if the thread is waiting, and describes the wait. */
bool rill__host_wait_of(struct rill__thread *thread, struct rill__host_wait *out);

uint64_t rill__now(void); /* the clock of `since`; up to a few milliseconds late, but cheap */

#endif
