/* Checks of a pool as a whole (core/object/assert.h): what the invariants of blocks.h, cache.h and uses.h say. */
#ifndef RILL_CORE_POOL_CHECK_H
#define RILL_CORE_POOL_CHECK_H

#include "core/object/assert.h"
#include "core/pool/cache.h"

#if RILL_CHECKS
/* All blocks and lists, so its time is proportional to them.  Under the lock. */
void rill__pool_check(struct rill__pool *pool);

/* A block and its neighbours. */
void rill__block_check(const struct rill__block *block);
#endif

#endif
