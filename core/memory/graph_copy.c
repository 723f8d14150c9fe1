/* Copies in graphs, which are staged if an end is pageable.
 *
 * A driver may read a pageable source when a graph is launched, before earlier nodes of the graph have written it, or
 * ignore the gaps between rows.  So the driver's graph contains no pageable memory: the host copies between pageable
 * and pinned memory, and the driver copies between pinned memory and the other end.  A large copy is divided into
 * pieces, which use the same pinned memory one after another.
 */
#include "core/memory/memory.h"
#include "core/operation/operation.h"
#include "core/pool/staging.h"

#include <stdlib.h>

enum { PIECE_BYTES = 4 << 20 };

/* Payload of a staged copy.  It references the graph's operation, which the staged copy replaces in one execution
 * object, so that the buffer exists as long as launches of that object may use it. */
struct graph_copy {
  struct rill__payload payload;
  struct held_staging *staging; /* large enough for one piece; NULL if only the host copies */
  struct rill__block *block;    /* block of the staging buffer */
  struct rill__staged_copy staged;
  struct rill__copy_piece pieces[];
};

static void drop_graph_copy(struct rill__payload *payload) {
  struct graph_copy *copy = (struct graph_copy *)payload;
  if (copy->block != NULL) rill__staging_cancel(copy->block);
  rill__operation_unref(payload->of);
  free(copy);
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Returns the first piece, which is the largest one: as many slices as fit, or as many rows, or a part of a row. */
static struct rill__copy_3d first_piece(const struct rill__copy_3d *copy) {
  struct rill__copy_3d piece = *copy;
  const size_t rows = PIECE_BYTES / copy->width;
  if (rows == 0) {
    piece.width = PIECE_BYTES;
    piece.height = piece.depth = 1;
  } else if (rows < copy->height) {
    piece.height = rows;
    piece.depth = 1;
  } else {
    piece.depth = least(copy->depth, rows / copy->height);
  }
  return piece;
}

static size_t parts_of(size_t all, size_t part) { return (all - 1) / part + 1; }

static size_t count_pieces(const struct rill__copy_3d *copy, const struct rill__copy_3d *piece) {
  return parts_of(copy->width, piece->width) * parts_of(copy->height, piece->height) *
         parts_of(copy->depth, piece->depth);
}

/* Returns the piece that begins at a byte, a row and a slice of the copy; it is at most as large as the first piece. */
static struct rill__copy_3d piece_at(const struct rill__copy_3d *copy, const struct rill__copy_3d *first, size_t x,
                                     size_t y, size_t z) {
  struct rill__copy_3d piece = *copy;
  piece.dst = (char *)copy->dst + z * copy->dst_slice_pitch + y * copy->dst_pitch + x;
  piece.src = (const char *)copy->src + z * copy->src_slice_pitch + y * copy->src_pitch + x;
  piece.width = least(first->width, copy->width - x);
  piece.height = least(first->height, copy->height - y);
  piece.depth = least(first->depth, copy->depth - z);
  return piece;
}

static void cut(struct graph_copy *out, const struct rill__copy_3d *copy, const struct rill__copy_3d *first) {
  const bool host_first = out->staged.order == RILL__HOST_COPIES_FIRST;
  struct rill__copy_piece *piece = out->pieces;
  for (size_t z = 0; z < copy->depth; z += first->depth) {
    for (size_t y = 0; y < copy->height; y += first->height) {
      for (size_t x = 0; x < copy->width; x += first->width, piece++) {
        const struct rill__copy_3d part = piece_at(copy, first, x, y, z);
        rill__copy_split(&part, out->staging->memory, host_first ? &piece->by_host : &piece->by_driver,
                         host_first ? &piece->by_driver : &piece->by_host);
      }
    }
  }
  RILL_ASSERT(piece == out->pieces + out->staged.count, "the pieces add up to the copy");
}

static rill_status new_graph_copy(struct rill__device *device, const struct rill__copy_3d *copy, bool alone, bool from,
                                  struct graph_copy **out) {
  const struct rill__copy_3d first = alone ? *copy : first_piece(copy);
  const size_t count = count_pieces(copy, &first);
  struct graph_copy *made = calloc(1, sizeof *made + count * sizeof made->pieces[0]);
  RILL_REQUIRE(made != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a copy of a graph in %zu pieces", count);
  made->staged.order = alone ? RILL__HOST_COPIES_ALONE : from ? RILL__HOST_COPIES_FIRST : RILL__HOST_COPIES_LAST;
  made->staged.count = count;
  made->staged.pieces = made->pieces;
  made->payload.drop = drop_graph_copy;
  *out = made;
  if (alone) {
    made->pieces[0].by_host = *copy;
    return RILL_OK;
  }
  const rill_status status = rill__staging_take(device, NULL, first.width * first.height * first.depth, &made->staging);
  if (status != RILL_OK) {
    free(made);
    return status;
  }
  made->block = made->staging->block;
  cut(made, copy, &first);
  return RILL_OK;
}

rill_status rill__graph_copy_stage(struct rill__operation **operation) {
  struct rill__operation *const request = *operation;
  struct rill__device *device = request->device;
  bool from = false, to = false;
  if (request->kind != RILL_NODE_COPY || request->staged != NULL || device->backend->memory->is_known == NULL) {
    return RILL_OK;
  }
  const struct rill__copy_3d *copy = &request->copy;
  RILL_TRY(rill__memory_is_pageable(device, copy->src, copy->src_kind, &from));
  RILL_TRY(rill__memory_is_pageable(device, copy->dst, copy->dst_kind, &to));
  if (!from && !to) return RILL_OK;
  const bool alone = (from || copy->src_kind == RILL_MEMORY_PINNED) && (to || copy->dst_kind == RILL_MEMORY_PINNED);
  struct rill__operation *staged = NULL;
  RILL_TRY(rill__operation_copy(device, copy, &staged));
  struct graph_copy *made = NULL;
  const rill_status status = new_graph_copy(device, copy, alone, from, &made);
  if (status != RILL_OK) {
    rill__operation_unref(staged);
    return status;
  }
  made->payload.of = request;
  staged->payload = &made->payload;
  staged->staged = &made->staged;
  *operation = staged;
  return RILL_OK;
}
