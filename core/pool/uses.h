/* Uses of blocks that a pool waits for: events that were recorded on streams of any device.
 *
 * The uses of one stream are in one queue, in the order of their records.  A stream's work completes in order, so only
 * the first use of a queue is queried: either it is complete and is removed, or it is not, which ends the search of the
 * queue.  Finding all complete uses therefore costs one query for each of them and one more for each stream, however
 * many other uses there are.
 *
 * Invariants
 * - The pool's lock guards all of this.
 * - A use is in the list of its block and in one queue.  Both lists are doubly linked, so the use is removed from
 *   either in one step.
 * - A use is removed when its own event is complete.  Nothing is concluded about the uses after it.
 * - A queue is in the ring if and only if it is not empty.
 * - A queue that is in the table, at the slot of its stream's handle, stays there until another stream has the slot.  A
 *   queue that is not in the table is freed when it is empty.
 */
#ifndef RILL_CORE_POOL_USES_H
#define RILL_CORE_POOL_USES_H

#include "core/pool/ring.h"
#include "core/tracking/last_use.h"

struct rill__pool;

struct rill__use_queue {
  struct rill__ring_link link;
  struct rill__last_use *first, *last;
  uint64_t stream; /* number of the stream */
  /* newest use of this queue by the block whose uses are being shortened; valid if `pass` is the current pass */
  struct rill__last_use *newest;
  uint64_t pass; /* number of the last pass that visited this queue */
  unsigned refs; /* threads that are querying its first use */
  bool listed;   /* it is in the table */
};

struct rill__uses {
  struct rill__use_queue **queues; /* indexed by the slot of the stream's handle */
  size_t slots;
  struct rill__ring ring; /* queues that are not empty; the first is searched next */
  uint64_t passes;
};

/* Adds a use of the block by the stream and takes over `last_use`.  Returns false if there is no host memory. */
bool rill__block_add_use(struct rill__pool *pool, struct rill__block *block, struct rill__stream *stream,
                         struct rill__last_use *last_use);

/* Remove all uses of a block from their queues, and return them to the front of their queues. */
void rill__block_unqueue_uses(struct rill__pool *pool, struct rill__block *block);
void rill__block_queue_uses(struct rill__pool *pool, struct rill__block *block);

/* Frees uses that were removed from their queues. */
void rill__block_drop_uses(struct rill__block *block);

/* Removes the complete uses of the next queue, and puts the blocks that wait for no other use into heaps.  Releases the
 * lock meanwhile. */
void rill__uses_search(struct rill__pool *pool);

/* Frees the queues of a pool that has no blocks. */
void rill__uses_free(struct rill__uses *uses);

#endif
