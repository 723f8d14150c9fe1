/* Staging buffers: pinned memory that stands in for pageable memory which work of a stream reads or writes later.
 *
 * Each device has a separate pool for them (core/pool/cache.h).  The host writes a buffer immediately, so the buffer is
 * taken from complete memory; after the work that uses it, the stream frees it in order, like any pool memory.  So a
 * buffer needs neither an event nor a search through other buffers, and memory left over from a peak is returned to the
 * driver.
 */
#ifndef RILL_CORE_POOL_STAGING_H
#define RILL_CORE_POOL_STAGING_H

#include "core/held/held.h"

struct held_staging {
  struct rill__payload payload; /* owned by a held copy; `bytes`: size of `memory` */
  struct rill__block *block;    /* the block that starts with this struct */
  void *memory;                 /* the buffer, after this struct */
  bool to_host;                 /* true: the buffer receives data for the host, and `deliver` is valid */
  struct rill__copy_3d deliver; /* second half of the copy, done by the host */
};

/* Takes a buffer of n bytes for work of the stream; NULL: for any stream.  rill__staging_finish returns the buffer
 * after the work that uses it has been submitted; rill__staging_cancel returns its block if no work uses it.  A caller
 * that keeps a buffer also keeps the pointer to its block, because the buffer is no longer mapped after a reset of the
 * device. */
rill_status rill__staging_take(struct rill__device *device, struct rill__stream *stream, size_t n,
                               struct held_staging **out);
void rill__staging_finish(struct rill__stream *stream, struct held_staging *staging);
void rill__staging_cancel(struct rill__block *block);

/* Returns memory that no buffer uses to the driver, except for a small amount.  May block; call it outside epochs.
 * `synchronized`: the device has just finished all its work. */
void rill__staging_release(struct rill__device *device, bool synchronized);

#endif
