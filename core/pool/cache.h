/* Pools and their per-stream caches: which stream may take which block, and when.
 *
 * A pool has one heap of complete memory (memory that no pending work uses), which any stream may take, and one heap
 * for each stream that frees memory while it has work: the stream's cache.  Blocks that the stream frees are put into
 * its cache, and the stream may take them again at once.  When the work before the free is known to be complete, a
 * block moves to the complete heap, where it is joined with its neighbours.  This happens at the free if the stream is
 * known to be idle, and otherwise when an allocation finds no block that fits.
 *
 * Frees into a cache are numbered.  A *batch* is an event that is recorded on the stream after all frees up to a
 * number; when it is complete, all of these frees are complete.  Batches are recorded when memory is searched for, not
 * at each free, so a stream that takes back what it freed records no event, and one event serves many blocks.  The
 * first frees into a cache, and the first frees after each search of it, also record batches, one for each sixteenth of
 * the pool, so that work submitted after a free delays the reuse of little memory.  Blocks before and after a batch are
 * not joined until they are complete, because the later block would delay the earlier one.
 *
 * A block with recorded uses waits until they are complete (core/pool/uses.h).
 *
 * If no block fits, an allocation searches for memory that has become complete.  Searching one cache or one queue of
 * uses costs one query for each complete item, which is amortized over the frees, and one for the first item that is
 * not complete.  Each such allocation makes a few of these searches.  All caches and queues are searched before the
 * pool grows beyond one and a half times `needed`, which is the most memory that was in use or not complete after any
 * such full search.  So `reserved` is bounded by twice `needed`, including fragmentation, and because `reserved` has to
 * grow by half between two full searches, full searches add little to the cost of an allocation.  Below the bound, a
 * stream whose cache was drained by other streams first takes a new segment the next time, so streams that take turns
 * end up owning what they need.  This stops once the pool has memory for the largest block of each stream.  A stream is
 * made to wait for memory that is not complete only under pressure, which means that the limit is reached or the driver
 * has no memory.
 *
 * Invariants
 * - The pool's lock guards all of this, and is never held across a call of a backend or a wait.
 * - A FREE block of the complete heap is used by no work.  A FREE block of a cache may be used by work of its stream
 *   before free number `freed`, and by nothing else.
 * - All work before the frees up to `complete` of a cache is complete.
 * - A block that is not FREE names a heap.  A TAKEN block may still be used by incomplete work before free number
 *   `freed` of the cache that it names.  The stream that the block was allocated on, and therefore a free on that
 *   stream, is ordered after that work; a free on any other stream is not.
 * - The uses of a block are the recorded uses (rill_memory_record_use) and the frees that were not ordered after the
 *   work that the block names.  A WAITING block has uses; it becomes FREE, in the heap that it names, when the last use
 *   is complete.
 * - Blocks of a cache's heap that were freed before its last batch are not joined with later ones.
 * - A cache keeps a reference to its stream until it has ended and a batch covers all its frees.  It is freed when no
 *   block is in its heap or names the heap.
 */
#ifndef RILL_CORE_POOL_CACHE_H
#define RILL_CORE_POOL_CACHE_H

#include "core/pool/blocks.h"
#include "core/pool/ring.h"
#include "core/pool/uses.h"

#include <stddef.h>

enum { RILL__MARKS = 32 };

struct rill__pool_cache {
  struct rill__object base; /* postponed until all frees are complete; valid once the cache has ended */
  struct rill__pool *pool;
  struct rill__heap heap;
  struct rill__stream *stream;
  struct rill__ring_link link; /* in the pool's ring */
  /* numbers of the last free, of the last free covered by a batch, and of the last complete free */
  uint64_t freed, batched, complete;
  /* approximately in the order of their numbers: two threads may append at the same time */
  struct rill__last_use *batches, **last_batch;
  unsigned batch_count;
  size_t refs;       /* number of blocks that name its heap and of threads that search it */
  size_t largest;    /* bytes of the largest block freed into it */
  uint64_t unmarked; /* bytes freed since its last batch */
  unsigned marks;    /* number of batches that frees may still record before the next search for memory */
  bool drained;      /* true if other streams took blocks from it since its stream last found nothing */
  bool ended;        /* the last reference to its stream was released */
  bool postponed;
};

struct rill__pool {
  struct rill__object base;
  struct rill__pool *next, **link; /* list device->pools */
  pthread_mutex_t lock;
  struct rill__heap complete;
  struct rill__block *spares;
  struct rill__pool_cache **caches; /* indexed by the slot of the stream's handle */
  size_t slots;
  struct rill__ring ring; /* caches that have or had FREE blocks */
  struct rill__uses uses;
  struct rill__block *waiting, **last_waiting;
  size_t waiting_count;
  struct rill__segment *segments; /* all segments that are in a heap or have been split */
  bool returns;                   /* the memory of graphs that was dropped is about to be returned to the driver */
  /* limit in bytes, 0: none; bytes in use; most bytes ever in use, which bounds `reserved` */
  uint64_t max_size, used, used_peak;
  uint64_t shown_used_peak, shown_reserved_peak; /* peaks since rill_pool_reset_peaks */
  uint64_t unmarked;                             /* sum over all caches */
  uint64_t transit; /* reserved bytes that are being allocated by the driver or returned to it */
  uint64_t needed;  /* most bytes that were in use or not complete when everything had been searched */
  _Atomic uint64_t reserved, threshold; /* read without the lock */
  uint64_t largest_sum;                 /* sum over all caches whose streams have not ended */
  size_t grown, least_segment;          /* bytes of the last segment, and of the smallest one allowed */
  uint32_t kind;
  _Atomic bool batches_frees; /* every free records a batch, so that another stream never waits for later work */
};

void rill__pool_lock(struct rill__pool *pool);
static inline void rill__pool_unlock(struct rill__pool *pool) { pthread_mutex_unlock(&pool->lock); }

/* ---- under the lock: core/pool/cache.c ---- */

/* Returns the stream's cache, or NULL if it has none. */
struct rill__pool_cache *rill__pool_cache_find(struct rill__pool *pool, struct rill__stream *stream);
/* Returns the stream's cache and creates it if necessary; NULL if the stream may not have one or there is no host
 * memory. */
struct rill__pool_cache *rill__pool_cache_get(struct rill__pool *pool, struct rill__stream *stream);

static inline struct rill__pool_cache *rill__pool_cache_of(struct rill__heap *heap) {
  return (struct rill__pool_cache *)((char *)heap - offsetof(struct rill__pool_cache, heap));
}

/* Notes that all work before the frees up to this number is complete. */
void rill__pool_cache_complete(struct rill__pool *pool, struct rill__pool_cache *cache, uint64_t number);

/* Returns true if the stream executes its work in one order.  The native per-thread stream is a different stream on
 * each thread. */
static inline bool rill__stream_has_order(const struct rill__stream *stream) {
  return !stream->imported || stream->native != 2;
}

/* Notes that all frees into the stream's cache are complete, if this is known without a query: the knowledge is lost
 * when the stream gets more work. */
static inline void rill__pool_cache_note(struct rill__pool *pool, struct rill__pool_cache *cache) {
  if (cache == NULL || cache->heap.count == 0 || RILL__LIKELY(!rill__stream_is_drained(cache->stream))) return;
  rill__pool_cache_complete(pool, cache, cache->freed);
}

/* Returns the next cache of the ring, with a reference, or NULL if there is none. */
struct rill__pool_cache *rill__pool_cache_visit(struct rill__pool *pool);
/* Drops the reference that rill__pool_cache_visit added.  May release the lock meanwhile. */
void rill__pool_cache_leave(struct rill__pool *pool, struct rill__pool_cache *cache);

/* Sets the heap that a block that is not FREE names, and the number of its free there. */
void rill__block_name(struct rill__pool *pool, struct rill__block *block, struct rill__heap *heap, uint64_t freed);

/* Returns true if the work that the block names is known to be complete; its recorded uses are not considered. */
bool rill__block_is_complete(struct rill__pool *pool, struct rill__block *block);

/* Takes a block from the cache, if `cache` is not NULL, or from the complete heap; returns NULL if neither has one that
 * fits. */
struct rill__block *rill__pool_take(struct rill__pool *pool, struct rill__pool_cache *cache,
                                    const struct rill__request *request, bool thorough);

/* Makes a block FREE in the heap that it names, or WAITING if it has uses. */
void rill__pool_put(struct rill__pool *pool, struct rill__block *block);

/* Remove a block from the WAITING ones: rill__pool_stop_waiting makes it FREE because its uses are complete,
 * rill__pool_take_waiting leaves it to the caller. */
void rill__pool_stop_waiting(struct rill__pool *pool, struct rill__block *block);
void rill__pool_take_waiting(struct rill__pool *pool, struct rill__block *block);

/* Returns one and a half times what the pool needs: the larger of `needed` and the memory in use plus `more` bytes. */
static inline uint64_t rill__pool_bound(const struct rill__pool *pool, size_t more) {
  const uint64_t now = pool->used + more;
  const uint64_t needed = pool->needed > now ? pool->needed : now;
  return needed + needed / 2;
}

/* Returns true if the pool may allocate a segment for the request before all caches and queues of uses have been
 * searched. */
bool rill__pool_may_grow(const struct rill__pool *pool, const struct rill__request *request);

/* Returns the bytes that were freed and are not known to be complete. */
static inline uint64_t rill__pool_waiting(const struct rill__pool *pool) {
  return atomic_load(&pool->reserved) - pool->transit - pool->used - pool->complete.bytes;
}
/* Notes that all frees of the cache are complete or covered by a batch. */
static inline void rill__pool_cache_mark(struct rill__pool *pool, struct rill__pool_cache *cache) {
  pool->unmarked -= cache->unmarked;
  cache->unmarked = 0;
}

/* ---- under the lock, which these functions release meanwhile: core/pool/share.c ---- */

/* Searches at most `searches` caches and queues for complete memory, until there is a block for the request; `request`
 * NULL: always makes all searches.  `stream`: the stream that needs the block, or NULL. */
enum { RILL__SEARCHES = 4 };
#define RILL__ALL_SEARCHES SIZE_MAX
struct rill__block *rill__pool_search(struct rill__pool *pool, struct rill__stream *stream,
                                      const struct rill__request *request, size_t searches);

/* Takes a block after making the stream wait for the work that still uses it. */
struct rill__block *rill__pool_take_and_wait(struct rill__pool *pool, struct rill__stream *stream,
                                             const struct rill__request *request);

/* Records a batch for the frees so far, if the cache has room for another batch. */
void rill__pool_cache_record(struct rill__pool *pool, struct rill__pool_cache *cache);

/* Moves the cache's complete blocks to the complete heap.  The caller has a reference to the cache. */
void rill__pool_cache_update(struct rill__pool *pool, struct rill__pool_cache *cache);

/* Drains all caches, because the device has no work. */
void rill__pool_drain(struct rill__pool *pool);

/* ---- without the lock ---- */

/* Ends the stream's cache.  Called when the stream's last reference was released, while events can still be recorded on
 * it. */
void rill__pool_cache_end(struct rill__pool *pool, struct rill__stream *stream);

/* Frees the caches of a pool that has no segments. */
void rill__pool_caches_free(struct rill__pool *pool);

/* Finds a block of complete memory, which is not an allocation yet, in the pool or from the driver.  With a stream, the
 * block may also be one that the stream has freed or is made to wait for; call this function outside epochs in this
 * case.  Returns OUT_OF_MEMORY without an error text. */
rill_status rill__pool_find_memory(struct rill__pool *pool, struct rill__stream *stream,
                                   const struct rill__request *request, struct rill__block **out);

/* ---- memory that a pool has from the driver: core/pool/segments.c ---- */

/* Releases unused memory that is known to be complete, until the pool has at most `keep` bytes or nothing more can be
 * released. */
rill_status rill__pool_shrink(struct rill__pool *pool, uint64_t keep);
/* Returns true if releasing would not wait: drivers wait for all work of the device when they free memory. */
bool rill__pool_may_release(const struct rill__pool *pool);
/* Searches for complete memory and then shrinks the pool. */
rill_status rill__pool_trim(struct rill__pool *pool, uint64_t keep);

/* Returns the unused memory that was allocated for graphs to the driver. */
void rill__pool_return_of_graphs(struct rill__pool *pool);

/* Allocates a segment from the driver and takes a block of it.  Returns OUT_OF_MEMORY, without an error text, if the
 * driver has no more memory or the limit is reached. */
rill_status rill__pool_grow(struct rill__pool *pool, const struct rill__request *request, struct rill__block **out);

/* ---- the pools of a device: core/pool/pool.c ---- */

/* Returns the device's pools that are not being destroyed, each with a reference; NULL if memory ran out. */
struct rill__pool **rill__pools_ref(struct rill__device *device, size_t *count);
void rill__pools_unref(struct rill__pool **pools, size_t count);

#endif
