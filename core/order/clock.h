/* Vector clocks: how far the work of each stream is known to come before something.
 *
 * A clock has a pair (stream, position) for each stream of which it knows anything that the host does not know by
 * itself, sorted by stream.  Positions count the operations of a stream from 1 on. */
#ifndef RILL_CORE_ORDER_CLOCK_H
#define RILL_CORE_ORDER_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct rill__clock_part {
  uint64_t stream, position;
};

struct rill__clock {
  struct rill__clock_part *parts;
  uint32_t count, room;
};

/* The position up to which the clock knows the stream; 0 if it does not. */
uint64_t rill__clock_get(const struct rill__clock *clock, uint64_t stream);

/* Each makes the clock know at least that much.  False without host memory; the clock is then as it was. */
bool rill__clock_raise(struct rill__clock *clock, uint64_t stream, uint64_t position);
bool rill__clock_join(struct rill__clock *clock, const struct rill__clock *other);

/* Drops the parts for which `is_known` holds. */
void rill__clock_prune(struct rill__clock *clock, bool (*is_known)(void *user, uint64_t stream, uint64_t position),
                       void *user);

void rill__clock_free(struct rill__clock *clock); /* it is empty then */

#endif
