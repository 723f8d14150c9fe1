#include "core/order/clock.h"

#include "core/object/assert.h"

#include <stdlib.h>

/* Returns the index of the first part with this stream or a greater one. */
static uint32_t find_part(const struct rill__clock *clock, uint64_t stream) {
  uint32_t low = 0, high = clock->count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (clock->parts[middle].stream < stream) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

#if RILL_CHECKS
static void check_parts(const struct rill__clock *clock) {
  for (uint32_t i = 0; i < clock->count; i++) {
    RILL_ASSERT(i == 0 || clock->parts[i - 1].stream < clock->parts[i].stream, "a clock is sorted by stream");
    RILL_ASSERT(clock->parts[i].position > 0, "positions count from 1 on");
  }
}
#endif

static bool reserve_parts(struct rill__clock *clock, uint32_t count) {
  if (count <= clock->room) return true;
  const uint32_t room = count < 4 ? 4 : count + count / 2;
  struct rill__clock_part *parts = realloc(clock->parts, room * sizeof *parts);
  if (parts == NULL) return false;
  clock->parts = parts;
  clock->room = room;
  return true;
}

uint64_t rill__clock_get(const struct rill__clock *clock, uint64_t stream) {
  const uint32_t at = find_part(clock, stream);
  return at < clock->count && clock->parts[at].stream == stream ? clock->parts[at].position : 0;
}

bool rill__clock_advance(struct rill__clock *clock, uint64_t stream, uint64_t position) {
  const uint32_t at = find_part(clock, stream);
  if (at < clock->count && clock->parts[at].stream == stream) {
    if (clock->parts[at].position < position) clock->parts[at].position = position;
    return true;
  }
  if (!reserve_parts(clock, clock->count + 1)) return false;
  for (uint32_t i = clock->count; i > at; i--) clock->parts[i] = clock->parts[i - 1];
  clock->parts[at] = (struct rill__clock_part){ stream, position };
  clock->count++;
#if RILL_CHECKS
  check_parts(clock);
#endif
  return true;
}

/* Merges from the end, so that each part moves to a place that is no longer needed. */
bool rill__clock_join(struct rill__clock *clock, const struct rill__clock *other) {
  uint32_t both = 0;
  for (uint32_t i = 0, j = 0; i < clock->count && j < other->count;) {
    const uint64_t mine = clock->parts[i].stream, theirs = other->parts[j].stream;
    both += mine == theirs;
    i += mine <= theirs;
    j += theirs <= mine;
  }
  const uint32_t count = clock->count + other->count - both;
  if (!reserve_parts(clock, count)) return false;
  uint32_t i = clock->count, j = other->count;
  for (uint32_t to = count; j > 0; to--) {
    const struct rill__clock_part theirs = other->parts[j - 1];
    if (i > 0 && clock->parts[i - 1].stream > theirs.stream) {
      clock->parts[to - 1] = clock->parts[--i];
      continue;
    }
    struct rill__clock_part most = theirs;
    if (i > 0 && clock->parts[i - 1].stream == theirs.stream) {
      i--;
      if (clock->parts[i].position > most.position) most = clock->parts[i];
    }
    clock->parts[to - 1] = most;
    j--;
  }
  clock->count = count;
#if RILL_CHECKS
  check_parts(clock);
#endif
  return true;
}

void rill__clock_prune(struct rill__clock *clock, bool (*is_known)(void *user, uint64_t stream, uint64_t position),
                       void *user) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < clock->count; i++) {
    const struct rill__clock_part part = clock->parts[i];
    if (!is_known(user, part.stream, part.position)) clock->parts[kept++] = part;
  }
  clock->count = kept;
}

void rill__clock_free(struct rill__clock *clock) {
  free(clock->parts);
  *clock = (struct rill__clock){ 0 };
}
