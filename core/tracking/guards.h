/* RILL_CHECK=memory: detects writes outside of allocations and into freed memory, and lists allocations that are still
 * alive.
 *
 * Each allocation of the user has a guard.  Its zones are the RILL__RED_ZONE bytes before and after the allocation,
 * which contain a pattern.  They are compared with the pattern when the allocation is freed and when the host
 * synchronizes.  Freed memory is filled with another pattern and kept back until enough other memory has been freed
 * after it; then it is compared and released.
 *
 * Memory of a pool is written in the order of the stream: the zones after the allocation, the content after the free.
 * So a guard may have an event, `pending`; nothing is compared before the event is complete.  If the stream cannot take
 * this work, because it is held or capturing, the zones are written immediately if no work uses the memory any more;
 * otherwise the allocation has no zones.  Such memory is not kept back.  GPU memory is written and read through a
 * stream that the device has for this purpose, host memory by the host.
 *
 * A mistake is reported once, as the failure of the next rill_free or synchronize of the device that would otherwise
 * succeed.  The allocation is not compared again.
 *
 * Invariants
 * - A guard is LIVE, in the list of live guards, from allocation to free; then it may be KEPT, in the list of kept
 *   guards.
 * - The lock guards both lists; no other lock is taken under it.  A thread that compares memory takes the turn before
 *   the lock.  The turn is held while the device's own stream works; that stream waits for no other work.
 * - The memory of a KEPT guard is released, and the guard is freed, by the thread that removed it from the list in its
 *   turn.
 * - A guard that is dropped while another thread compares it (`pins`) is freed by that thread. */
#ifndef RILL_CORE_TRACKING_GUARDS_H
#define RILL_CORE_TRACKING_GUARDS_H

#include "core/object/core.h"
#include "core/object/origin.h"
#include "core/tracking/frees.h"

/* Bytes before an allocation; only the last RILL__RED_ZONE of them are compared. */
enum { RILL__FRONT_ZONE = 256 };

/* Limits on the memory of a device that is kept back; many frees at once may reach twice as much. */
enum { RILL__KEPT_BYTES = 64 << 20, RILL__KEPT_GUARDS = 256 };

struct rill__block;
struct rill__stream;

struct rill__guard {
  struct rill__guard *next, **link; /* links of its list */
  struct rill__device *device;
  uintptr_t begin;
  size_t size;
  uint32_t kind; /* RILL_MEMORY_* */
  enum { RILL__GUARD_LIVE, RILL__GUARD_KEPT, RILL__GUARD_DROPPED } state;
  bool zoned;    /* it has zones, which contain the pattern once nothing is pending */
  bool filled;   /* when KEPT: the content also contains its pattern */
  bool imported; /* memory of another process */
  bool of_graph; /* memory of a graph, which frees it */
  bool reported;
  uint32_t pins;
  /* NULL if nothing is pending; changed in a turn, or by the thread that has just created or freed the allocation */
  struct rill__last_use *pending;
  struct rill__stream *stream; /* when KEPT and pending: the stream of that event, referenced */
  struct rill__object *pool;   /* the pool of the memory, or NULL */
  void *memory;                /* passed to `release` when KEPT */
  void (*release)(struct rill__guard *guard);
  char label[64]; /* label of the pool; "" if there is none */
  struct rill__origin origin;
};

/* ---- enabling ---- */

/* Enables the check for a device that becomes active; returns false if there is no host memory. */
bool rill__guards_start(struct rill__device *device);

static inline bool rill__is_guarded(const struct rill__device *device) {
  return RILL__UNLIKELY(rill__is_checked(device)) && rill__core(device)->guards != NULL;
}
static inline size_t rill__front_zone(const struct rill__device *device) {
  return rill__is_guarded(device) ? RILL__FRONT_ZONE : 0;
}

/* ---- live ---- */

/* Creates a guard for an allocation that the calling thread is about to make. */
rill_status rill__guard_new(struct rill__device *device, struct rill__guard **out);
/* Frees a guard whose allocation was not made, or that is in no list. */
void rill__guard_free(struct rill__guard *guard);

/* Adds the guard of a new allocation to the list.  The caller has set begin, size, kind and all other known fields.  If
 * `zoned` is set, the allocation has both zones, and they are written now: on `stream`, or immediately if it is NULL,
 * when no work may use the memory. */
void rill__guard_enter(struct rill__guard *guard, struct rill__stream *stream);

/* Suspend and resume a guard, before and after an operation that moves an allocation's pages but not its zones, which
 * are then written again.  The allocation must not be freed meanwhile. */
void rill__guard_suspend(struct rill__guard *guard);
void rill__guard_resume(struct rill__guard *guard);

/* Removes a LIVE guard without checking its memory. */
void rill__guard_drop(struct rill__guard *guard);
/* Waits for comparisons that started earlier.  Call it before memory is returned to the driver. */
void rill__guards_wait_for_turn(struct rill__device *device);

/* ---- freed ---- */

/* Fills memory that a stream frees at this point, and keeps it back.  Returns false, having changed nothing, if it
 * cannot. */
bool rill__guard_keep_in_order(struct rill__guard *guard, struct rill__stream *stream);

/* Compares the zones of memory that no work uses.  If `keeps` is set, fills the memory and keeps it back.  Returns
 * false if the memory is not kept back; the guard is still LIVE then.  Call it outside epochs. */
bool rill__guard_end(struct rill__guard *guard, bool keeps);

/* Drivers may wait for the work of the device when they free memory of rill_alloc, and for the work of all devices if
 * the memory is pinned or managed.  So the work that the caller may wait for decides what can be released.  Memory of a
 * pool can always be released. */
enum rill__guard_wait { RILL__WAITS_FOR_NOTHING, RILL__WAITS_FOR_DEVICE, RILL__WAITS_FOR_ALL };

/* Release memory that is kept back: everything beyond the limit, or everything, of one pool or of all (NULL).  Only
 * memory whose event is complete is released.  rill__guards_flush returns true if there was any.  Call them outside
 * epochs. */
void rill__guards_trim(struct rill__device *device, enum rill__guard_wait wait);
bool rill__guards_flush(struct rill__device *device, const struct rill__object *pool, enum rill__guard_wait wait);

/* Removes the KEPT guards of the pool's memory whose event is not complete, for a caller that cannot wait for them.
 * Each guard is passed to `take`, which then owns it. */
void rill__guards_yield(struct rill__device *device, const struct rill__object *pool,
                        void (*take)(struct rill__guard *guard));

/* ---- checking ---- */

/* Compares all zones, and the memory that is kept back: its first bytes, or all bytes if `all` is set.  Fails if
 * mistakes were found since the last such failure.  Call it outside epochs. */
rill_status rill__guards_check_(struct rill__device *device, bool all);
static inline rill_status rill__guards_check(struct rill__device *device, bool all) {
  return rill__is_guarded(device) ? rill__guards_check_(device, all) : RILL_OK;
}

/* Fails if mistakes were found, without comparing anything. */
rill_status rill__guards_report(struct rill__device *device);

/* Calls `visit` for each LIVE guard, under the lock. */
typedef void rill__visit_guard(const struct rill__guard *guard, void *user);
void rill__guards_visit(struct rill__device *device, rill__visit_guard *visit, void *user);

/* Writes mistakes that were found and not reported to standard error, at exit. */
void rill__guards_write_found(struct rill__device *device);

const char *rill__memory_kind_name(uint32_t kind);

/* Lock and unlock the guards around a fork; rill__guards_after_fork is for the child, in which no thread has the turn.
 */
void rill__guards_lock(struct rill__device *device);
void rill__guards_unlock(struct rill__device *device);
void rill__guards_after_fork(struct rill__device *device);

#endif
