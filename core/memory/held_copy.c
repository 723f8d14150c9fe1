/* Copies of held streams, and the pinned memory that replaces pageable memory in them. */
#include "core/held/queue.h"
#include "core/memory/memory.h"
#include "core/pool/staging.h"

/* Splits a copy into two through a packed pinned staging buffer.  `from` and `to`: which ends are pageable. */
static rill_status stage(struct rill__stream *stream, struct rill__copy_3d *copy, bool from, bool to, size_t n,
                         struct held_staging **out) {
  RILL_REQUIRE(n <= HELD_BYTES_MAX, RILL_ERROR_OUT_OF_MEMORY,
               "%s is held; a copy of %zu bytes of pageable memory exceeds the limit of %d" RILL_HINT
               "use pinned memory",
               rill__name_of(&stream->base).text, n, HELD_BYTES_MAX);
  struct held_staging *staging = NULL;
  RILL_TRY(rill__staging_take(stream->base.device, stream, n, &staging));
  struct rill__copy_3d in, out_of;
  rill__copy_split(copy, staging->memory, &in, &out_of);
  if (from) { /* a pageable source is read during the call */
    rill__copy_rows(&in, 0, copy->height * copy->depth);
    *copy = out_of;
  }
  if (from && to) rill__copy_split(copy, staging->memory, &in, &out_of);
  if (to) {
    staging->to_host = true;
    staging->deliver = out_of;
    *copy = in;
  }
  *out = staging;
  return RILL_OK;
}

rill_status rill__held_copy(struct rill__stream *stream, const struct rill__copy_3d *copy, bool *taken) {
  struct rill__operation *operation = NULL;
  if (rill__is_captured(stream)) { /* a pageable source is read when the graph runs */
    RILL_TRY(rill__operation_copy(stream->base.device, copy, &operation));
    return rill__capture_add(stream, operation, taken);
  }
  struct rill__device *device = stream->base.device;
  bool from = false, to = false;
  const size_t n = copy->width * copy->height * copy->depth;
  struct rill__copy_3d wanted = *copy;
  struct held_staging *staging = NULL;
  *taken = false;
  RILL_TRY(rill__memory_is_pageable(device, copy->src, copy->src_kind, &from));
  RILL_TRY(rill__memory_is_pageable(device, copy->dst, copy->dst_kind, &to));
  if (from || to) RILL_TRY(stage(stream, &wanted, from, to, n, &staging));
  const rill_status status = rill__operation_copy(device, &wanted, &operation);
  if (status != RILL_OK) {
    if (staging != NULL) rill__staging_cancel(staging->block);
    return status;
  }
  if (staging != NULL) operation->payload = &staging->payload;
  return rill__held_push(stream, operation, staging != NULL && staging->to_host ? &staging->deliver : NULL, taken);
}
