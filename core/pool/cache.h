/* Pools and their per-stream caches: which stream may have which block when.
 *
 * A pool has one heap of memory that is complete, which any stream may take, and a heap for each stream that frees
 * memory while it has work: its cache.  What the stream frees goes there, and the stream may have it again at once.
 * When the work before the free is known to be complete, it goes to the complete heap, where it is joined with its
 * neighbours: at the free itself if the stream is known to be idle, else when somebody finds nothing that fits.
 *
 * Frees into a cache are numbered.  An event that is recorded on the stream when all frees up to a number have been
 * made, a *batch*, answers for all of them; it is recorded when memory is looked for, not at each free.  So a stream
 * that takes back what it freed pays for no event, and one event serves many blocks.  The first frees into a cache, and
 * those after a look at it, also record batches, one for each sixteenth of the pool: so little is hidden by work that
 * was submitted after its free.  Blocks on both sides of a batch are not joined before they are complete, since the
 * later one would hide the earlier one.
 *
 * A block with recorded uses waits until they are complete: core/pool/uses.h.
 *
 * If nothing fits, an allocation looks for memory that is complete.  A look at one cache or queue of uses costs a
 * question for each thing that it finds complete, which the free has paid for, and one for what is not.  A few looks
 * are made at any time.  All caches and queues are looked at before the pool grows beyond one and a half times its
 * `needed`: the most that was in use or not complete when all were looked at.  So `reserved` is bounded by twice that,
 * with room for fragments; and as it has to grow by half between two looks at everything, these cost little for each
 * allocation.  Below the bound a
 * stream whose cache was drained by others takes a segment first, the next time: streams that take turns come to own
 * what they need.  That ends where the pool has memory for the largest block of each.  Only under pressure (the limit,
 * or no memory of the driver's) is the stream made to wait for memory that is not complete.
 *
 * Invariants
 * - The pool's lock guards all of this, and is never held across a call into a backend or a wait.
 * - A FREE block of the complete heap is used by no work.  A FREE block of a cache may be used by work of its stream
 *   before free number `freed`, and by nothing else.
 * - All work before the frees up to `complete` of a cache is complete.
 * - A block that is not FREE names a heap.  A TAKEN block may still be used by work before free number `freed` of the
 *   cache that it names, as far as that is not complete.  The stream that it was allocated on is ordered after that,
 * and so is a free on that stream; a free on any other stream is not.
 * - The uses of a block are those that were recorded (rill_memory_record_use), and frees that were not ordered after
 * what the block names.  A WAITING block has some; it becomes FREE, in the heap that it names, when the last of them is
 * complete.
 * - Blocks of a cache's heap that were freed before its last batch are not joined with later ones.
 * - A cache keeps its stream until that has ended and a batch answers for all frees; it is freed when no block is in
 * its heap or names it. */
#ifndef RILL_CORE_POOL_CACHE_H
#define RILL_CORE_POOL_CACHE_H

#include "core/pool/blocks.h"
#include "core/pool/ring.h"
#include "core/pool/uses.h"

#include <stddef.h>

enum { RILL__MARKS = 32 };

struct rill__pool_cache {
  struct rill__object base; /* once it has ended: postponed until all is complete */
  struct rill__pool *pool;
  struct rill__heap heap;
  struct rill__stream *stream;
  struct rill__ring_link link;                  /* of the pool's ring */
  uint64_t freed, batched, complete;            /* numbers of frees */
  struct rill__last_use *batches, **last_batch; /* by number, about: two threads may add theirs at once */
  unsigned batch_count;
  size_t refs;       /* blocks that name its heap, and threads that look at it */
  size_t largest;    /* block that was freed into it */
  uint64_t unmarked; /* bytes that were freed since its last batch */
  unsigned marks;    /* batches that frees may still record, before somebody looks for memory again */
  bool drained;      /* by others, since it last found nothing */
  bool ended;        /* its stream's last reference has gone */
  bool postponed;
};

struct rill__pool {
  struct rill__object base;
  struct rill__pool *next, **link; /* of device->pools */
  pthread_mutex_t lock;
  struct rill__heap complete;
  struct rill__block *spares;
  struct rill__pool_cache **caches; /* by the slot of the stream's handle */
  size_t slots;
  struct rill__ring ring; /* caches that have or had FREE blocks */
  struct rill__uses uses;
  struct rill__block *waiting, **last_waiting;
  size_t waiting_count;
  struct rill__segment *segments;                /* all that are in a heap or have been cut up */
  bool returns;                                  /* what graphs have dropped is about to go back to the driver */
  uint64_t max_size, used, used_peak;            /* of ever: it bounds what is reserved */
  uint64_t shown_used_peak, shown_reserved_peak; /* since rill_pool_reset_peaks */
  uint64_t unmarked;                             /* of all caches */
  uint64_t transit;                              /* reserved bytes that are on their way from the driver or back */
  uint64_t needed; /* bytes that were in use or not complete when everything had been looked at, at most */
  _Atomic uint64_t reserved, threshold; /* read without the lock */
  uint64_t largest_sum;                 /* of all caches whose streams have not ended */
  size_t grown, least_segment;          /* bytes: of the last segment, and of the smallest */
  uint32_t kind;
  _Atomic bool batches_frees; /* each free records a batch, so that another stream waits for nothing later */
};

void rill__pool_lock(struct rill__pool *pool);
static inline void rill__pool_unlock(struct rill__pool *pool) { pthread_mutex_unlock(&pool->lock); }

/* ---- under the lock: core/pool/cache.c ---- */

/* The stream's cache, or NULL; and made, if the stream may have one and there is memory for it. */
struct rill__pool_cache *rill__pool_cache_find(struct rill__pool *pool, struct rill__stream *stream);
struct rill__pool_cache *rill__pool_cache_get(struct rill__pool *pool, struct rill__stream *stream);

static inline struct rill__pool_cache *rill__pool_cache_of(struct rill__heap *heap) {
  return (struct rill__pool_cache *)((char *)heap - offsetof(struct rill__pool_cache, heap));
}

/* All work before the frees up to this number is complete. */
void rill__pool_cache_complete(struct rill__pool *pool, struct rill__pool_cache *cache, uint64_t number);

/* Whether the stream's work is in one order.  The native per-thread stream is another one on each thread. */
static inline bool rill__stream_has_order(const struct rill__stream *stream) {
  return !stream->imported || stream->native != 2;
}

/* Notes that all frees into the stream's cache are complete, if that is known without asking: it is forgotten when the
 * stream gets more work. */
static inline void rill__pool_cache_note(struct rill__pool *pool, struct rill__pool_cache *cache) {
  if (cache == NULL || cache->heap.count == 0 || RILL__LIKELY(!rill__stream_is_drained(cache->stream))) return;
  rill__pool_cache_complete(pool, cache, cache->freed);
}

/* The next cache of the ring, with a reference; NULL if there is none.  And gives the reference up; may give the lock
 * up meanwhile. */
struct rill__pool_cache *rill__pool_cache_visit(struct rill__pool *pool);
void rill__pool_cache_leave(struct rill__pool *pool, struct rill__pool_cache *cache);

/* Which heap a block that is not FREE names, and the number of its free there. */
void rill__block_name(struct rill__pool *pool, struct rill__block *block, struct rill__heap *heap, uint64_t freed);

/* Whether what the block names is known to be complete; of its uses it says nothing. */
bool rill__block_is_complete(struct rill__pool *pool, struct rill__block *block);

/* Takes a block from the cache, if there is one, or from the complete heap; NULL if neither has one. */
struct rill__block *rill__pool_take(struct rill__pool *pool, struct rill__pool_cache *cache,
                                    const struct rill__request *request, bool thorough);

/* Makes a block FREE in the heap that it names, or lets it wait for its uses. */
void rill__pool_put(struct rill__pool *pool, struct rill__block *block);

/* Of a WAITING block: it waits no more.  Its uses are complete, and it is put; or it is the caller's. */
void rill__pool_stop_waiting(struct rill__pool *pool, struct rill__block *block);
void rill__pool_take_waiting(struct rill__pool *pool, struct rill__block *block);

/* Twice what the pool needs: has needed when everything was looked at, or what is in use now with so many bytes more.
 */
static inline uint64_t rill__pool_bound(const struct rill__pool *pool, size_t more) {
  const uint64_t now = pool->used + more;
  const uint64_t needed = pool->needed > now ? pool->needed : now;
  return needed + needed / 2;
}

/* Whether the pool may get a segment for the request before all caches and queues of uses have been looked at. */
bool rill__pool_may_grow(const struct rill__pool *pool, const struct rill__request *request);

/* Bytes that were freed and are not known to be complete; and of a cache: all of them are, or are before a batch. */
static inline uint64_t rill__pool_waiting(const struct rill__pool *pool) {
  return atomic_load(&pool->reserved) - pool->transit - pool->used - pool->complete.bytes;
}
static inline void rill__pool_cache_mark(struct rill__pool *pool, struct rill__pool_cache *cache) {
  pool->unmarked -= cache->unmarked;
  cache->unmarked = 0;
}

/* ---- under the lock, which they release meanwhile: core/pool/share.c ---- */

/* Looks for memory that is complete, a number of times, until there is a block for the request; NULL: to the end.
 * `stream`: who needs it, or NULL. */
enum { RILL__LOOKS = 4 };
#define RILL__ALL_LOOKS SIZE_MAX
struct rill__block *rill__pool_share(struct rill__pool *pool, struct rill__stream *stream,
                                     const struct rill__request *request, size_t looks);

/* Takes a block that the stream is made to wait for. */
struct rill__block *rill__pool_share_and_wait(struct rill__pool *pool, struct rill__stream *stream,
                                              const struct rill__request *request);

/* Records a batch for the frees so far, if there is room for one more. */
void rill__pool_cache_record(struct rill__pool *pool, struct rill__pool_cache *cache);

/* Drains what is complete of a cache.  With a reference to it. */
void rill__pool_cache_look(struct rill__pool *pool, struct rill__pool_cache *cache);

/* The device has no work: all caches are drained. */
void rill__pool_settle(struct rill__pool *pool);

/* ---- without the lock ---- */

/* The stream's last reference has gone; it can still be recorded on. */
void rill__pool_cache_end(struct rill__pool *pool, struct rill__stream *stream);

/* Frees the caches of a pool that has no segments. */
void rill__pool_caches_free(struct rill__pool *pool);

/* A block of memory that is complete, which is not an allocation yet: the pool's, or the driver's.  With a stream, also
 * one that the stream frees or is made to wait for.  OUT_OF_MEMORY without a text.  Outside epochs, if there is a
 * stream. */
rill_status rill__pool_find_memory(struct rill__pool *pool, struct rill__stream *stream,
                                   const struct rill__request *request, struct rill__block **out);

/* ---- what a pool has from the driver: core/pool/segments.c ---- */

/* Releases unused memory until the pool has no more than `keep` bytes: what is known to be complete, and as far as it
 * can be. */
rill_status rill__pool_shrink(struct rill__pool *pool, uint64_t keep);
/* Whether that would not wait: drivers wait for all work of the device when they take memory back. */
bool rill__pool_may_release(const struct rill__pool *pool);
rill_status rill__pool_trim(struct rill__pool *pool, uint64_t keep);

/* Releases the unused memory that came from the driver for graphs. */
void rill__pool_return_of_graphs(struct rill__pool *pool);

/* Memory of the driver, and a block of it; OUT_OF_MEMORY, without a text, if the driver has no more or the limit is
 * reached. */
rill_status rill__pool_grow(struct rill__pool *pool, const struct rill__request *request, struct rill__block **out);

/* ---- the pools of a device: core/pool/pool.c ---- */

/* The device's pools that are not being destroyed, each kept; NULL if memory ran out. */
struct rill__pool **rill__pools_ref(struct rill__device *device, size_t *count);
void rill__pools_unref(struct rill__pool **pools, size_t count);

#endif
