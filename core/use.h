/* Points of streams up to which memory is used: what has to be complete before the memory is used again, or goes.
 *
 * Invariant.  Of two uses of one stream the later one stands for both only if the earlier one's record had returned
 * before the later one's began: else either may be the later point, and both stay. */
#ifndef RILL_CORE_USE_H
#define RILL_CORE_USE_H

#include "core/call.h"

struct rill__use {
  struct rill__event *event; /* owned */
  struct rill__use *next;
  uint64_t stream;          /* its number */
  uint64_t number;          /* of a mark (core/pool_lanes.h) */
  uint64_t begun, recorded; /* when, in the order of all uses */
  bool inherited;           /* core/pool_lanes.h */
};

/* An event recorded on the stream now; and the end of a list. */
rill_status rill__use_new(struct rill__stream *stream, struct rill__use **out);
void rill__uses_free(struct rill__use *list);

/* A use at the end of each stream of the device that is not known to be idle.  On failure some have been added, which
 * does no harm. */
rill_status rill__use_everywhere(struct rill__device *device, struct rill__use **list);

/* Puts a use into a list; gives back the one of the same stream that it stands for too, or NULL.  The list is of no
 * more than a few uses a stream, however often one is noted. */
struct rill__use *rill__use_note(struct rill__use **list, struct rill__use *use);

/* Blocks until the driver has done the work of all uses, which are held no more; outside epochs. */
rill_status rill__uses_wait(const struct rill__use *list);

/* Asks the driver, unless the device is lost: then nothing uses memory any more. */
bool rill__use_is_complete(const struct rill__use *use);
bool rill__uses_are_complete(const struct rill__use *list);

/* Refuses a stream that is capturing: memory of a captured free would be used again while the graph can still run. */
rill_status rill__pool_check_capture(struct rill__stream *stream);

#endif
