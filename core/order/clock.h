/* Vector clocks: for each stream, the position up to which its work is known to precede something.
 *
 * A clock has a pair (stream, position) for each stream about which it knows more than the host does; the pairs are
 * sorted by stream.  Positions count the operations of a stream, starting at 1. */
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

/* Returns the position up to which the clock knows the stream; 0 if it does not know the stream. */
uint64_t rill__clock_get(const struct rill__clock *clock, uint64_t stream);

/* Raise the clock to at least the position of a stream, or to at least another clock.  They return false if there is no
 * host memory; the clock is unchanged then. */
bool rill__clock_advance(struct rill__clock *clock, uint64_t stream, uint64_t position);
bool rill__clock_join(struct rill__clock *clock, const struct rill__clock *other);

/* Removes the parts for which `is_known` returns true. */
void rill__clock_prune(struct rill__clock *clock, bool (*is_known)(void *user, uint64_t stream, uint64_t position),
                       void *user);

void rill__clock_free(struct rill__clock *clock); /* leaves an empty clock */

#endif
