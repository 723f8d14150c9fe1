/* The bytes of guarded memory: writing the patterns, comparing memory with them, and reports of what differs.
 * core/tracking/guards.h has the rules of turns and states. */
#ifndef RILL_CORE_TRACKING_GUARD_BYTES_H
#define RILL_CORE_TRACKING_GUARD_BYTES_H

#include "core/tracking/guards.h"

enum { RILL__GUARDS_BATCH = 128 }; /* zones that are compared at once */

struct rill__guard_list {
  struct rill__guard *first, **last;
  size_t count;
};

struct rill__guards {
  pthread_mutex_t turn, lock;
  _Atomic(const struct rill__thread *) turn_holder; /* the thread whose turn it is, or NULL */
  struct rill__guard_list live, kept;
  uint64_t kept_bytes;
  struct rill__stream *stream; /* for GPUs; created with the buffer in the first turn that needs them */
  unsigned char *buffer;       /* pinned memory */
  unsigned found;              /* number of mistakes not reported yet; `text` has as many as fit */
  char text[1100];
};

static inline struct rill__guards *rill__guards_of(const struct rill__device *device) {
  return rill__core(device)->guards;
}

static inline void rill__guards_assert_turn(const struct rill__guards *guards) {
  RILL_ASSERT(atomic_load(&guards->turn_holder) == rill__self && rill__self != NULL,
              "only the thread whose turn it is compares guarded memory and takes it from the list");
  (void)guards;
}

/* Returns true for memory that the host writes and compares in place, which needs no turn. */
bool rill__guard_is_of_host(const struct rill__guard *guard);

/* Write the zones, or the content of freed memory, as work of a stream. */
rill_status rill__guard_write_zones(const struct rill__guard *guard, struct rill__stream *stream);
rill_status rill__guard_write_content(const struct rill__guard *guard, struct rill__stream *stream);

/* Write the zones, or the content of freed memory, before they return; no work may use the memory.  Return false if
 * the memory cannot be written. */
bool rill__guard_fill_zones(struct rill__guards *guards, const struct rill__guard *guard);
bool rill__guard_fill_content(struct rill__guards *guards, const struct rill__guard *guard);

/* Compares the zones of up to RILL__GUARDS_BATCH guards.  Skips guards whose zones cannot be read. */
void rill__guards_compare_zones(struct rill__guards *guards, struct rill__guard **batch, size_t count);
/* Compares the first `most` bytes of freed memory. */
void rill__guards_compare_content(struct rill__guards *guards, struct rill__guard *guard, size_t most);

#endif
