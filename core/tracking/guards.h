/* RILL_CHECK=memory: writes outside of allocations and into freed memory, and what is still alive.
 *
 * Each allocation of the user has a guard.  Its zones are RILL__RED_ZONE bytes before the allocation and as many after
 * it, which hold a pattern.  They are compared when the allocation is freed and when the host synchronizes.  Freed
 * memory is filled with another pattern and kept back until others have been freed after it; then it is compared and
 * released.
 *
 * Memory of a pool is written in the order of the stream: the zones after its allocation, the content after its free.
 * So a guard can have an event, `pending`, before which nothing of it is compared.  What a stream does not take now,
 * because it is held or captures, is not written: such an allocation has no zones, and is not kept back.  GPUs' memory
 * is written and read through a stream of the device's own, host memory by the host.
 *
 * A mistake that is found is the failure of the next rill_free or synchronize of the device that succeeds otherwise,
 * once: that allocation is not compared again.
 *
 * Invariants
 * - A guard is LIVE from the allocation to the free, and in the list of these; then KEPT, and in the list of those.
 * - The lock guards both lists and is a leaf.  The turn is taken before it, by those who compare: it is held while the
 *   device's own stream works, which waits for nobody's work.
 * - Memory of a KEPT guard is released, and the guard freed, by whoever took it out of the list in his turn.
 * - A guard that is dropped while somebody compares it (`pins`) is freed by him. */
#ifndef RILL_CORE_TRACKING_GUARDS_H
#define RILL_CORE_TRACKING_GUARDS_H

#include "core/object/core.h"
#include "core/object/origin.h"
#include "core/tracking/frees.h"

enum { RILL__FRONT_ZONE = 256 }; /* before an allocation; what is compared of it are the last RILL__RED_ZONE bytes */

/* What is kept back of a device's memory, at most: a burst may reach twice as much. */
enum { RILL__KEPT_BYTES = 64 << 20, RILL__KEPT_GUARDS = 256 };

struct rill__block;
struct rill__stream;

struct rill__guard {
  struct rill__guard *next, **link; /* of a list */
  struct rill__device *device;
  uintptr_t begin;
  size_t size;
  uint32_t kind; /* RILL_MEMORY_* */
  enum { RILL__GUARD_LIVE, RILL__GUARD_KEPT, RILL__GUARD_DROPPED } state;
  bool zoned;    /* it has zones, which hold the pattern once nothing is pending */
  bool filled;   /* KEPT: so does the content */
  bool imported; /* memory of another process */
  bool reported;
  uint32_t pins;
  struct rill__last_use *pending; /* or NULL; changes in a turn, or by who has just made or freed the allocation */
  struct rill__stream *stream;    /* KEPT and pending: of that event; kept */
  struct rill__object *pool;      /* memory of a pool: it; else NULL */
  void *memory;                   /* KEPT: what `release` gets */
  void (*release)(struct rill__guard *guard);
  char label[64]; /* of the pool; "" if there is none */
  struct rill__origin origin;
};

/* ---- whether ---- */

/* Turns the check on for a device that becomes active; false without host memory. */
bool rill__guards_start(struct rill__device *device);

static inline bool rill__is_guarded(const struct rill__device *device) {
  return RILL__UNLIKELY(rill__is_checked(device)) && rill__core(device)->guards != NULL;
}
static inline size_t rill__front_zone(const struct rill__device *device) {
  return rill__is_guarded(device) ? RILL__FRONT_ZONE : 0;
}

/* ---- live ---- */

/* A guard for an allocation that is about to be made by the calling thread; and its end, if it is not made. */
rill_status rill__guard_new(struct rill__device *device, struct rill__guard **out);
void rill__guard_free(struct rill__guard *guard);

/* Puts the guard of an allocation that has been made into the list.  begin, size, kind and what else is known are set;
 * `zoned`: so are both zones, and they are written now.  On `stream`, or else at once, with no work on the memory. */
void rill__guard_enter(struct rill__guard *guard, struct rill__stream *stream);

/* Around what moves an allocation's pages, and not its zones with them: these are written again.  Nobody frees it
 * meanwhile. */
void rill__guard_suspend(struct rill__guard *guard);
void rill__guard_resume(struct rill__guard *guard);

/* Takes a LIVE guard out without a look at its memory; and before memory goes back to the driver, waits for a look that
 * began earlier. */
void rill__guard_drop(struct rill__guard *guard);
void rill__guards_wait_for_turn(struct rill__device *device);

/* ---- freed ---- */

/* Fills memory that a stream has freed here, and keeps it back; false if it does not, and nothing has changed. */
bool rill__guard_keep_in_order(struct rill__guard *guard, struct rill__stream *stream);

/* Compares the zones of memory that no work uses, and keeps it back, filled, if `keeps`; false if it does not.  Then
 * the guard is still LIVE.  Outside epochs. */
bool rill__guard_end(struct rill__guard *guard, bool keeps);

/* Drivers may wait for the work of the device while they take memory of rill_alloc back, and for that of all devices if
 * it is pinned or managed.  What the caller may wait for says what can be released; a pool's memory always can. */
enum rill__guard_wait { RILL__WAITS_FOR_NOTHING, RILL__WAITS_FOR_DEVICE, RILL__WAITS_FOR_ALL };

/* Releases what is kept back beyond the limit; or all of it, of a pool or of everything (NULL).  So far as it is
 * complete; true if there was any.  Outside epochs. */
void rill__guards_trim(struct rill__device *device, enum rill__guard_wait wait);
bool rill__guards_flush(struct rill__device *device, const struct rill__object *pool, enum rill__guard_wait wait);

/* Takes KEPT guards of the pool's memory whose event is still to come out of the list, for who cannot wait for it: each
 * goes to `take`, which owns it then. */
void rill__guards_yield(struct rill__device *device, const struct rill__object *pool,
                        void (*take)(struct rill__guard *guard));

/* ---- looking ---- */

/* Compares all zones, and what is kept back: its first bytes, or `all` of it.  Then fails with what has been found
 * since the last such failure, if there is any.  Outside epochs. */
rill_status rill__guards_check_(struct rill__device *device, bool all);
static inline rill_status rill__guards_check(struct rill__device *device, bool all) {
  return rill__is_guarded(device) ? rill__guards_check_(device, all) : RILL_OK;
}

/* Fails with what has been found, without a look. */
rill_status rill__guards_tell(struct rill__device *device);

/* Calls `visit` for each LIVE guard.  Under the lock. */
typedef void rill__visit_guard(const struct rill__guard *guard, void *user);
void rill__guards_visit(struct rill__device *device, rill__visit_guard *visit, void *user);

/* Called at exit: writes what has been found and was not reported to standard error. */
void rill__guards_write_found(struct rill__device *device);

const char *rill__memory_kind_name(uint32_t kind);

/* For fork: the lock; and in the child, where nobody has a turn any more. */
void rill__guards_lock(struct rill__device *device);
void rill__guards_unlock(struct rill__device *device);
void rill__guards_after_fork(struct rill__device *device);

#endif
