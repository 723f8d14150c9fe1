/* Copies of held streams, and the pinned memory that stands in for pageable memory in them. */
#include "core/held/queue.h"
#include "core/memory/memory.h"
#include "core/pool/staging.h"

/* Puts pinned memory, without anything between rows, between the ends of a copy, of which those that are pageable are
 * named. */
static rill_status stage(struct rill__stream *stream, struct rill__copy_3d *copy, bool from, bool to, size_t n,
                         struct held_staging **out) {
  RILL_REQUIRE(n <= HELD_BYTES_MAX, RILL_ERROR_OUT_OF_MEMORY,
               "%s is held; a copy of %zu bytes of pageable memory exceeds the limit of %d" RILL_HINT
               "use pinned memory",
               rill__name_of(&stream->base).text, n, HELD_BYTES_MAX);
  struct held_staging *staging = NULL;
  RILL_TRY(rill__staging_take(stream, n, &staging));
  struct rill__copy_3d in = *copy, out_of = *copy;
  in.dst = staging->memory;
  in.dst_kind = RILL_MEMORY_PINNED;
  in.dst_pitch = copy->width;
  in.dst_slice_pitch = copy->width * copy->height;
  out_of.src = in.dst;
  out_of.src_kind = RILL_MEMORY_PINNED;
  out_of.src_pitch = in.dst_pitch;
  out_of.src_slice_pitch = in.dst_slice_pitch;
  if (from) { /* its source is taken at the call */
    rill__copy_rows(&in, 0, copy->height * copy->depth);
    *copy = out_of;
  }
  if (to) {
    staging->to_host = true;
    staging->deliver = out_of;
    in.src = copy->src;
    in.src_kind = copy->src_kind;
    in.src_pitch = copy->src_pitch;
    in.src_slice_pitch = copy->src_slice_pitch;
    *copy = in;
  }
  *out = staging;
  return RILL_OK;
}

/* Whether memory is pageable: nobody's that the driver knows.  What it knows is left to it, to be read and written in
 * its turn, and may not even be the host's. */
static rill_status ask_pageable(struct rill__device *device, const void *p, uint32_t kind, bool *out) {
  bool known = false;
  *out = kind == RILL_MEMORY_UNKNOWN;
  if (!*out || device->backend->memory->is_known == NULL) return RILL_OK;
  RILL_TRY(RILL_DISPATCH(device, memory, is_known, device, p, &known));
  *out = !known;
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
  RILL_TRY(ask_pageable(device, copy->src, copy->src_kind, &from));
  RILL_TRY(ask_pageable(device, copy->dst, copy->dst_kind, &to));
  if (from || to) RILL_TRY(stage(stream, &wanted, from, to, n, &staging));
  const rill_status status = rill__operation_copy(device, &wanted, &operation);
  if (status != RILL_OK) {
    if (staging != NULL) rill__staging_cancel(staging);
    return status;
  }
  if (staging != NULL) operation->payload = &staging->payload;
  return rill__held_push(stream, operation, staging != NULL && staging->to_host ? &staging->deliver : NULL, taken);
}
