/* Uses of blocks that a pool waits for: events that were recorded on streams, of any device.
 *
 * The uses of one stream are in one queue, in the order of their records.  A stream's work completes in order, so only
 * the first use of a queue is asked about: each question is answered by "not yet", which ends the look at that queue,
 * or is the last one about its use.  So finding all uses that are complete costs a question for each of them and one
 * more for each stream, however many others there are.
 *
 * Invariants
 * - The pool's lock guards all of this.
 * - A use is in the list of its block and in one queue.  Both are doubly linked: it leaves either in one step.
 * - A use leaves when its event is complete, and by itself: of the uses after it nothing is concluded.
 * - A queue is in the ring exactly if it is not empty.
 * - A queue that is in the table, by the slot of its stream's handle, stays there until another stream has the slot;
 *   one that is not is freed when it is empty. */
#ifndef RILL_CORE_POOL_USES_H
#define RILL_CORE_POOL_USES_H

#include "core/pool/ring.h"
#include "core/tracking/last_use.h"

struct rill__pool;

struct rill__use_queue {
  struct rill__ring_link link;
  struct rill__last_use *first, *last;
  uint64_t stream;               /* the number of the stream */
  struct rill__last_use *newest; /* while a block's uses are looked through: the newest of this queue ... */
  uint64_t pass;                 /* ... in this pass */
  unsigned refs;                 /* of threads that ask about its first use */
  bool listed;                   /* in the table */
};

struct rill__uses {
  struct rill__use_queue **queues; /* by the slot of the stream's handle */
  size_t slots;
  struct rill__ring ring; /* of those that are not empty, the one to be looked at next first */
  uint64_t passes;
};

/* Adds a use of the block by the stream, which owns it from then on; false without host memory. */
bool rill__block_add_use(struct rill__pool *pool, struct rill__block *block, struct rill__stream *stream,
                         struct rill__last_use *last_use);

/* Takes all uses of a block out of their queues, and puts them back as the first ones. */
void rill__block_unqueue_uses(struct rill__pool *pool, struct rill__block *block);
void rill__block_queue_uses(struct rill__pool *pool, struct rill__block *block);

/* Ends uses that have been taken out of their queues. */
void rill__block_drop_uses(struct rill__block *block);

/* Ends the uses of the next queue that are complete; the blocks that wait for nothing more are put into heaps.
 * Releases the lock meanwhile. */
void rill__uses_look(struct rill__pool *pool);

/* Frees the queues of a pool that has no blocks. */
void rill__uses_free(struct rill__uses *uses);

#endif
