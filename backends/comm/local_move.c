/* Data movement of the local engine.  The buffers of an operation overlap only in its in-place form. */
#include "backends/comm/local.h"

#include <string.h>

static void move(void *to, const void *from, size_t bytes) {
  if (to != from && bytes > 0) memmove(to, from, bytes);
}

static char *part_of_dst(const struct local_work *work, uint32_t part) {
  return (char *)work->op.dst + part * work->op.count * work->op.size;
}
static const char *part_of_src(const struct local_work *work, uint32_t part) {
  return (const char *)work->op.src + part * work->op.count * work->op.size;
}

/* Combines part `part` of all sources, and stores it in the destination of rank `only`, or of all ranks if `only` is
 * LOCAL_ALL.  A destination may also be a source, so each piece is read from all sources before its result is
 * stored. */
static void reduce(struct local_work *const *works, uint32_t size, uint32_t part, uint32_t only) {
  const struct comm_op *const op = &works[0]->op;
  union {
    unsigned char bytes[4096];
    double align;
  } piece;
  const size_t most = sizeof piece.bytes / op->size;
  for (size_t done = 0; done < op->count; done += most) {
    const size_t n = op->count - done < most ? op->count - done : most, at = done * op->size;
    memcpy(piece.bytes, part_of_src(works[0], part) + at, n * op->size);
    for (uint32_t i = 1; i < size; i++) {
      rill__comm_combine(op->type, op->op, piece.bytes, part_of_src(works[i], part) + at, n);
    }
    if (op->op == RILL_COMM_AVERAGE) rill__comm_divide(op->type, piece.bytes, n, size);
    for (uint32_t i = 0; i < size; i++) {
      if (only == LOCAL_ALL || only == i) memcpy(part_of_dst(works[i], 0) + at, piece.bytes, n * op->size);
    }
  }
}

void rill__comm_local_move(struct local_work *const *works, uint32_t size) {
  const struct comm_op *const op = &works[0]->op;
  const size_t bytes = op->count * op->size;
  if (op->count == 0) return;
  switch (op->kind) {
    case COMM_ALL_REDUCE: reduce(works, size, 0, LOCAL_ALL); return;
    case COMM_REDUCE: reduce(works, size, 0, op->peer); return;
    case COMM_REDUCE_SCATTER:
      for (uint32_t i = 0; i < size; i++) reduce(works, size, i, i);
      return;
    case COMM_BROADCAST:
      for (uint32_t i = 0; i < size; i++) move(works[i]->op.dst, works[op->peer]->op.src, bytes);
      return;
    case COMM_ALL_GATHER:
    case COMM_ALL_TO_ALL:
      for (uint32_t to = 0; to < size; to++) {
        for (uint32_t from = 0; from < size; from++) {
          move(part_of_dst(works[to], from), part_of_src(works[from], op->kind == COMM_ALL_TO_ALL ? to : 0), bytes);
        }
      }
      return;
    case COMM_SEND: move(works[1]->op.dst, op->src, bytes); return;
    case COMM_RECEIVE:
    case COMM_BARRIER:
    case COMM_KINDS: return;
  }
}
