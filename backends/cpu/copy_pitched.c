/* Copies of two and three dimensions. */
#include "backends/cpu/cpu.h"

#include <stdlib.h>

enum {
  DIRECT_BYTES = 32 * 1024, /* as in memory.c, for the same reasons */
  SHARE_BYTES = 1024 * 1024,
  PART_BYTES = 256 * 1024
};

struct pitched {
  struct cpu_op op;
  struct rill__copy_3d copy;
  void *staged; /* a copy of the source to free, or NULL */
};

static size_t rows_of(const struct rill__copy_3d *copy) { return copy->height * copy->depth; }

static size_t rows_of_part(const struct rill__copy_3d *copy) {
  return copy->width < PART_BYTES ? PART_BYTES / copy->width : 1;
}

static void copy_parts(struct cpu_op *op, uint64_t first, uint64_t end) {
  const struct rill__copy_3d *copy = &((const struct pitched *)op)->copy;
  const size_t rows = rows_of(copy), part = rows_of_part(copy);
  rill__copy_rows(copy, (size_t)first * part, (size_t)end * part < rows ? (size_t)end * part : rows);
}

static bool run(struct cpu_queue *queue, struct cpu_op *op) {
  const struct rill__copy_3d *copy = &((const struct pitched *)op)->copy;
  const size_t rows = rows_of(copy), part = rows_of_part(copy);
  if (rows * copy->width >= SHARE_BYTES) return cpu_pool_share(queue, op, (rows + part - 1) / part, copy_parts);
  rill__copy_rows(copy, 0, rows);
  return true;
}

static void end(struct cpu_op *op) { free(((struct pitched *)op)->staged); }

/* Takes a pageable source, without what lies between its rows.  False if there is no memory. */
static bool stage(struct rill__copy_3d *copy, void **staged) {
  struct rill__copy_3d into = *copy;
  *staged = malloc(rows_of(copy) * copy->width);
  if (*staged == NULL) return false;
  into.dst = *staged;
  into.dst_pitch = copy->width;
  into.dst_slice_pitch = copy->width * copy->height;
  rill__copy_rows(&into, 0, rows_of(copy));
  copy->src = *staged;
  copy->src_pitch = into.dst_pitch;
  copy->src_slice_pitch = into.dst_slice_pitch;
  return true;
}

/* As `copy` in memory.c. */
rill_status cpu_copy_3d(struct rill__stream *stream, const struct rill__copy_3d *asked) {
  struct cpu_queue *queue = cpu_queue_of(stream);
  const bool pageable = asked->src_kind == RILL_MEMORY_UNKNOWN;
  if ((pageable || rows_of(asked) * asked->width <= DIRECT_BYTES) && cpu_queue_take(queue)) {
    rill__copy_rows(asked, 0, rows_of(asked));
    cpu_queue_give_back(queue);
    return RILL_OK;
  }
  struct rill__copy_3d copy = *asked;
  void *staged = NULL;
  const bool must_wait = pageable && !stage(&copy, &staged);
  struct pitched *op = NULL;
  const rill_status status = cpu_queue_begin(queue, sizeof *op, &op);
  if (status != RILL_OK) {
    free(staged);
    return status;
  }
  op->op.run = run;
  op->op.end = end;
  op->copy = copy;
  op->staged = staged;
  const uint64_t number = cpu_queue_commit(queue);
  if (must_wait) (void)cpu_queue_wait(queue, number, RILL__FOREVER, true);
  return RILL_OK;
}
