/* Checks of a complete pool (core/object/assert.h) against the invariants of blocks.h, cache.h and uses.h. */
#ifndef RILL_CORE_POOL_CHECK_H
#define RILL_CORE_POOL_CHECK_H

#include "core/object/assert.h"
#include "core/pool/cache.h"

#if RILL_CHECKS
/* Checks all blocks and lists, in time proportional to their number.  Call it under the lock. */
void rill__pool_check(struct rill__pool *pool);

/* Checks a block and its neighbours. */
void rill__block_check(const struct rill__block *block);
#endif

#endif
